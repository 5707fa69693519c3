"""The PyTorch operators, by which torch.compile and autograd call kernels."""

import torch
from torch.autograd import forward_ad

from . import checking, jagged
from .masks import Mask
from .packing import Packing, refuse_gradients
from .programs import get_function, get_packing, get_training_config, with_packing
from .torch_state import is_tracing, is_watched, needs_gradients, peek_transforms

# Python is called once for a call of an operator: what has no gradients has no kernel for autograd either.
_library = torch.library.Library("flash_mlir", "DEF")
_OPERANDS = "Tensor query, Tensor key, Tensor value"
_MORE = "Tensor? lengths, Tensor? sink, Tensor[] captured"
_TAGS = (
    torch.Tag.pt2_compliant_tag,
    # The strides of an eager call, whose last dimensions are contiguous.
    getattr(torch.Tag, "needs_exact_strides", torch.Tag.needs_fixed_stride_order),
)
_library.define(f"attention({_OPERANDS}, {_MORE}, str config) -> Tensor", tags=_TAGS)
for _name in ("attention_with_lse", "attention_with_gradients"):
    _library.define(f"{_name}({_OPERANDS}, {_MORE}, str config) -> (Tensor, Tensor)", tags=_TAGS)
_library.define(
    f"attention_grad({_OPERANDS}, Tensor output, Tensor lse, Tensor output_grad, Tensor? lse_grad, {_MORE}, int[] wrt, "
    "str config) -> Tensor[]",
    tags=_TAGS,
)
_ATTENTION = torch.ops.flash_mlir.attention.default
_WITH_LSE = torch.ops.flash_mlir.attention_with_lse.default
_WITH_GRADIENTS = torch.ops.flash_mlir.attention_with_gradients.default
_GRAD = torch.ops.flash_mlir.attention_grad.default


def _implement(name, function):
    for device in ("CPU", "CUDA"):
        _library.impl(name, function, device)


def _run(query, key, value, lengths, sink, captured, config):
    """The result, and with it the log-sum-exp as the configuration says."""
    if checking.is_on:
        checking.check_call(config, query, key, value, lengths, sink, tuple(captured))
    return get_function(config).run(query, key, value, lengths, sink, tuple(captured))


_implement("attention", _run)
_implement("attention_with_lse", _run)


def _make_like(tensor, dim):
    """What kernels make for a tensor, on its device, with another last dimension: on CUDA in the order of its strides."""
    shape = (*tensor.shape[:-1], dim)
    if tensor.device.type != "cuda" or tensor.is_contiguous():
        return tensor.new_empty(shape)
    strides = list(tensor.stride()[:-1])
    # Strides of single elements do not matter, and are like others.
    for place in range(len(strides))[::-1]:
        if shape[place] == 1:
            strides[place] = tensor.stride(-1) * tensor.shape[-1] if place + 1 == len(strides) else strides[place + 1] * shape[place + 1]
    if any(stride == 0 for stride in strides):
        return tensor.new_empty(shape)
    order = sorted(range(len(strides)), key=strides.__getitem__, reverse=True)
    made = tensor.new_empty([shape[place] for place in order] + [dim])
    return made.permute(*[order.index(place) for place in range(len(strides))], len(strides))


@torch.library.register_fake("flash_mlir::attention", lib=_library)
def _make_output(query, key, value, lengths, sink, captured, config):
    for other in (key, value, lengths, sink, *captured):
        if other is not None and other.device != query.device:
            raise ValueError(f"a tensor is on {other.device}, query on {query.device}; they must be on one device")
    if get_packing(config)[0]:
        return query.new_empty(*query.shape[:-1], value.shape[-1])
    return _make_like(query, value.shape[-1])


@torch.library.register_fake("flash_mlir::attention_with_lse", lib=_library)
def _make_both(query, *others):
    rows = query.shape[-2::-1] if get_packing(others[-1])[0] else query.shape[:-1]
    return _make_output(query, *others), query.new_empty(rows, dtype=torch.promote_types(query.dtype, torch.float32))


def _run_grad(query, key, value, output, lse, output_grad, lse_grad, lengths, sink, captured, wrt, config):
    """The gradients of query, key, value, sink if there is one, and the captured tensors of the numbers in `wrt`."""
    function = get_function(config)
    return function.differentiate(
        query, key, value, output, lse, output_grad, lse_grad, lengths, sink, tuple(captured), wrt
    )


