"""Single operators against the CPU, and the corners: views, in-place, out=, layouts, dtypes, errors."""

from __future__ import annotations

import pytest
import simgpu
import torch
from torch.nn import functional as F  # noqa: N812

SAMPLE = torch.randn(4, 8, generator=torch.Generator().manual_seed(0))


def in_place(a):
    a.add_(1)
    a[0] = 5
    a[:, 1] *= 2
    a[a > 3] = 0
    a.t_().unsqueeze_(0).squeeze_(0)
    a.clamp_(-1, 1)
    a[1:3].copy_(a[3:5])
    a.index_add_(0, torch.tensor([1], device=a.device), a[:1])
    return a.masked_fill_(a > 0.8, 1)


def out_variants(a):
    grown, right = torch.empty(0, device=a.device), torch.empty(4, 8, device=a.device)
    values, places = torch.empty(0, device=a.device), torch.empty(0, dtype=torch.long, device=a.device)
    torch.add(a, a, out=grown)
    torch.mul(a, 2, out=right)
    torch.max(a, 1, out=(values, places))
    return torch.cat([grown.flatten(), right.flatten(), values, places])


def resized(a):
    a.resize_(2, 3)
    small = a.clone()
    return torch.cat([small.flatten(), a.resize_(10, 10).fill_(2).flatten()])


def new_data(a):
    parameter = torch.nn.Parameter(a)
    parameter.data = a[1:, 2:].t()
    return parameter.detach() * 1


CASES = {
    "view": lambda a: a.view(8, 4),
    "transpose": lambda a: a.t().contiguous(),
    "slice": lambda a: a[1:, ::3],
    "expand": lambda a: a[:, None].expand(4, 3, 8) + 1,
    "unbind": lambda a: torch.stack(a.unbind(1)),
    "split": lambda a: torch.cat(a.split(4, 1), 0),
    "unfold": lambda a: a.unfold(1, 3, 2),
    "diagonal": lambda a: a.diagonal(),
    "as_strided": lambda a: a.as_strided((2, 2), (1, 2), 1),
    "view of bits": lambda a: a.view(torch.int32),
    "mask": lambda a: a[a > 0],
    "gather": lambda a: a.gather(1, (a > 0).long()),
    "scatter": lambda a: torch.zeros(4, 8, device=a.device).scatter_(1, (a > 0).long(), a),
    "where": lambda a: torch.where(a > 0, a, 0.0),
    "sort": lambda a: a.sort(1)[0],
    "topk": lambda a: a.topk(2)[1],
    "unique": lambda a: a.round().unique(),
    "einsum": lambda a: torch.einsum("ij,kj->ik", a, a),
    "reductions": lambda a: torch.stack([a.mean(), a.std(), a.norm(), a.amax(), a.logsumexp(1).sum()]),
    "dtypes": lambda a: (a.half().float() + a.double()).bfloat16().to(torch.int64),
    "complex": lambda a: torch.view_as_real(torch.fft.fft(a).conj() * 2),
    "lazy negative": lambda a: torch.fft.fft(a).conj().imag + 1,
    "padding": lambda a: F.pad(a, (1, 2)),
    "interpolate": lambda a: F.interpolate(a[None, None], scale_factor=2, mode="bilinear"),
    "one_hot": lambda a: F.one_hot((a[0] > 0).long(), 3),
    "channels last": lambda a: a.view(1, 2, 4, 4).contiguous(memory_format=torch.channels_last) * 2,
    "host scalar": lambda a: a * torch.tensor(2.0),
    "host index": lambda a: a[torch.tensor([1, 0])],
    "factories": lambda a: torch.cat(
        [torch.arange(5, device=a.device), torch.linspace(0, 1, 3, device=a.device), torch.full_like(a[0], 3)]
    ),
    "in place": in_place,
    "out": out_variants,
    "resize": resized,
    "data": new_data,
    "inverse": lambda a: torch.inverse(a @ a.t()),
    "vmap": lambda a: torch.vmap(lambda row: row.sum())(a),
    "grad of grad": lambda a: torch.func.grad(lambda x: torch.func.grad(lambda y: (y**3).sum())(x).sum())(a),
}


