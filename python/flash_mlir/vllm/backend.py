"""vLLM's attention backend, for the contracts of vLLM 0.26 and 0.33.

A call is `attention` of packed queries over pages: the cache, the block table and the lengths are taken as vLLM has them. It
reads nothing of a tensor on the host, so that full CUDA graphs may capture it with any batch.
"""

import dataclasses
import typing

import numpy
import torch
from vllm import envs
from vllm.v1.attention.backend import (
    AttentionBackend,
    AttentionCGSupport,
    AttentionImpl,
    AttentionMetadata,
    AttentionMetadataBuilder,
    AttentionType,
)

from ..attention import attention
from ..flash_attn import get_mask, get_schedule, get_score
from ..masks import as_mask, window
from ..operands import LARGEST_DIM

# Caches of 8 bits, whose memory has the dtype uint8, and what they hold.
_QUANTIZED = {"fp8": torch.float8_e4m3fn, "fp8_e4m3": torch.float8_e4m3fn}
_CACHE_DTYPES = ["auto", "float16", "bfloat16", *_QUANTIZED]
_WITHOUT_CACHE = AttentionType.ENCODER, AttentionType.ENCODER_ONLY


class Backend(AttentionBackend):
    """What vLLM reads before it chooses a backend, and the classes that serve it then."""

    supported_dtypes = [torch.float16, torch.bfloat16, torch.float32]
    supported_kv_cache_dtypes = _CACHE_DTYPES
    # vLLM calls `Impl.do_kv_cache_update` before `Impl.forward`, or writes the cache itself.
    forward_includes_kv_cache_update = False
    supports_kv_cache_update_bypass = True

    @staticmethod
    def get_name():
        return "CUSTOM"

    @staticmethod
    def get_impl_cls():
        return Impl

    @staticmethod
    def get_builder_cls():
        return MetadataBuilder

    @staticmethod
    def get_supported_kernel_block_sizes(kv_cache_spec=None):
        # Tiles of keys are parts of a page or some pages; vLLM divides blocks of other sizes into pages of these.
        return [16, 32, 64, 128, 256]

    # The next two are of vLLM 0.26 alone. Later ones have caches of this shape too, in any order in memory.

    @staticmethod
    def get_kv_cache_shape(num_blocks, block_size, num_kv_heads, head_size, cache_dtype_str="auto"):
        return num_blocks, num_kv_heads, block_size, 2 * head_size

    @staticmethod
    def get_kv_cache_stride_order(include_num_layers_dimension=False):
        from vllm.v1.attention.backends.utils import get_kv_cache_layout

        if get_kv_cache_layout() == "HND":
            return (1, 2, 0, 3, 4) if include_num_layers_dimension else (0, 1, 2, 3)
        return (1, 0, 3, 2, 4) if include_num_layers_dimension else (0, 2, 1, 3)

    @classmethod
    def supports_head_size(cls, head_size):
        return head_size % 8 == 0 and head_size <= LARGEST_DIM

    @classmethod
    def supports_compute_capability(cls, capability):
        return capability.major >= 8

    @classmethod
    def supports_attn_type(cls, attn_type):
        return attn_type in (AttentionType.DECODER, AttentionType.ENCODER_DECODER, *_WITHOUT_CACHE)

    @classmethod
    def supports_sink(cls):
        return True

    @classmethod
    def supports_sliding_window(cls):
        return True

    @classmethod
    def supports_non_causal(cls):
        return True

    @classmethod
    def supports_mm_prefix(cls):
        return True

    @classmethod
    def supports_rswa(cls):
        return True

    @classmethod
    def supports_batch_invariance(cls):
        return True


@dataclasses.dataclass
class Metadata(AttentionMetadata):
    """A batch of sequences, as the layers of a group see it.

    Attributes:
      query_start_loc: (sequences + 1,): where the queries of each sequence start.
      seq_lens: (sequences,): how many keys each has, the keys of the queries among them.
      block_table: (sequences, blocks of a sequence).
      slot_mapping: (tokens,): where the keys of new tokens go; -1 for none.
      causal: A truth value, or int32 (sequences,).
      mm_prefix_range_tensor: (tokens, 2): the first and the last key of the range in which a query sees all keys, such as
        its image; (-1, -1) for none. By this name models take it away from layers that have no such ranges.
      rswa_prefix_lens, rswa_window: int32 (sequences,), and a number: how many keys all queries see, and how many of the others
        a query sees, its own among them (reference sliding window attention); None for all.
      masks: The masks of layers with the same window, for what this batch has: they read its tensors.
    """

    num_actual_tokens: int
    max_query_len: int
    max_seq_len: int
    query_start_loc: torch.Tensor
    seq_lens: torch.Tensor
    block_table: torch.Tensor
    slot_mapping: torch.Tensor
    causal: typing.Union[bool, torch.Tensor] = True
    mm_prefix_range_tensor: typing.Optional[torch.Tensor] = None
    rswa_prefix_lens: typing.Optional[torch.Tensor] = None
    rswa_window: typing.Optional[int] = None
    masks: dict = dataclasses.field(default_factory=dict)


