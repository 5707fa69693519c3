"""Rows that ranks send each other, while something else is computed."""

import torch.distributed as dist

from ..errors import Error

_MOST_NUMBERS = 1 << 12
_ready = set()
_numbers = {}


def _draw_number(group):
    """The number of an exchange, by which gloo distinguishes what is sent in it from what is sent in the next one."""
    number = _numbers[group.group_name] = (_numbers.get(group.group_name, -1) + 1) % _MOST_NUMBERS
    return number


def name_ranks(function, rank, peers):
    """What a function returns, in which this rank waits for others; its errors name them."""
    try:
        return function()
    except RuntimeError as error:
        text = str(error).strip().splitlines()
        raise Error(
            f"rank {rank} cannot exchange rows with the ranks {', '.join(map(str, sorted(peers)))} of its group: one "
            f"of them has ended, has not called attention within the group's timeout, or has called it with other "
            f"sizes ({text[0] if text else error!r})"
        ) from error


def _get_ready(group, device):
    """Makes the communicator of a group of all its ranks: later not all of them may have something to send."""
    if device.type != "cuda" or group.group_name in _ready:
        return
    import torch

    dist.all_reduce(torch.zeros(1, device=device), group=group)
    _ready.add(group.group_name)


class Exchange:
    """Tensors that are sent to ranks of a group and received from them.

    What two ranks send each other is matched in the order in which both say it. Tensors are contiguous; what a rank
    would send itself, and what has no elements, is left out. Without a group there is one rank. All ranks start as
    many exchanges.
    """

    def __init__(self, group):
        self._group, self._rank = group, 0 if group is None else dist.get_rank(group)
        self._sent, self._received, self._works = [], [], []

    def send(self, peer, tensor):
        if peer != self._rank and tensor.numel():
            self._sent.append((peer, tensor))

    def receive(self, peer, tensor):
        if peer != self._rank and tensor.numel():
            self._received.append((peer, tensor))

    def start(self):
        """Starts all; on CUDA after what is on the current stream now."""
        if self._group is None:
            return self
        number = _draw_number(self._group)
        tensors = [tensor for _, tensor in self._sent + self._received]
        if not tensors:
            return self
        self._do(lambda: _get_ready(self._group, tensors[0].device))
        operations = []
        for function, parts in ((dist.isend, self._sent), (dist.irecv, self._received)):
            counts = {}
            for peer, tensor in parts:
                # NCCL matches by the order alone.
                count = counts[peer] = counts.get(peer, -1) + 1
                tag = number << 16 | count
                operations.append(
                    dist.P2POp(function, tensor, dist.get_global_rank(self._group, peer), self._group, tag)
                )
        self._works = self._do(lambda: dist.batch_isend_irecv(operations))
        return self

    def wait(self):
        """Waits for all, on CUDA without holding up the host; then tensors that were sent may change."""
        works, self._works = self._works, []
        for work in works:
            self._do(work.wait)
        self._sent = self._received = ()

    def _do(self, function):
        return name_ranks(function, self._rank, {peer for peer, _ in (*self._sent, *self._received)})


def gather_parts(group, tensor):
    """The tensors of all ranks, in their order."""
    exchange, parts = Exchange(group), []
    tensor = tensor.contiguous()
    for peer in range(dist.get_world_size(group)):
        exchange.send(peer, tensor)
        parts.append(tensor if peer == dist.get_rank(group) else tensor.new_empty(tensor.shape))
        exchange.receive(peer, parts[-1])
    exchange.start().wait()
    return parts
