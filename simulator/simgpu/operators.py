"""Every operator of the device: run on host memory at once, billed to the device in virtual time."""

from __future__ import annotations

import functools
from collections.abc import Callable, Container, Sequence
from typing import Any

import torch
from torch import Tensor

from .clock import now_ns, spin_until_ns
from .copies import charge_upload
from .cost import FLOPS
from .device import device
from .tensors import CPU, HOST_KEYS, backs_a_device_tensor, host_view, is_on_device, rebind, wrap

Kernel = Callable[..., Any]

# Indices may live on the host, as on a real device; each use copies them over.
_UPLOADS_INDICES = {
    "index",
    "_index_put_impl_",
    "index_put_",
    "index_put",
    "_unsafe_index",
    "_unsafe_index_put",
}
# These read lengths where they are, on the host.
_READS_HOST_LENGTHS = {"_pack_padded_sequence_backward", "_pad_packed_sequence"}
_FREE = {"new_empty_strided", "is_same_size"}


def build(op: torch._ops.OpOverload) -> Kernel:
    """The device kernel of one operator, specialised on its schema."""
    returns = op._schema.returns
    if torch.Tag.inplace_view in op.tags or any(r.alias_info and not r.alias_info.is_write for r in returns):
        return _metadata_kernel(op)
    if any(argument.alias_info and argument.alias_info.is_write for argument in op._schema.arguments):
        return _mutating_kernel(op)
    return _functional_kernel(op)


def _metadata_kernel(op: torch._ops.OpOverload) -> Kernel:
    return functools.partial(op._handle.redispatch_boxed, HOST_KEYS)


def _functional_kernel(op: torch._ops.OpOverload) -> Kernel:
    run = _runner(op)

    def kernel(*args: Any, **kwargs: Any) -> Any:
        out = run(args, kwargs)
        if type(out) is Tensor:
            return _wrap_result(out, args)
        if isinstance(out, (tuple, list)):
            return type(out)(_wrap_result(o, args) if isinstance(o, Tensor) else o for o in out)
        return out

    return kernel


def _mutating_kernel(op: torch._ops.OpOverload) -> Kernel:
    run = _runner(op)
    written = [
        (position, argument.name)
        for position, argument in enumerate(op._schema.arguments)
        if argument.alias_info and argument.alias_info.is_write
    ]
    is_in_place = written == [(0, op._schema.arguments[0].name)]
    resizes = torch.Tag.out in op.tags or op._schema.name.startswith("aten::resize")
    returned = [r.alias_info is not None and r.alias_info.is_write for r in op._schema.returns]

    def kernel_in_place(*args: Any, **kwargs: Any) -> Any:
        run(args, kwargs)
        return args[0]

    if is_in_place and returned == [True] and not resizes:
        return kernel_in_place

    def kernel(*args: Any, **kwargs: Any) -> Any:
        out = run(args, kwargs)
        if not returned:
            return None
        targets = [args[p] if p < len(args) else kwargs.get(n) for p, n in written]
        if resizes:
            _follow_resize(targets, out)
        if not any(returned):
            outs = out if isinstance(out, (tuple, list)) else (out,)
            results = [wrap(o) if isinstance(o, Tensor) else o for o in outs]
        else:
            results = targets
        return results[0] if len(returned) == 1 else tuple(results)

    return kernel


def _follow_resize(targets: list[Any], out: Any) -> None:
    for target, host in zip(targets, out if isinstance(out, (tuple, list)) else (out,), strict=False):
        if isinstance(target, Tensor) and is_on_device(target):
            unchanged = target.shape == host.shape and target.stride() == host.stride()
            if not unchanged or target.data_ptr() != host.data_ptr():
                rebind(target, host)


def _wrap_result(host: Tensor, args: Sequence[Any]) -> Tensor:
    """A new device tensor, or a view of the argument whose memory the operator handed back."""
    if not backs_a_device_tensor(host):
        return wrap(host)
    base = next(a for a in args if isinstance(a, Tensor) and a.data_ptr() == host.data_ptr())
    return torch.ops.aten.as_strided.default.redispatch(
        HOST_KEYS, base, host.shape, host.stride(), host.storage_offset()
    )


