"""What PyTorch does at the moment: what looks at operators that are called, and needs gradients."""

import sys

import torch

_count_modes = torch._C._len_torch_dispatch_stack
is_tracing = torch._C._is_tracing
peek_transforms = torch._C._functorch.peek_interpreter_stack


def is_watched():
    """Whether something wants to see the operators that are called."""
    return _count_modes() > 0 or is_tracing() or peek_transforms() is not None


def is_recorded():
    """Whether `torch.jit.trace` or `make_fx` makes a graph of the operators that are called."""
    get_mode = getattr(sys.modules.get("torch.fx.experimental.proxy_tensor"), "get_proxy_mode", None)
    return is_tracing() or (get_mode is not None and get_mode() is not None)


def needs_gradients(*tensors):
    """Whether gradients of one of the tensors, which may be None, will be needed."""
    for tensor in tensors:
        if tensor is not None and tensor.requires_grad:
            return torch.is_grad_enabled()
    return False
