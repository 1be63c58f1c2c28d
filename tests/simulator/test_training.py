"""A job on the simulated device computes what it computes on the CPU."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

Job = Callable[[str], torch.Tensor]


def train(make: Callable[[], nn.Module], shape: tuple[int, ...], device: str, **options) -> torch.Tensor:
    """Losses and final parameters of a few steps."""
    torch.manual_seed(0)
    model = make().to(device)
    optimizer = options.pop("optimizer", torch.optim.SGD)(model.parameters(), lr=0.01, **options)
    losses = []
    for _ in range(4):
        x = torch.randn(8, *shape).to(device, non_blocking=True)
        y = torch.randint(0, 5, (8,), device=device)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.detach())
    return torch.cat([torch.stack(losses), *(p.detach().flatten() for p in model.parameters())]).cpu()


def perceptron() -> nn.Module:
    return nn.Sequential(nn.Linear(12, 16), nn.LayerNorm(16), nn.GELU(), nn.Dropout(0.2), nn.Linear(16, 5))


def convolutional() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3, groups=2),
        nn.ConvTranspose2d(8, 4, 2, stride=2),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(16, 5),
    )


class Recurrent(nn.Module):
    def __init__(self, kind: type[nn.RNNBase]) -> None:
        super().__init__()
        self.cells = kind(6, 7, num_layers=2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(14, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.cells(x)[0][:, -1])


class Attentive(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.encoder(x).mean(1))


class Embedded(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(20, 8)
        self.head = nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.table((x.abs() * 5).long().clamp(max=19)).mean(1))


@pytest.mark.parametrize(
    ("make", "shape"),
    [(perceptron, (12,)), (convolutional, (3, 8, 8)), (Embedded, (6,)), (Attentive, (5, 8))],
    ids=["perceptron", "convolutional", "embedded", "attentive"],
)
def test_training_is_bit_identical(make, shape) -> None:
    assert torch.equal(train(make, shape, "simgpu"), train(make, shape, "cpu"))


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda: Recurrent(nn.LSTM), (5, 6)),
        (lambda: Recurrent(nn.GRU), (5, 6)),
        (lambda: Recurrent(nn.RNN), (5, 6)),
    ],
    ids=["lstm", "gru", "rnn"],
)
def test_training_agrees_where_torch_takes_other_kernels(make, shape) -> None:
    torch.testing.assert_close(train(make, shape, "simgpu"), train(make, shape, "cpu"), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("options", [{"foreach": True}, {"foreach": False}, {"fused": True}], ids=str)
@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW])
def test_optimizers(optimizer, options) -> None:
    on_device, on_host = (
        train(perceptron, (12,), d, optimizer=optimizer, **options) for d in ("simgpu", "cpu")
    )
    assert torch.equal(on_device, on_host)


def test_autocast_and_scaler() -> None:
    torch.manual_seed(0)
    model = convolutional().to("simgpu")
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    scaler = torch.amp.GradScaler("simgpu")
    x, y = torch.randn(8, 3, 8, 8, device="simgpu"), torch.randint(0, 5, (8,), device="simgpu")
    losses = []
    for _ in range(8):
        optimizer.zero_grad()
        with torch.autocast("simgpu", dtype=torch.float16):
            out = model(x)
            loss = F.cross_entropy(out, y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    assert (out.dtype, loss.dtype, model[0].weight.grad.dtype) == (
        torch.float16,
        torch.float32,
        torch.float32,
    )
    assert losses[-1] < losses[0]


def test_inference_mode_then_training() -> None:
    model = perceptron().to("simgpu")
    x = torch.randn(4, 12, device="simgpu")
    with torch.inference_mode():
        model.eval()(x)
    model.train()(x).sum().backward()
    assert model[0].weight.grad.isfinite().all()


def test_gradient_checkpointing_keeps_dropout() -> None:
    model, x = perceptron().to("simgpu"), torch.randn(4, 12, device="simgpu")

    def gradient(run: Callable[..., torch.Tensor]) -> torch.Tensor:
        model.zero_grad()
        torch.manual_seed(3)
        run(x).sum().backward()
        return model[0].weight.grad.clone()

    plain = gradient(model)
    checkpointed = gradient(lambda x: torch.utils.checkpoint.checkpoint(model, x, use_reentrant=False))
    assert torch.equal(plain, checkpointed)


def test_packed_sequences() -> None:
    def last(device: str) -> torch.Tensor:
        torch.manual_seed(0)
        cells = nn.LSTM(3, 4, batch_first=True).to(device)
        packed = nn.utils.rnn.pack_padded_sequence(
            torch.ones(2, 5, 3, device=device), torch.tensor([5, 2]), batch_first=True
        )
        return nn.utils.rnn.pad_packed_sequence(cells(packed)[0], batch_first=True)[0].detach().cpu()

    torch.testing.assert_close(last("simgpu"), last("cpu"))


def test_state_travels() -> None:
    model = perceptron().to("simgpu")
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "whole": model[0].weight, "part": model[0].weight[1:]}, file)

    def load(**options) -> dict:
        file.seek(0)
        return torch.load(file, **options)

    back, on_host = load(), load(map_location="cpu")
    assert back["whole"].device.type == load(map_location="simgpu")["whole"].device.type == "simgpu"
    assert on_host["whole"].device.type == "cpu"
    assert torch.equal(back["part"].cpu(), model[0].weight[1:].cpu())
    back["whole"].data[1, 0] = 7.0
    assert back["part"][0, 0].item() == 7.0, "shared memory stays shared"
    twin = copy.deepcopy(model)
    twin.load_state_dict(on_host["model"])
    twin[0].weight.data.zero_()
    assert model[0].weight.abs().sum() > 0


def test_torch_finds_the_accelerator() -> None:
    assert torch.accelerator.is_available()
    assert torch.accelerator.current_accelerator() == torch.device("simgpu")
    assert torch.accelerator.device_count() == 1
    assert torch.get_device_module("simgpu") is torch.simgpu
    with torch.device("simgpu"):
        assert nn.Linear(2, 2).weight.device.type == "simgpu"
    assert torch.ones(1, device="simgpu").is_simgpu
    assert not torch.cuda.is_available()


def test_compile_with_an_eager_backend() -> None:
    compiled = torch.compile(lambda x: (x * 2).relu().sum(), backend="eager")
    assert compiled(torch.ones(3, device="simgpu")).item() == 6.0
