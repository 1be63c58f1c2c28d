"""LSTM and GRU cells: torch asks an accelerator for these fused kernels, which its CPU build lacks."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .device import device
from .tensors import host_view, wrap


def _launch(name: str, *tensors: Tensor) -> None:
    device.launch(name, 0.0, sum(t.nbytes for t in tensors))


def _hosts(*tensors: Tensor | None) -> list[Any]:
    return [host_view(t) if t is not None else None for t in tensors]


def pack_padded(sequence: Tensor, lengths: Tensor, batch_first: bool) -> tuple[Tensor, Tensor]:
    """Lengths and the batch sizes made from them stay on the host."""
    data, batch_sizes = torch.ops.aten._pack_padded_sequence(host_view(sequence), lengths, batch_first)
    _launch("_pack_padded_sequence", data, data)
    return wrap(data), batch_sizes


def lstm_cell(
    input_gates: Tensor,
    hidden_gates: Tensor,
    cell: Tensor,
    input_bias: Tensor | None = None,
    hidden_bias: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    from_input, from_hidden, old_cell, bias_i, bias_h = _hosts(
        input_gates, hidden_gates, cell, input_bias, hidden_bias
    )
    gates = from_input + from_hidden
    if bias_i is not None:
        gates = gates + bias_i + bias_h
    i, f, g, o = gates.chunk(4, 1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    new_cell = f * old_cell + i * g
    hidden = o * new_cell.tanh()
    workspace = torch.cat([i, f, g, o], 1)
    _launch("_thnn_fused_lstm_cell", from_input, from_hidden, old_cell, hidden, new_cell, workspace)
    return wrap(hidden), wrap(new_cell), wrap(workspace)


def lstm_cell_backward(
    grad_hidden: Tensor | None,
    grad_cell: Tensor | None,
    cell: Tensor,
    new_cell: Tensor,
    workspace: Tensor,
    has_bias: bool,
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    if grad_hidden is None and grad_cell is None:
        return None, None, None
    d_hidden, d_cell, old_cell, cell_out, gates = _hosts(grad_hidden, grad_cell, cell, new_cell, workspace)
    i, f, g, o = gates.chunk(4, 1)
    squashed = cell_out.tanh()
    d_new_cell = d_cell if d_cell is not None else torch.zeros_like(cell_out)
    d_o = torch.zeros_like(cell_out)
    if d_hidden is not None:
        d_new_cell = d_new_cell + d_hidden * o * (1 - squashed * squashed)
        d_o = d_hidden * squashed * o * (1 - o)
    d_i = d_new_cell * g * i * (1 - i)
    d_f = d_new_cell * old_cell * f * (1 - f)
    d_g = d_new_cell * i * (1 - g * g)
    d_gates = torch.cat([d_i, d_f, d_g, d_o], 1)
    _launch("_thnn_fused_lstm_cell_backward", gates, old_cell, cell_out, d_gates)
    return wrap(d_gates), wrap(d_new_cell * f), wrap(d_gates.sum(0)) if has_bias else None


def gru_cell(
    input_gates: Tensor,
    hidden_gates: Tensor,
    hidden: Tensor,
    input_bias: Tensor | None = None,
    hidden_bias: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    from_input, from_hidden, old, bias_i, bias_h = _hosts(
        input_gates, hidden_gates, hidden, input_bias, hidden_bias
    )
    if bias_i is not None:
        from_input, from_hidden = from_input + bias_i, from_hidden + bias_h
    i_reset, i_update, i_new = from_input.chunk(3, 1)
    h_reset, h_update, h_new = from_hidden.chunk(3, 1)
    reset, update = (i_reset + h_reset).sigmoid(), (i_update + h_update).sigmoid()
    new = (i_new + reset * h_new).tanh()
    out = (old - new) * update + new
    workspace = torch.cat([reset, update, new, old, h_new], 1)
    _launch("_thnn_fused_gru_cell", from_input, from_hidden, old, out, workspace)
    return wrap(out), wrap(workspace)


def gru_cell_backward(
    grad_hidden: Tensor, workspace: Tensor, has_bias: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None]:
    d_out, saved = _hosts(grad_hidden, workspace)
    reset, update, new, old, h_new = saved.chunk(5, 1)
    d_new = d_out * (1 - update) * (1 - new * new)
    d_update = d_out * (old - new) * update * (1 - update)
    d_reset = d_new * h_new * reset * (1 - reset)
    d_input = torch.cat([d_reset, d_update, d_new], 1)
    d_hidden_gates = torch.cat([d_reset, d_update, d_new * reset], 1)
    _launch("_thnn_fused_gru_cell_backward", d_out, saved, d_input, d_hidden_gates)
    biases = (wrap(d_input.sum(0)), wrap(d_hidden_gates.sum(0))) if has_bias else (None, None)
    return wrap(d_input), wrap(d_hidden_gates), wrap(d_out * update), *biases
