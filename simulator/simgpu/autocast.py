"""Mixed precision: which operators run in the low precision of `torch.autocast("simgpu")`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

_KEY = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastPrivateUse1)

_LOW_PRECISION = """
    mm bmm addmm baddbmm addbmm addmv addr mv matmul linear chain_matmul linalg_multi_dot linalg_vecdot
    conv1d conv2d conv3d conv_tbc convolution conv_transpose1d conv_transpose2d conv_transpose3d
    prelu scaled_dot_product_attention lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell
"""
_FULL_PRECISION = """
    acos asin cosh erfinv exp expm1 log log10 log2 log1p pow reciprocal rsqrt sinh tan softplus
    layer_norm group_norm norm nuclear_norm renorm logsumexp softmax log_softmax sum prod cumsum cumprod
    cross_entropy_loss nll_loss nll_loss2d poisson_nll_loss l1_loss smooth_l1_loss huber_loss mse_loss kl_div
    margin_ranking_loss multi_margin_loss multilabel_margin_loss soft_margin_loss triplet_margin_loss
    hinge_embedding_loss cosine_embedding_loss binary_cross_entropy_with_logits
    cosine_similarity dist pdist cdist
"""
_WIDEST = "addcdiv addcmul atan2 bilinear cross dot grid_sampler index_put stack cat"


def _is_float(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point() and value.dtype is not torch.float64


def _cast(value: Any, dtype: torch.dtype) -> Any:
    if _is_float(value):
        return value.to(dtype)
    if type(value) in (list, tuple):
        return type(value)(_cast(v, dtype) for v in value)
    return value


def _widest(values: Any) -> torch.dtype:
    flat = [v for value in values for v in (value if isinstance(value, (list, tuple)) else (value,))]
    full = any(_is_float(v) and v.dtype is torch.float32 for v in flat)
    return torch.float32 if full else torch.get_autocast_dtype("simgpu")


def _kernel(op: torch._ops.OpOverload, dtype_of: Callable[[Any], torch.dtype]) -> Callable[..., Any]:
    def kernel(*args: Any, **kwargs: Any) -> Any:
        with torch._C._ExcludeDispatchKeyGuard(_KEY):
            dtype = dtype_of(args)
            return op(*_cast(args, dtype), **{k: _cast(v, dtype) for k, v in kwargs.items()})

    return kernel


def register(library: torch.library.Library) -> None:
    groups: list[tuple[str, Callable[[Any], torch.dtype]]] = [
        (_LOW_PRECISION, lambda _: torch.get_autocast_dtype("simgpu")),
        (_FULL_PRECISION, lambda _: torch.float32),
        (_WIDEST, _widest),
    ]
    for names, dtype_of in groups:
        for name in names.split():
            packet = getattr(torch.ops.aten, name)
            for overload in packet.overloads():
                op = getattr(packet, overload)
                if not any(a.alias_info and a.alias_info.is_write for a in op._schema.arguments):
                    library.impl(op, _kernel(op, dtype_of), "AutocastPrivateUse1")
