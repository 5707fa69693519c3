"""The PyTorch operator `flash_mlir::attention`, by which torch.compile calls kernels."""

from typing import List, Optional, Tuple

import torch
from torch.autograd import forward_ad

from .attention import _prepare
from .gradients import compute
from .masks import Mask
from .programs import get_function, get_training_config


@torch.library.custom_op("flash_mlir::attention", mutates_args=())
def operator(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    lengths: Optional[torch.Tensor],
    sink: Optional[torch.Tensor],
    captured: List[torch.Tensor],
    config: str,
    return_lse: bool,
) -> Tuple[torch.Tensor, torch.Tensor]:
    """The result and the log-sum-exp, which is empty unless asked for."""
    result = get_function(config).run(query, key, value, lengths, sink, tuple(captured))
    return result if return_lse else (result, query.new_empty(0, dtype=torch.float32))


@operator.register_fake
def _(query, key, value, lengths, sink, captured, config, return_lse):
    for other in (key, value, lengths, sink, *captured):
        if other is not None and other.device != query.device:
            raise ValueError(f"a tensor is on {other.device}, query on {query.device}; they must be in one place")
    rows = query.shape[:-1]
    output = query.new_empty((*rows, value.shape[-1]))
    return output, query.new_empty(rows if return_lse else (0,), dtype=torch.float32)


@torch.library.custom_op("flash_mlir::attention_grad", mutates_args=())
def gradient_operator(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    output: torch.Tensor,
    lse: torch.Tensor,
    output_grad: torch.Tensor,
    lse_grad: Optional[torch.Tensor],
    lengths: Optional[torch.Tensor],
    sink: Optional[torch.Tensor],
    captured: List[torch.Tensor],
    wrt: List[int],
    config: str,
) -> List[torch.Tensor]:
    """The gradients of query, key, value, sink if there is one, and the captured tensors of the numbers in `wrt`."""
    return compute(config, query, key, value, output, lse, output_grad, lengths, sink, tuple(captured), lse_grad, tuple(wrt))


@gradient_operator.register_fake
def _(query, key, value, output, lse, output_grad, lse_grad, lengths, sink, captured, wrt, config):
    operands = [query, key, value] + ([] if sink is None else [sink]) + [captured[number] for number in wrt]
    return [tensor.new_empty(tensor.shape) for tensor in operands]


def _refuse_second_derivatives(ctx, inputs, output):
    raise NotImplementedError("attention has no second derivative; leave out create_graph=True")


# What would go backward is never reached.
gradient_operator.register_autograd(lambda ctx, *gradients: None, setup_context=_refuse_second_derivatives)


def _save(ctx, inputs, output):
    query, key, value, lengths, sink, captured, config, return_lse = inputs
    if not return_lse:
        raise NotImplementedError("flash_mlir::attention has gradients with return_lse only, and a config for that")
    # A gradient that there is none of costs nothing, in place of zeros.
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(query, key, value, *output, lengths, sink, *captured)
    ctx.config = config
    ctx.wrt = [number for number, tensor in enumerate(captured) if tensor.requires_grad]


def _go_backward(ctx, output_grad, lse_grad):
    query, key, value, output, lse, lengths, sink, *captured = ctx.saved_tensors
    if output_grad is None:
        output_grad = torch.zeros_like(output)
    found = torch.ops.flash_mlir.attention_grad(
        query, key, value, output, lse, output_grad, lse_grad, lengths, sink, captured, ctx.wrt, ctx.config
    )
    query_grad, key_grad, value_grad, *found = found
    sink_grad = None if sink is None else found.pop(0)
    of_captured = dict(zip(ctx.wrt, found))
    captured_grads = [of_captured.get(number) for number in range(len(captured))]
    return query_grad, key_grad, value_grad, None, sink_grad, captured_grads, None, None


operator.register_autograd(_go_backward, setup_context=_save)


@torch.compiler.assume_constant_result
def _get_training_config(config):
    return get_training_config(config)

def _needs_gradients(query, key, value, sink, captured):
    if not torch.is_grad_enabled():
        return False
    return any(tensor is not None and tensor.requires_grad for tensor in (query, key, value, sink, *captured))


def call(query, key, value, lengths, sink, captured, config, return_lse):
    """Calls the operator, as torch.compile can trace it."""
    returns_lse = return_lse
    if _needs_gradients(query, key, value, sink, captured):
        config, returns_lse = _get_training_config(config), True
    output, lse = torch.ops.flash_mlir.attention(
        query, key, value, lengths, sink, list(captured), config, returns_lse
    )
    return (output, lse) if return_lse else output


def dispatch(query, key, value, lengths, sink, captured, config, return_lse):
    """Calls the operator for tensors without memory, or where something watches the operators that are called."""
    if forward_ad._current_level >= 0:
        for tensor in (query, key, value, sink, *captured):
            if tensor is not None and forward_ad.unpack_dual(tensor).tangent is not None:
                raise NotImplementedError("attention has no forward-mode derivative, and an argument has a tangent")
    # PyTorch's own operators in Python have none of these either.
    if torch._C._functorch.peek_interpreter_stack() is not None and _needs_gradients(query, key, value, sink, captured):
        raise NotImplementedError("attention has no gradients for torch.func; use torch.autograd or backward()")
    return call(query, key, value, lengths, sink, captured, config, return_lse)


@torch.compiler.assume_constant_result
def _get_config(mask, scale, has_lengths, has_sink, return_lse):
    """The variant of a mask that reads no arrays; None for others."""
    lengths = True if has_lengths else None
    prepared, captured, used_lengths = _prepare(mask, None, scale, lengths, has_sink, return_lse)
    return None if captured or used_lengths is not lengths else prepared.config


@torch.compiler.disable
def _call_eagerly(*arguments):
    from .attention import attention

    return attention(*arguments)


@torch.compiler.disable
def plan_eagerly(*arguments):
    """`flash_mlir.plan`, which torch.compile calls instead of tracing it."""
    from .plans import plan

    return plan(*arguments)


def attention(query, key, value, mask, score, scale, lengths, sink, return_lse):
    """What `flash_mlir.attention` is while torch.compile traces it."""
    config = None
    # Functions with closures are none of Dynamo's constants.
    is_constant = score is None and (mask is None or isinstance(mask, Mask)) and not isinstance(scale, torch.Tensor)
    if is_constant:
        config = _get_config(mask, scale, lengths is not None, sink is not None, return_lse)
    if config is None:
        return _call_eagerly(query, key, value, mask, score, scale, lengths, sink, return_lse)
    return call(query, key, value, lengths, sink, (), config, return_lse)


# Masks are values, so that torch.compile may take one for a constant.
if hasattr(torch.utils._pytree, "register_constant"):
    torch.utils._pytree.register_constant(Mask)
