"""Memory of the ranks of a group on one host, which each of them reads and writes by itself.

On CUDA it is PyTorch's symmetric memory, and what is copied goes over NVLink by the GPUs' copy engines: kernels that
fill a GPU hold up none of it, where NCCL's kernels wait for room among them. On the CPU it is files in memory.
"""

import contextlib
import ctypes
import functools
import os
import tempfile
import uuid

import torch
import torch.distributed as dist

from .exchange import name_ranks

#: A part of the smallest device's memory that is shared at most.
_MOST_SHARED = 0.25
#: What shared memory grows by, in bytes.
_STEP = 16 << 20
#: (group, room) and (group, `Shared`) by the names of groups and devices; another group may come to have the name.
_rooms = {}
_known = {}


def find_room(group, device):
    """How many bytes each rank of a group may share with the others, 0 where they cannot; the same on each rank.

    Ranks share memory where all are on one host and each has a GPU of its own that reads the others'. The first call
    for a group waits for all ranks.
    """
    key = group.group_name, device
    if key not in _rooms or _rooms[key][0] is not group:
        _rooms[key] = group, _find_room(group, device)
    return _rooms[key][1]


def _find_room(group, device):
    with open("/proc/sys/kernel/random/boot_id") as file:
        host = file.read()
    total, can_share = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), True
    if device.type == "cuda":
        total = torch.cuda.get_device_properties(device).total_memory
        try:
            from torch.distributed import _symmetric_memory  # noqa: F401
        except ImportError:
            can_share = False
    ranks = _gather(group, (host, device.index, total, can_share))
    can_share = all(each[0] == host and each[3] for each in ranks)
    if can_share and device.type == "cuda":
        others = [each[1] for each in ranks if each[1] != device.index]
        # A rank that sees its own GPU alone, as by CUDA_VISIBLE_DEVICES, does not know whether others read it.
        can_share = len({each[1] for each in ranks}) == len(ranks) <= torch.cuda.device_count() and all(
            torch.cuda.can_device_access_peer(device.index, each) for each in others
        )
    return int(_MOST_SHARED * min(each[2] for each in ranks)) if all(_gather(group, can_share)) else 0


def _gather(group, fact):
    rank, ranks = dist.get_rank(group), dist.get_world_size(group)
    facts, peers = [None] * ranks, [peer for peer in range(ranks) if peer != rank]
    name_ranks(lambda: dist.all_gather_object(facts, fact, group=group), rank, peers)
    return facts


