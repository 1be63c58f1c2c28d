"""Scaled dot product attention as one fused kernel each way, as on a real device."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .cost import FLOPS
from .device import device
from .tensors import host_view, wrap

_aten = torch.ops.aten
_run = _aten._scaled_dot_product_flash_attention_for_cpu
_run_backward = _aten._scaled_dot_product_flash_attention_for_cpu_backward


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Chooses as torch does for CUDA: the fused kernel where it can, else the parts."""
    if attn_mask is not None and attn_mask.dtype is torch.bool:
        attn_mask = torch.zeros_like(attn_mask, dtype=query.dtype).masked_fill_(~attn_mask, float("-inf"))
    if _can_fuse(query, key, value, attn_mask, dropout_p, enable_gqa):
        return _aten._scaled_dot_product_fused_attention_overrideable(
            query, key, value, attn_mask, 0.0, is_causal, False, scale=scale
        )[0]
    return _aten._scaled_dot_product_attention_math(
        query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
    )[0]


def _can_fuse(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout_p: float, enable_gqa: bool
) -> bool:
    same_width = query.shape[-1] == key.shape[-1] == value.shape[-1]
    plain = query.dim() == 4 and same_width and query.numel() > 0 and dropout_p == 0.0 and not enable_gqa
    return plain and (mask is None or not mask.requires_grad)


def fused(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_bias: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    return_debug_mask: bool = False,
    *,
    scale: float | None = None,
) -> tuple[Any, ...]:
    inputs = [host_view(t) for t in (query, key, value)]
    mask = host_view(attn_bias) if attn_bias is not None else None
    out, log_sum = _run(*inputs, dropout_p, is_causal, attn_mask=mask, scale=scale)
    device.launch("attention", FLOPS["attention"](inputs, out), sum(t.nbytes for t in (*inputs, out)))
    unused = [wrap(torch.empty(0, dtype=torch.int64)) for _ in range(4)]
    lengths = query.shape[-2], key.shape[-2]
    return wrap(out), wrap(log_sum), *unused[:2], *lengths, *unused[2:], wrap(torch.empty(0))


def fused_backward(
    grad_out: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_bias: Tensor | None,
    grad_input_mask: list[bool],
    out: Tensor,
    logsumexp: Tensor,
    *rest: Any,
    scale: float | None = None,
) -> tuple[Tensor | None, ...]:
    dropout_p, is_causal = rest[4:6]
    inputs = [host_view(t) for t in (grad_out, query, key, value, out, logsumexp)]
    mask = host_view(attn_bias) if attn_bias is not None else None
    grads = _run_backward(*inputs, dropout_p, is_causal, attn_mask=mask, scale=scale)
    byte_count = sum(t.nbytes for t in (*inputs, *grads))
    device.launch("attention_backward", FLOPS["attention_backward"](inputs, grads), byte_count)
    return (*(wrap(g) for g in grads), None)
