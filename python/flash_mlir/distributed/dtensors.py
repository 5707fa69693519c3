"""DTensors whose rows are split over a mesh."""

import torch
from torch.distributed.tensor import DTensor, Shard

from .shards import Shards

_NAMES = "query", "key", "value"


def _get_shards(length, ranks):
    """The rows of each rank as DTensors have them: as torch.chunk cuts."""
    size = -(-length // ranks) if length else 0
    return Shards(
        length, ranks, [[(min(rank * size, length), min((rank + 1) * size, length))] for rank in range(ranks)]
    )


def unwrap(*tensors):
    """(local tensors, group, shards, key_shards, what makes DTensors of results)."""
    for name, tensor in zip(_NAMES, tensors):
        if not isinstance(tensor, DTensor):
            raise TypeError(f"{name} is a {type(tensor).__name__}, and others are DTensors; expected all of them")
    query = tensors[0]
    mesh, dim = query.device_mesh, query.dim() - 2
    if mesh.ndim != 1:
        raise ValueError(
            f"the mesh of query has {mesh.ndim} dimensions; expected one, over which rows are split; give "
            f"to_local() of tensors that are split further"
        )
    for name, tensor in zip(_NAMES, tensors):
        if tensor.device_mesh != mesh:
            raise ValueError(f"{name} has another mesh than query")
        (placement,) = tensor.placements
        if type(placement) is not Shard or placement.dim % tensor.dim() != dim:
            raise ValueError(f"{name} has the placement {placement}; expected Shard({dim}), that of its rows")
    group, ranks = mesh.get_group(), mesh.size()
    shards, key_shards = (_get_shards(tensor.shape[dim], ranks) for tensor in tensors[:2])

    def wrap_one(result):
        shape = torch.Size([*query.shape[:-1], result.shape[-1]]) if result.dim() == query.dim() else query.shape[:-1]
        strides = torch.empty(shape, device="meta").stride()
        return DTensor.from_local(result, mesh, [Shard(dim)], run_check=False, shape=shape, stride=strides)

    def wrap(results):
        return tuple(map(wrap_one, results)) if isinstance(results, tuple) else wrap_one(results)

    return [tensor.to_local() for tensor in tensors], group, shards, key_shards, wrap