_implement("attention_grad", _run_grad)


@torch.library.register_fake("flash_mlir::attention_grad", lib=_library)
def _(query, key, value, output, lse, output_grad, lse_grad, lengths, sink, captured, wrt, config):
    others = ([] if sink is None else [sink]) + [captured[number] for number in wrt]
    packing = Packing(get_packing(config))
    operands = ("query", query), ("key", key), ("value", value)
    grads = [
        tensor.new_empty(tensor.shape) if packing.is_packed(name) else _make_like(tensor, tensor.shape[-1])
        for name, tensor in operands
    ]
    return grads + [tensor.new_empty(tensor.shape) for tensor in others]


# What is_grads_batched makes: by another torch.vmap, which operators do not learn of.
_is_of_batch = getattr(torch._C._functorch, "is_legacy_batchedtensor", lambda tensor: False)
def _is_differentiated():
    """Whether a transformation of torch.func other than torch.vmap is under way."""
    kinds = torch._C._functorch.TransformType
    return any(each.key() != kinds.Vmap for each in torch._C._functorch.get_interpreter_stack() or ())


def _call_mapped(operator, *arguments):
    """Calls an operator for an element of a batch: only of an element it is known whether it needs gradients."""
    if operator not in (_ATTENTION, _WITH_LSE):
        return operator(*arguments)
    *operands, lengths, sink, captured, config = arguments
    training_config = get_training_config(config)
    return _call_watched(*operands, lengths, sink, captured, config, training_config, operator is _WITH_LSE)


def _map(operator):
    """What torch.vmap calls instead of an operator: a call for each element, since masks may count batches."""

    def mapped(info, in_dims, *arguments):
        def choose(value, dim, index):
            if isinstance(value, (list, tuple)):
                return [choose(each, d, index) for each, d in zip(value, dim)]
            return value if dim is None else value.select(dim, index)

        def choose_all(index):
            return [choose(value, dim, index) for value, dim in zip(arguments, in_dims)]

        results = [_call_mapped(operator, *choose_all(index)) for index in range(info.batch_size)]
        if isinstance(results[0], torch.Tensor):
            return torch.stack(results), 0
        kind = type(results[0])
        return kind(torch.stack(parts) for parts in zip(*results)), kind([0] * len(results[0]))

    torch.library.register_vmap(operator, mapped, lib=_library)


class _Attention(torch.autograd.Function):
    """`function` is the native one of the configuration, or None to go by the operators."""

    @staticmethod
    def forward(ctx, function, config, return_lse, query, key, value, lengths, sink, *captured):
        if function is None:
            output, lse = _WITH_LSE(query, key, value, lengths, sink, captured, config)
        else:
            output, lse = function.run(query, key, value, lengths, sink, captured)
        # A gradient that does not exist is None, which costs nothing, and not zeros.
        ctx.set_materialize_grads(False)
        # Of results themselves autograd would keep a copy of their data, and make another for the backward; in a
        # graph, both are operators. What is no result has no gradient.
        saved = output.detach(), lse.detach() if return_lse else lse
        ctx.save_for_backward(query, key, value, *saved, lengths, sink, *captured)
        wrt = [number for number, needed in enumerate(ctx.needs_input_grad[8:]) if needed] if captured else []
        ctx.of_call = function, config, wrt
        return (output, lse) if return_lse else output

    @staticmethod
    def backward(ctx, output_grad, lse_grad=None):
        if torch.is_grad_enabled():
            raise NotImplementedError("attention has no second derivative; leave out create_graph=True")
        saved = ctx.saved_tensors
        query, key, value, output, lse, lengths, sink = saved[:7]
        captured = saved[7:]
        function, config, wrt = ctx.of_call
        # Where the forward was traced without it being known.
        refuse_gradients(get_packing(config))
        for grad in (output_grad, lse_grad):
            if grad is not None and _is_of_batch(grad):
                raise NotImplementedError(
                    "attention has no gradients of a batch at once (is_grads_batched=True, vectorize=True); call "
                    "torch.autograd.grad for each, by itself or in a function that torch.vmap maps"
                )
        if output_grad is None:
            output_grad = torch.zeros_like(output)
        if function is not None and type(output_grad) is torch.Tensor and not is_watched():
            grads = function.differentiate(
                query, key, value, output, lse, output_grad, lse_grad, lengths, sink, captured, wrt
            )
        else:
            grads = _GRAD(query, key, value, output, lse, output_grad, lse_grad, lengths, sink, captured, wrt, config)
        query_grad, key_grad, value_grad, *found = grads
        sink_grad = None if sink is None else found.pop(0)
        grads = None, None, None, query_grad, key_grad, value_grad, None, sink_grad
        if captured:
            of_captured = dict(zip(wrt, found))
            grads += tuple([of_captured.get(number) for number in range(len(captured))])
        return grads


