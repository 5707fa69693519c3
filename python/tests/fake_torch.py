"""As much of PyTorch as a call on CUDA uses, over memory of the host.

With a driver that runs no kernel, calls can be followed without a GPU.
"""

import contextlib
import ctypes
import sys
import types

import numpy as np

events = []
# The shapes of tensors that were made like others.
likes = []
# All tensors that were made for calls.
allocated = []
current_device = 0
is_autocast_on = False


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

    def is_floating_point(self):
        return "float" in self.dtype.name

    def to(self, dtype):
        return self if dtype is self.dtype else make(self.shape, dtype.name, self.device_index)

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
    return _allocate(sizes, dtype.name, current_device)


def empty_like(tensor):
    assert tensor.array.flags.c_contiguous, "PyTorch keeps the strides"
    likes.append(tensor.shape)
    return _allocate(tensor.shape, tensor.dtype.name, tensor.device_index)


def _allocate(sizes, name, device):
    events.append(("empty", sizes, name))
    allocated.append(make(sizes, name, device))
    return allocated[-1]


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


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device", ctypes.c_int32),
        ("rank", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("sizes", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    ]  # fmt: skip


_Read = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(_DLTensor))
_GetStream = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))


class _ExchangeApi(ctypes.Structure):
    """DLPackExchangeAPI of DLPack 1.3, without what calls on CUDA do not use."""

    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("unused", ctypes.c_void_p * 4),
        ("read", _Read), ("stream", _GetStream),
    ]  # fmt: skip


@_Read
def _read(tensor, result):
    name = tensor.dtype.name
    codes = dict(bfloat16=4, bool=6)
    code = codes.get(name, 2 if name.startswith("float") else 1 if name.startswith("u") else 0)
    numbers = ctypes.c_int64 * max(1, len(tensor.shape))
    # They live until Python runs again, and longer.
    tensor.exchanged = numbers(*tensor.shape), numbers(*tensor.stride())
    place, type = (tensor.data_ptr(), 2, tensor.device_index), (code, 8 * tensor.element_size(), 1)
    result[0] = _DLTensor(*place, len(tensor.shape), *type, *tensor.exchanged, 0)
    return 0


@_GetStream
def _get_stream(kind, device, stream):
    events.append(("stream", device))
    return 0


_api = _ExchangeApi(1, 3, (ctypes.c_void_p * 4)(), _read, _get_stream)


def _make_capsule():
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return make(ctypes.addressof(_api), b"dlpack_exchange_api", None)


def install(has_exchange=False):
    """`has_exchange` says whether tensors are read by DLPack's interface in C."""
    if has_exchange:
        Tensor.__dlpack_c_exchange_api__ = _make_capsule()
    torch = types.ModuleType("torch")
    torch.Tensor, torch.empty, torch.empty_like, torch.empty_strided = Tensor, empty, empty_like, empty_strided
    vars(torch).update(DTYPES)
    torch.strided = Tensor.layout
    torch.library = types.SimpleNamespace()
    torch.is_grad_enabled = lambda: True
    torch.no_grad = contextlib.nullcontext
    torch.is_autocast_enabled = lambda: is_autocast_on
    torch.get_autocast_dtype = lambda kind: DTYPES["float16"]
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
