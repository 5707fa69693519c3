"""Calls that torch.compile makes instead of tracing them: where its graphs break."""

import inspect

import torch

_REASON = (
    "flash_mlir does not know what a mask or score function refers to, or scale is a tensor; before PyTorch 2.14 that is so "
    "of functions made in the compiled one that refer to others of its variables or to globals"
)
# Before PyTorch 2.7 there is no parameter for one.
_HAS_REASON = "reason" in inspect.signature(torch.compiler.disable).parameters


@torch.compiler.disable(**({"reason": _REASON} if _HAS_REASON else {}))
def call_eagerly(function, *arguments):
    """Calls `attention`."""
    return function(*arguments)


_CHANGED = (
    "a number that a function of a flash_mlir.Attention refers to has changed since the object was made, which keeps it; "
    "make another object"
)


@torch.compiler.disable(**({"reason": _CHANGED} if _HAS_REASON else {}))
def call_object_eagerly(attend, *arguments):
    """Calls an `Attention`."""
    return attend(*arguments)


@torch.compiler.disable
def plan_eagerly(plan, *arguments):
    """Calls `plan`."""
    return plan(*arguments)


_OF_RANKS = "flash_mlir.distributed sends rows from rank to rank while it computes, which is no operator of a graph"


@torch.compiler.disable(**({"reason": _OF_RANKS} if _HAS_REASON else {}))
def call_ranks_eagerly(function, *arguments, **options):
    """Calls a function of `flash_mlir.distributed`."""
    return function(*arguments, **options)