@pytest.mark.parametrize("case", CASES)
def test_operator_agrees_with_the_cpu(case: str) -> None:
    run = CASES[case]
    expected = run(SAMPLE.clone())
    got = run(SAMPLE.to("simgpu"))
    assert got.device.type == "simgpu"
    assert got.shape == expected.shape
    assert got.stride() == expected.stride()
    assert torch.equal(got.cpu(), expected)


@pytest.mark.parametrize(
    "draw",
    [
        lambda d: torch.randn(9, device=d),
        lambda d: torch.rand(9, device=d),
        lambda d: torch.randperm(9, device=d),
        lambda d: torch.randint(0, 9, (9,), device=d),
        lambda d: torch.full((9,), 0.5, device=d).bernoulli(),
        lambda d: torch.empty(9, device=d).normal_(),
        lambda d: F.dropout(torch.ones(9, device=d), 0.5),
        lambda d: torch.full((2, 9), 0.1, device=d).multinomial(4),
    ],
)
def test_random_numbers_follow_the_seed(draw) -> None:
    def seeded(device: str) -> torch.Tensor:
        torch.manual_seed(5)
        return draw(device).cpu()

    assert torch.equal(seeded("simgpu"), seeded("simgpu"))
    assert torch.equal(seeded("simgpu"), seeded("cpu"))


def test_views_share_memory() -> None:
    a = torch.zeros(4, device="simgpu")
    a.view(2, 2)[1, 1] = 3
    a.detach()[0] = 2
    assert a.tolist() == [2, 0, 0, 3]
    assert a.view(2, 2).untyped_storage().data_ptr() == a.untyped_storage().data_ptr()


def test_printing() -> None:
    assert repr(torch.tensor([1.5, 2.0], device="simgpu")) == "tensor([1.5000, 2.0000], device='simgpu:0')"
    assert f"{torch.tensor(2.5, device='simgpu'):.1f}" == "2.5"


def test_tensors_of_two_devices_do_not_mix() -> None:
    with pytest.raises(RuntimeError, match="same device"):
        SAMPLE.to("simgpu") + SAMPLE


def test_numpy_needs_a_copy_first() -> None:
    with pytest.raises(TypeError, match="simgpu"):
        SAMPLE.to("simgpu").numpy()


def test_modified_saved_tensor_is_noticed() -> None:
    x = torch.ones(3, device="simgpu", requires_grad=True)
    y = x.exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_a_foreach_call_is_one_kernel() -> None:
    many = [torch.ones(3, device="simgpu") for _ in range(10)]
    simgpu.forget()
    torch._foreach_add_(many, 1.0)
    assert simgpu.counters().kernels_count == 1
    assert many[9].tolist() == [2, 2, 2]


@pytest.mark.parametrize(
    "options",
    [{}, {"is_causal": True}, {"scale": 0.3}, {"mask": torch.eye(6).bool()}, {"mask": torch.eye(6)}],
    ids=["plain", "causal", "scaled", "mask", "bias"],
)
def test_attention_is_one_kernel_each_way(options: dict) -> None:
    simgpu.configure(keep_kernels=True)

    def attend(device: str) -> list[torch.Tensor]:
        given = {
            "attn_mask" if k == "mask" else k: v.to(device) if k == "mask" else v for k, v in options.items()
        }
        query = torch.linspace(-1, 1, 192).reshape(2, 2, 6, 8).to(device).requires_grad_()
        out = F.scaled_dot_product_attention(query, query * 2, query + 1, **given)
        out.square().sum().backward()
        return [out.detach().cpu(), query.grad.cpu()]

    assert all(map(torch.equal, attend("simgpu"), attend("cpu")))
    names = [kernel.name for kernel in simgpu.kernels()]
    assert (names.count("attention"), names.count("attention_backward"), names.count("bmm")) == (1, 1, 0)


def test_attention_with_dropout_is_taken_apart() -> None:
    query = torch.ones(2, 2, 6, 8, device="simgpu")
    assert F.scaled_dot_product_attention(query, query, query, dropout_p=0.5).shape == query.shape