def _find_ranges(common, device):
    """`Metadata.mm_prefix_range_tensor`; None where no query lies in a range."""
    starts, lengths = common.query_start_loc_cpu.tolist(), common.seq_lens_cpu_upper_bound
    found = None
    for sequence, ranges in common.mm_req_doc_ranges.items():
        start, end = starts[sequence : sequence + 2]
        # Ranges are of prompts, whose lengths the host knows.
        before = int(lengths[sequence]) - (end - start)
        for first, last in ranges:
            rows = slice(start + max(first - before, 0), min(start + last + 1 - before, end))
            if first >= last or rows.start >= rows.stop:
                continue
            if found is None:
                found = numpy.full((starts[-1], 2), -1, numpy.int32)
            found[rows] = first, last
    if found is None:
        return None
    found = torch.from_numpy(found)
    # From other memory a copy may wait for the device.
    return (found.pin_memory() if device.type == "cuda" else found).to(device, non_blocking=True)


class MetadataBuilder(AttentionMetadataBuilder):
    supports_update_block_table = True
    # Metadata refers to vLLM's own tensors, which are up to date when a graph is replayed.
    supports_draft_decode_metadata_update = True

    def __init__(self, kv_cache_spec, layer_names, vllm_config, device):
        super().__init__(kv_cache_spec, layer_names, vllm_config, device)
        self._rswa_window = vllm_config.model_config.rswa_window
        if self._rswa_window is not None:
            # vLLM has them on the host, and a graph reads one tensor at each replay.
            self._prefix_lens = torch.zeros(vllm_config.scheduler_config.max_num_seqs, dtype=torch.int32, device=device)

    @classmethod
    def get_cudagraph_support(cls, vllm_config, kv_cache_spec):
        # A graph that was captured without ranges has a mask without them.
        if vllm_config.model_config.is_mm_prefix_lm:
            return AttentionCGSupport.UNIFORM_SINGLE_TOKEN_DECODE
        return AttentionCGSupport.ALWAYS

    def build(self, common_prefix_len, common_attn_metadata, fast_build=False):
        common = common_attn_metadata
        prefix_lens = None
        if self._rswa_window is not None:
            prefix_lens = self._prefix_lens[: common.num_reqs]
            if common.rswa_prefix_lens is not None:
                prefix_lens.copy_(common.rswa_prefix_lens[: common.num_reqs], non_blocking=True)
        return Metadata(
            num_actual_tokens=common.num_actual_tokens,
            max_query_len=common.max_query_len,
            max_seq_len=common.max_seq_len,
            query_start_loc=common.query_start_loc,
            seq_lens=common.seq_lens,
            block_table=common.block_table_tensor,
            slot_mapping=common.slot_mapping,
            causal=common.causal,
            mm_prefix_range_tensor=_find_ranges(common, self.device) if common.mm_req_doc_ranges else None,
            rswa_prefix_lens=prefix_lens,
            rswa_window=self._rswa_window,
        )

    def update_block_table(self, metadata, blk_table, slot_mapping):
        return dataclasses.replace(metadata, block_table=blk_table, slot_mapping=slot_mapping)

    def update_draft_decode_metadata(self, metadata):
        pass


def _make_mask(is_causal, left):
    """The mask of a layer whose queries see `left` keys before their own, and as many behind it if not causal; None is all."""
    return get_mask(is_causal, (left, left), None)


def _add_ranges(made, ranges, starts, left):
    """A mask, and the keys of each query's range; `left` limits these, too, unless it is None."""

    def is_in_range(b, h, q, k):
        row = starts[b] + q
        return (k >= ranges[row, 0]) & (k <= ranges[row, 1])

    added = as_mask(is_in_range)
    return made | (added if left is None else added & window(left=left, right=None))


def _add_reference_window(made, prefix_lens, size):
    """What a mask keeps of the first keys of each sequence, and of the last `size` before each query."""
    return made & (as_mask(lambda b, h, q, k: k < prefix_lens[b]) | window(left=size - 1, right=None))


