"""As much of PyTorch as a call on CUDA uses, over memory of the host.

With a driver that runs no kernel, calls can be followed without a GPU.
"""

import contextlib
import sys
import types

import numpy as np

events = []
# The shapes of tensors that were made like others.
likes = []
current_device = 0


class dtype:
    def __init__(self, name, numpy):
        self.name = name
        self.numpy = numpy

    def __repr__(self):
        return f"torch.{self.name}"


DTYPES = {
    name: dtype(name, np.dtype(numpy))
    for name, numpy in dict(
        float16="f2", bfloat16="u2", float32="f4", float64="f8", int8="i1", int16="i2", int32="i4", int64="i8",
        uint8="u1", bool="?",
    ).items()
}


class device_of:
    type = "cuda"

    def __init__(self, index):
        self.index = index

    def __str__(self):
        return f"cuda:{self.index}"

    def __eq__(self, other):
        return str(self) == str(other)


class Tensor:
    is_cuda = True
    requires_grad = False
    is_nested = False
    layout = "strided"

    def is_neg(self):
        return False

    def __init__(self, array, dtype, device):
        self.array = array
        self.dtype = dtype
        self.device_index = device
        self.device = device_of(device)
        self.shape = array.shape
        self.ndim = array.ndim

    def __dlpack__(self, **options):
        raise AssertionError("tensors are read by their own interface")

    def stride(self):
        return tuple(stride // self.array.itemsize for stride in self.array.strides)

    def element_size(self):
        return self.array.itemsize

    def is_contiguous(self):
        return self.array.flags.c_contiguous

    def contiguous(self):
        return self if self.is_contiguous() else self._copy("contiguous")

    def swapaxes(self, first, second):
        return Tensor(self.array.swapaxes(first, second), self.dtype, self.device_index)

    def clone(self):
        return self._copy("clone")

    def _copy(self, name):
        events.append((name, self.shape))
        result = make(self.shape, self.dtype.name, self.device_index)
        result.array[...] = self.array
        return result

    def new_empty(self, sizes, dtype=None):
        return empty(tuple(sizes), dtype or self.dtype, self.device.type)

    def data_ptr(self):
        return self.array.ctypes.data

    def get_device(self):
        return self.device_index


def empty(sizes, dtype, device):
    sizes = sizes if isinstance(sizes, tuple) else (sizes,)
    assert device == "cuda"
    events.append(("empty", sizes, dtype.name))
    return make(sizes, dtype.name, current_device)


def empty_like(tensor):
    assert tensor.array.flags.c_contiguous, "PyTorch keeps the strides"
    likes.append(tensor.shape)
    events.append(("empty", tensor.shape, tensor.dtype.name))
    return make(tensor.shape, tensor.dtype.name, tensor.device_index)


def empty_strided(sizes, strides, dtype, device):
    order = sorted(range(len(sizes)), key=lambda d: strides[d], reverse=True)
    dense = empty(tuple([sizes[d] for d in order]), dtype, device)
    made = Tensor(dense.array.transpose([order.index(d) for d in range(len(sizes))]), dtype, dense.device_index)
    assert all(size == 1 or a == b for size, a, b in zip(sizes, made.stride(), strides)), "dense"
    return made


def make(sizes, name, device=0):
    """A tensor at a multiple of 256 bytes."""
    numpy = DTYPES[name].numpy
    count = int(np.prod(sizes)) * numpy.itemsize
    memory = np.zeros(count + 256, dtype=np.uint8)
    start = -memory.ctypes.data % 256
    return Tensor(memory[start : start + count].view(numpy).reshape(sizes), DTYPES[name], device)


class _Device:
    def __init__(self, index):
        self.index = index

    def __enter__(self):
        global current_device
        self.previous, current_device = current_device, self.index
        events.append(("enter", self.index))

    def __exit__(self, *_):
        global current_device
        current_device = self.previous
        events.append(("exit", self.index))


def install():
    torch = types.ModuleType("torch")
    torch.Tensor, torch.empty, torch.empty_like, torch.empty_strided = Tensor, empty, empty_like, empty_strided
    vars(torch).update(DTYPES)
    torch.strided = Tensor.layout
    torch.library = types.SimpleNamespace()
    torch.is_grad_enabled = lambda: True
    torch.no_grad = contextlib.nullcontext
    torch.is_autocast_enabled = lambda: False
    torch.compiler = types.SimpleNamespace(is_compiling=lambda: False, is_dynamo_compiling=lambda: False)
    torch.cuda = types.SimpleNamespace(device=_Device)
    torch._C = types.SimpleNamespace(
        _cuda_getCurrentRawStream=lambda device: events.append(("stream", device)) or 0,
        _cuda_getDevice=lambda: current_device,
        _len_torch_dispatch_stack=lambda: 0,
        _is_tracing=lambda: False,
        _functorch=types.SimpleNamespace(peek_interpreter_stack=lambda: None),
    )
    sys.modules["torch"] = torch
