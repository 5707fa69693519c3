"""The PyTorch operator `flash_mlir::attention`, by which torch.compile calls kernels."""

from typing import List, Optional, Tuple

import torch

from .attention import _prepare
from .masks import Mask
from .programs import get_function


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
    result = get_function(config)(query, key, value, lengths, sink, tuple(captured))
    return result if return_lse else (result, query.new_empty(0, dtype=torch.float32))


@operator.register_fake
def _(query, key, value, lengths, sink, captured, config, return_lse):
    rows = query.shape[:-1]
    output = query.new_empty((*rows, value.shape[-1]))
    return output, query.new_empty(rows if return_lse else (0,), dtype=torch.float32)


def call(query, key, value, lengths, sink, captured, config, return_lse):
    """Calls the operator, as torch.compile can trace it."""
    output, lse = torch.ops.flash_mlir.attention(
        query, key, value, lengths, sink, list(captured), config, return_lse
    )
    return (output, lse) if return_lse else output


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


def attention(query, key, value, mask, score, scale, lengths, sink, return_lse):
    """What `flash_mlir.attention` is while torch.compile traces it."""
    config = None
    # Functions with closures are none of Dynamo's constants.
    if score is None and (mask is None or isinstance(mask, Mask)):
        config = _get_config(mask, scale, lengths is not None, sink is not None, return_lse)
    if config is None:
        return _call_eagerly(query, key, value, mask, score, scale, lengths, sink, return_lse)
    return call(query, key, value, lengths, sink, (), config, return_lse)


# Masks are values, so that torch.compile may take one for a constant.
if hasattr(torch.utils._pytree, "register_constant"):
    torch.utils._pytree.register_constant(Mask)