def share(group, device, size):
    """The `Shared` memory of a group with at least so many bytes on each rank: a number that is the same on each.

    It stays until a call needs more, or `free_memory`.
    """
    key = group.group_name, device
    shared = _known.get(key)
    if shared is None or shared.group is not group or shared.size < size:
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        # The memory of before is given back before there is more.
        shared = _known[key] = None
        size = max(1, -(-size // _STEP)) * _STEP
        shared = _known[key] = (_OfGpus if device.type == "cuda" else _OfHost)(group, device, size)
    return shared


def free_memory():
    """Gives back the memory that this process shares with others for exchanges.

    All ranks call it, when their results are there; the next call of `attention` takes it again.
    """
    if any(device.type == "cuda" for _, device in _known):
        torch.cuda.synchronize()
    _known.clear()


class Shared:
    """So many bytes of each rank.

    Ranks `meet` before and after others read or write their memory.
    """

    def __init__(self, group, size, memories):
        self.group, self.size = group, size
        self.rank, self.ranks = dist.get_rank(group), dist.get_world_size(group)
        self._memories, self._typed = memories, {}

    def get(self, rank, start, shape, dtype):
        """A tensor in the memory of a rank, from a byte on that is a multiple of the element's."""
        key = rank, dtype
        if key not in self._typed:
            self._typed[key] = self._memories[rank].view(dtype)
        strides = [1]
        for size in reversed(shape[1:]):
            strides.append(strides[-1] * size)
        memory = self._typed[key]
        return memory.as_strided(shape, strides[::-1], memory.storage_offset() + start // dtype.itemsize)

    def copy(self, pairs):
        """Copies (to, source), after what is on the current stream; returns what waits for it.

        Tensors are contiguous, or (batch, heads, rows, ...) whose heads have contiguous rows.
        """
        raise NotImplementedError

    def beside(self):
        """A context in which kernels are queued on another stream, if there are streams, behind what is before the
        last meeting. The next meeting, or `leave`, waits for them, too; what they allocate is used there, or after that.
        """
        return contextlib.nullcontext()

    def leave(self):
        """Notes that a call uses this memory no longer behind what is on the current stream; the next one's may be
        another stream.
        """


class _OfGpus(Shared):
    def __init__(self, group, device, size):
        from torch.distributed import _symmetric_memory

        memory = _symmetric_memory.empty(size, dtype=torch.uint8, device=device)
        self._handle = _symmetric_memory.rendezvous(memory, group)
        ranks = range(dist.get_world_size(group))
        super().__init__(group, size, [self._handle.get_buffer(rank, (size,), torch.uint8) for rank in ranks])
        self._stream, self._beside = torch.cuda.Stream(device), torch.cuda.Stream(device)
        self._timeout = int(group._get_backend(device).options._timeout.total_seconds() * 1e3)
        self._last = None

    def meet(self):
        """What is on any rank's current stream behind it begins when what is before it is done on all ranks."""
        if self._last is not None:
            torch.cuda.current_stream().wait_event(self._last)
            self._last = None
        torch.cuda.current_stream().wait_stream(self._beside)
        self._handle.barrier(channel=0, timeout_ms=self._timeout)
        self._beside.wait_stream(torch.cuda.current_stream())

    def beside(self):
        return torch.cuda.stream(self._beside)

    def leave(self):
        torch.cuda.current_stream().wait_stream(self._beside)
        self._last = torch.cuda.current_stream().record_event()

    def copy(self, pairs):
        if not pairs:
            return lambda: None
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            for to, source in pairs:
                if to.is_contiguous() and source.is_contiguous():
                    to.copy_(source)
                else:
                    _copy_heads(to, source, self._stream)
            return self._stream.record_event().wait


def _list_fields(side):
    fields = [("x", ctypes.c_size_t), ("y", ctypes.c_size_t), ("kind", ctypes.c_int), ("host", ctypes.c_void_p)]
    fields += [("device", ctypes.c_uint64), ("array", ctypes.c_void_p), ("pitch", ctypes.c_size_t)]
    return [(f"{side}_{name}", kind) for name, kind in fields]


class _Copy(ctypes.Structure):
    """CUDA_MEMCPY2D of the driver: so many rows of a width in bytes, a pitch from each other."""

    _fields_ = [*_list_fields("source"), *_list_fields("to"), ("width", ctypes.c_size_t), ("height", ctypes.c_size_t)]


#: CU_MEMORYTYPE_UNIFIED: the address says where it is.
_UNIFIED = 4


@functools.lru_cache(maxsize=None)
def _get_driver():
    return ctypes.CDLL("libcuda.so.1")


def _copy_heads(to, source, stream):
    """Copies tensors with gaps between heads by a copy engine; PyTorch would do it by a kernel."""
    for each, other in zip(to, source):
        pitches = [tensor.stride(0) * tensor.element_size() for tensor in (each, other)]
        width = other[0].numel() * other.element_size()
        copy = _Copy(source_kind=_UNIFIED, source_device=other.data_ptr(), source_pitch=pitches[1])
        copy.to_kind, copy.to_device, copy.to_pitch = _UNIFIED, each.data_ptr(), pitches[0]
        copy.width, copy.height = width, len(other)
        failure = _get_driver().cuMemcpy2DAsync_v2(ctypes.byref(copy), ctypes.c_void_p(stream.cuda_stream))
        if failure:
            raise RuntimeError(f"cuMemcpy2DAsync of {len(other)} heads of {width} bytes failed with {failure}")


class _OfHost(Shared):
    def __init__(self, group, device, size):
        rank, names = dist.get_rank(group), _gather(group, f"flash-mlir-{uuid.uuid4()}")
        folder = "/dev/shm" if os.path.isdir("/dev/shm") else tempfile.gettempdir()
        paths = [os.path.join(folder, name) for name in names]
        with open(paths[rank], "wb") as file:
            try:
                # A file that there is no room for ends a process that writes to it.
                os.posix_fallocate(file.fileno(), 0, size)
                failure = None
            except OSError as error:
                failure = error
        try:
            failures = [each for each in _gather(group, failure) if each is not None]
            if failures:
                raise OSError(f"ranks cannot share {size} bytes each in {folder}: {failures[0]}")
            memories = [torch.from_file(path, shared=True, size=size, dtype=torch.uint8) for path in paths]
            _gather(group, None)
        finally:
            os.unlink(paths[rank])
        super().__init__(group, size, memories)

    def meet(self):
        peers = [peer for peer in range(self.ranks) if peer != self.rank]
        name_ranks(lambda: dist.barrier(self.group), self.rank, peers)

    def copy(self, pairs):
        for to, source in pairs:
            to.copy_(source)
        return lambda: None


class Layout:
    """Where each rank has rows of keys, and gradients that it receives, in the memory that it shares.

    Args:
      transfers: `transfers.Transfers` of a gather.
      batch, dims, bytes: The batch size, (D, D of values) and the bytes of an element.
      heads: Of each unit the number of heads of keys.

    Rows are outside: a tensor is (rows, batch, heads, D).
    """

    _ALIGNMENT = 256

    def __init__(self, transfers, batch, dims, bytes, heads):
        self._transfers, self._batch, self._dims, self._bytes = transfers, batch, dims, bytes
        self._heads = heads
        ranks = range(transfers.ranks)
        starts = [self._place_keys(rank) for rank in ranks]
        self._keys = [places for places, _ in starts]
        #: Where gradients begin is the same on all ranks.
        self._end_of_keys = max((end for _, end in starts), default=0)
        gradients = [self._place_gradients(rank) for rank in ranks]
        self._gradients = [places for places, _ in gradients]
        self.size_of_keys = self._end_of_keys
        #: How many bytes each rank shares in the backward pass.
        self.size = max((end for _, end in gradients), default=0)

    def _measure(self, unit, number, rows):
        size = rows * self._batch * self._heads[unit] * self._dims[number] * self._bytes
        return -(-size // self._ALIGNMENT) * self._ALIGNMENT

    def _place_keys(self, rank):
        places, end = {}, 0
        rows = sum(stop - start for start, stop in self._transfers.exports(rank))
        for unit in range(len(self._heads)):
            for number in range(2):
                places[unit, number] = end
                end += self._measure(unit, number, rows)
        return places, end

    def _place_gradients(self, rank):
        places, end = {}, self._end_of_keys
        for unit in range(len(self._heads)):
            places[unit] = found = []
            for sender, contribution in self._transfers.list_received_gradients(rank, 0):
                for number in range(2):
                    for start, place, count in self._transfers.list_overlaps(rank, contribution.ranges):
                        found.append((sender, contribution, number, start, place, count, end))
                        if sender != rank:
                            end += self._measure(unit, number, count)
        return places, end

    def get_keys(self, shared, dtype, rank, unit, number):
        """What a rank holds of the keys (number 0) or values (1) of a unit."""
        rows = sum(stop - start for start, stop in self._transfers.exports(rank))
        return self._get(shared, dtype, rank, self._keys[rank][unit, number], unit, number, rows)

    def list_gradients(self, shared, dtype, rank, unit):
        """(`Contribution`, key (0) or value (1), first row among the rank's, position in the contribution, count, tensor
        that the sender writes into, or None for the rank's own) in the order in which they are added.
        """
        return [
            (*each, None if sender == rank else self._get(shared, dtype, rank, end, unit, each[1], each[-1]))
            for sender, *each, end in self._gradients[rank][unit]
        ]

    def _get(self, shared, dtype, rank, start, unit, number, rows):
        return shared.get(rank, start, (rows, self._batch, self._heads[unit], self._dims[number]), dtype)