def _runner(op: torch._ops.OpOverload) -> Callable[[Sequence[Any], dict[str, Any]], Any]:
    """Runs the operator on the host and enqueues its cost; returns host tensors."""
    call, name = op._op, op._schema.name.removeprefix("aten::")
    uploads_indices = name in _UPLOADS_INDICES
    admit = _upload if uploads_indices else _accept if name in _READS_HOST_LENGTHS else _refuse
    flops_of = FLOPS.get(name)
    is_free = name in _FREE
    size_depends_on_data = torch.Tag.dynamic_output_shape in op.tags
    answers_host = any(str(r.type) in ("bool", "int", "float", "number") for r in op._schema.returns)
    waits = size_depends_on_data or answers_host
    cost = device.cost

    def run(args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        began_ns = now_ns()
        tensors: list[Tensor] = []
        host_args = [_to_host(a, tensors, admit) for a in args]
        if kwargs:
            kwargs = {k: _to_host(v, tensors, admit) for k, v in kwargs.items()}
            kwargs.pop("pin_memory", None)
        out = call(*host_args, **kwargs)
        if is_free:
            return out
        byte_count = out.nbytes if type(out) is Tensor else _byte_count(out)
        for tensor in tensors:
            byte_count += tensor.nbytes
        if cost.launch_us:
            spin_until_ns(began_ns + int(cost.launch_us * 1e3))
        device.launch(name, flops_of(host_args, out) if flops_of else 0.0, byte_count)
        if waits or (uploads_indices and _has_mask(args)):
            device.synchronize_queue()
        return out

    return run


def _to_host(value: Any, tensors: list[Tensor], admit: Callable[[Tensor], None]) -> Any:
    if isinstance(value, Tensor):
        host = host_view(value)
        if host is value and value.dim():
            admit(value)
        tensors.append(host)
        return host
    kind = type(value)
    if kind is list or kind is tuple:
        if any(isinstance(v, Tensor) for v in value):
            return [_to_host(v, tensors, admit) for v in value]
        return value
    if kind is torch.device:
        return CPU
    return value


def _refuse(tensor: Tensor) -> None:
    raise RuntimeError(
        "Expected all tensors to be on the same device, but found at least two devices, "
        f"simgpu:0 and {tensor.device}!"
    )


def _accept(tensor: Tensor) -> None:
    pass


def _upload(tensor: Tensor) -> None:
    charge_upload(tensor, non_blocking=False)


def _byte_count(out: Any) -> int:
    if isinstance(out, Tensor):
        return out.nbytes
    if isinstance(out, (tuple, list)):
        return sum(_byte_count(o) for o in out)
    return 0


def _has_mask(args: Sequence[Any]) -> bool:
    indices = args[1] if len(args) > 1 else ()
    return any(i is not None and i.dtype in (torch.bool, torch.uint8) for i in indices)


# Registration

_LEAVE_COMPOSITE = {  # metadata only, built from operators that have kernels of their own, or for the host
    *("_unsafe_view", "lift", "lift_fresh", "empty_like", "new_empty", "empty_permuted", "_fw_primal"),
    *("_has_same_storage_numel", "_make_dual", "_lazy_clone", "_print", "resize_as_", "is_coalesced"),
    *("sparse_dim", "dense_dim", "_new_zeros_with_same_feature_meta", "_pin_memory", "is_pinned"),
}
_LEAVE_PREFIXES = (
    "_assert",
    "_test",
    "_sparse",
    "sparse",
    "_nested",
    "set",
    "_functional",
    "sym_",
    "_cudnn",
    "mkldnn",
)


def _runs_as_one_kernel(op: torch._ops.OpOverload) -> bool:
    base = op._schema.name.removeprefix("aten::")
    if base in _LEAVE_COMPOSITE or base.startswith(_LEAVE_PREFIXES) or torch.Tag.inplace_view in op.tags:
        return False
    returns = op._schema.returns
    return not any(r.alias_info and not r.alias_info.is_write for r in returns)


def composite_operators(other_than: Container[str]) -> list[tuple[str, torch._ops.OpOverload]]:
    """Operators that torch would take apart or allocate for; a device runs each as one kernel."""
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    found = []
    for qualified in torch._C._dispatch_get_all_op_names():
        name = qualified.removeprefix("aten::")
        if name == qualified or name in other_than or has_kernel(qualified, "CompositeImplicitAutograd"):
            continue
        if has_kernel(qualified, "CompositeExplicitAutograd") or has_kernel(
            qualified, "CompositeExplicitAutogradNonFunctional"
        ):
            base, _, overload = name.partition(".")
            op = getattr(getattr(torch.ops.aten, base), overload or "default")
            if _runs_as_one_kernel(op):
                found.append((name, op))
    return found


_fallback_kernels: dict[torch._ops.OpOverload, Kernel] = {}


def fallback(op: torch._ops.OpOverload, *args: Any, **kwargs: Any) -> Any:
    kernel = _fallback_kernels.get(op)
    if kernel is None:
        kernel = _fallback_kernels[op] = build(op)
    return kernel(*args, **kwargs)