# `_Attention.apply` without what it does for torch.func, where nothing watches. Before PyTorch 2.15 that is Python, and
# takes as long as the rest.
_apply = super(torch.autograd.Function, _Attention).apply

_library.impl(
    "attention_with_gradients",
    lambda query, key, value, lengths, sink, captured, config: _Attention.apply(
        None, config, True, query, key, value, lengths, sink, *captured
    ),
    "Autograd",
)
_implement("attention_with_gradients", _run)
torch.library.register_fake("flash_mlir::attention_with_gradients", _make_both, lib=_library)

# Before PyTorch 2.5 it cannot be registered, and torch.vmap is an error.
if hasattr(torch.library, "register_vmap"):
    for _operator in (_ATTENTION, _WITH_LSE, _WITH_GRADIENTS, _GRAD):
        _map(_operator)


def call(query, key, value, lengths, sink, captured, config, training_config, return_lse):
    """Calls the operator, as torch.compile can trace it."""
    captured = [*captured]
    if needs_gradients(query, key, value, sink, *captured):
        results = _WITH_GRADIENTS(query, key, value, lengths, sink, captured, training_config)
        return (results[0], results[1]) if return_lse else results[0]
    operator = _WITH_LSE if return_lse else _ATTENTION
    return operator(query, key, value, lengths, sink, captured, config)


def _call_jagged(query, key, value, lengths, sink, captured, config):
    """Calls the variant of packed rows."""

    def call(query, key, value, packed, offsets):
        of_rows = with_packing(config, packed)
        arguments = query, key, value, lengths, sink, captured + offsets
        if checking.is_on:
            checking.check_call(of_rows, *arguments)
        return get_function(of_rows)(*arguments)

    return jagged.attend(call, query, key, value, any(get_packing(config)))


def make_dispatch(config, return_lse):
    """What serves calls that no kernel alone can.

    These are of jagged tensors; of tensors without memory, or that something watches, by the operators; or with
    gradients, of plain tensors that nothing watches, which go without them.
    """
    training_config = get_training_config(config)
    training = get_function(training_config, trains=True)
    packed = get_packing(config)

    def dispatch(query, key, value, lengths, sink, captured, is_plain):
        if is_plain and peek_transforms() is None:
            refuse_gradients(packed)
            return _apply(training, training_config, return_lse, query, key, value, lengths, sink, *captured)
        if jagged.are_jagged(query, key, value):
            return _call_jagged(query, key, value, lengths, sink, captured, config)
        return _call_watched(query, key, value, lengths, sink, captured, config, training_config, return_lse)

    return dispatch


def _call_watched(query, key, value, lengths, sink, captured, config, training_config, return_lse):
    tensors = [tensor for tensor in (query, key, value, sink, *captured) if tensor is not None]
    if is_tracing() or not all([isinstance(tensor, torch.Tensor) for tensor in tensors]):
        # torch.jit.trace and torch.fx make graphs that are called with gradients and without.
        results = _WITH_GRADIENTS(query, key, value, lengths, sink, [*captured], training_config)
        return (results[0], results[1]) if return_lse else results[0]
    if forward_ad._current_level >= 0:
        for tensor in tensors:
            if forward_ad.unpack_dual(tensor).tangent is not None:
                raise NotImplementedError("attention has no forward-mode derivative, and an argument has a tangent")
    # PyTorch's own operators in Python have none of these either.
    if _is_differentiated() and needs_gradients(*tensors):
        raise NotImplementedError("attention has no gradients for torch.func; use torch.autograd or backward()")
    if needs_gradients(*tensors):
        refuse_gradients(get_packing(config))
    return call(query, key, value, lengths, sink, captured, config, training_config, return_lse)


# Masks are values, so that torch.compile may take one for a constant.
if hasattr(torch.utils._pytree, "register_constant"):
    torch.utils._pytree.register_constant(Mask)