class Impl(AttentionImpl):
    """The attention of a layer."""

    supports_dcp = False

    def __init__(
        self,
        num_heads,
        head_size,
        scale,
        num_kv_heads=None,
        alibi_slopes=None,
        sliding_window=None,
        kv_cache_dtype="auto",
        logits_soft_cap=None,
        attn_type=AttentionType.DECODER,
        kv_sharing_target_layer_name=None,
        sinks=None,
    ):
        if kv_cache_dtype not in _CACHE_DTYPES:
            raise NotImplementedError(
                f"kv_cache_dtype is {kv_cache_dtype}; the backend of flash-mlir has {', '.join(_CACHE_DTYPES)}"
            )
        if kv_cache_dtype in _QUANTIZED and head_size % 16 and attn_type not in _WITHOUT_CACHE:
            raise NotImplementedError(f"head_size is {head_size}; with kv_cache_dtype {kv_cache_dtype} it is a multiple of 16")
        self.num_heads = num_heads
        self.head_size = head_size
        self.scale = float(scale)
        self.num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        self.kv_cache_dtype = kv_cache_dtype
        self.attn_type = attn_type
        self.sinks = sinks
        self._float_sinks = sinks
        # vLLM makes layers with the model's device as the default one.
        slopes = None if alibi_slopes is None else torch.tensor(alibi_slopes, dtype=torch.float32)
        self._score = get_score(logits_soft_cap, slopes, None)
        # vLLM's windows count a query's own key.
        self._left = None if sliding_window is None else sliding_window - 1
        self._masks = {is_causal: _make_mask(is_causal, self._left) for is_causal in (False, True)}
        # As FlashAttention's 1: a token has the same bits in any batch.
        self._num_splits = 1 if envs.VLLM_BATCH_INVARIANT else 0

    def process_weights_after_loading(self, act_dtype):
        self._float_sinks = None if self.sinks is None else self.sinks.float()

    def forward(
        self, layer, query, key, value, kv_cache, attn_metadata, output, output_scale=None, output_block_scale=None
    ):
        """Writes attention into `output` (tokens, heads, D), and 0 into rows that pad the batch."""
        if output_scale is not None or output_block_scale is not None:
            raise NotImplementedError("the backend of flash-mlir does not quantize its output")
        batch = attn_metadata
        if batch is None:
            # vLLM measures how much memory a model takes.
            return output.fill_(0)
        if self.attn_type in _WITHOUT_CACHE:
            mask, keys, values = self._masks[False], key, value
            where = dict(key_offsets=batch.query_start_loc)
        else:
            mask, (keys, values) = self._get_mask(layer, batch), self._split(kv_cache)
            where = dict(page_table=batch.block_table, key_lengths=batch.seq_lens)
            if self.kv_cache_dtype in _QUANTIZED:
                if query.dtype == torch.float32:
                    raise NotImplementedError(f"the model has float32; with kv_cache_dtype {self.kv_cache_dtype} it has float16 or bfloat16")
                keys, values = (x.view(_QUANTIZED[self.kv_cache_dtype]) for x in (keys, values))
                where.update(key_scale=layer._k_scale, value_scale=layer._v_scale)
        return attention(
            query,
            keys,
            values,
            mask,
            score=self._score,
            scale=self.scale,
            sink=self._float_sinks,
            query_offsets=batch.query_start_loc,
            schedule=get_schedule(self._num_splits, keys, "page_table" in where),
            out=output,
            **where,
        )

    def do_kv_cache_update(self, layer, key, value, kv_cache, slot_mapping):
        """Writes the keys and values of new tokens into the cache, by vLLM's kernel, which leaves out slots of -1."""
        if self.attn_type in _WITHOUT_CACHE:
            return
        from vllm._custom_ops import reshape_and_cache_flash

        scales = layer._k_scale, layer._v_scale
        reshape_and_cache_flash(key, value, *self._split(kv_cache), slot_mapping, self.kv_cache_dtype, *scales)

    def _split(self, kv_cache):
        """Keys and values as (blocks, rows of a block, heads, D): views, of (blocks, heads, rows of a block, 2 D)."""
        return kv_cache.transpose(1, 2).split(self.head_size, dim=-1)

    def _get_mask(self, layer, batch):
        is_by_sequence, ranges = isinstance(batch.causal, torch.Tensor), batch.mm_prefix_range_tensor
        # As in vLLM's own backends, these two are of batches that are causal.
        is_causal = not is_by_sequence and batch.causal
        has_ranges, has_prefix = is_causal and ranges is not None, is_causal and batch.rswa_prefix_lens is not None
        if not (is_by_sequence or has_ranges or has_prefix):
            return self._masks[batch.causal]
        # Layers of a group may have different windows.
        limit = self._left if getattr(layer, "mm_prefix_clamp_sliding_window", False) else None
        key = self._left, limit, has_ranges
        if key not in batch.masks:
            made = _make_mask(batch.causal, self._left) if is_by_sequence else self._masks[True]
            if has_ranges:
                made = _add_ranges(made, ranges, batch.query_start_loc, limit)
            if has_prefix:
                made = _add_reference_window(made, batch.rswa_prefix_lens, batch.rswa_window)
            batch.masks[key] = made
        return batch.masks[key]
