"""Attention over sequences that several processes share: context parallelism with `torch.distributed`.

    from flash_mlir import distributed

    query, key, value = (distributed.shard(x) for x in (query, key, value))
    output = distributed.attention(query, key, value, mask=flash.causal())

See docs/distributed.md.
"""

from .attention import attention
from .decode import decode, stripe
from .explanation import Explanation, explain
from .shards import Shards, shard, unshard
from .shared import free_memory

__all__ = ["Explanation", "Shards", "attention", "decode", "explain", "free_memory", "shard", "stripe", "unshard"]
