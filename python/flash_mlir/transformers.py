"""Attention for Transformers' models.

    import flash_mlir.transformers

    name = flash_mlir.transformers.register()
    model = AutoModelForCausalLM.from_pretrained(path, attn_implementation=name)

Transformers takes two functions of a name: one that makes a mask once for all layers of a kind, and one that computes
attention. The first leaves the mask a function of positions, which the compiler takes apart; the 2-D mask of padding
is a tensor that it reads, and packed rows are sequences by offsets. A 4-D mask is never made.
"""

import functools
import inspect
import math
import sys
import types

import torch

from .attention import attention
from .expressions import Tensor, key_length, query_length
from .flash_attn import flash_attn_func, flash_attn_varlen_func
from .masks import Mask, causal, is_compiling
from .masks import mask as as_mask
from .number_functions import tanh
from .offsets import document_offsets
from .preparation import get_shared_mask
from .torch_state import is_watched

#: Transformers takes every name with "flash" in it for one of FlashAttention's libraries, which have other masks.
NAME = "mlir"
#: One of these, for `register_flash`. With a 2 or 3 in it, Transformers would decode by block tables, and pad batches by sequences
#: without pages, which PyTorch's kernels for writing keys do not take.
FLASH_NAME = "flash_mlir"

# How many keys there are before the first query. One object, by which functions are found again.
_PAST = key_length - query_length


class ModelMask(torch.Tensor):
    """What the models hand from the mask function to the attention function.

    To a model's own code it is the tensor of numbers to add that Transformers makes for `eager`, of shape (batch, 1,
    queries, keys). That is only made where code reads, slices or changes it.

    Attributes:
      mask: What `attention` takes; None keeps all keys.
      sequences: Of rows that may be packed the mask inside of a sequence, and where sequences start in all rows, if positions
        say so; None where the mask is none of positions alone.
    """

    @staticmethod
    def make(mask, shape, make_dense=None, dtype=torch.float32, device="cpu", sequences=None):
        """`make_dense` makes the tensor."""
        # One element in memory, which nothing reads.
        self = torch.full((), math.nan, dtype=dtype, device=device).expand(shape).as_subclass(ModelMask)
        self.mask = mask
        self.sequences = sequences
        self._make_dense = make_dense
        self._dense = None
        return self

    @property
    def dense(self):
        if self._dense is None:
            # Its version says whether it has been changed.
            with torch.inference_mode(False):
                self._dense = self._make_dense()
        return self._dense

    @property
    def is_changed(self):
        """Whether the model has written into the tensor or a view of it."""
        return self._dense is not None and self._dense._version != 0

    def _keep(self, function, arguments, options):
        """The mask for a call that changes nothing of the tensor; None for others."""
        if function is torch.Tensor.contiguous or function is torch.Tensor.detach:
            return self
        if function is torch.Tensor.__getitem__:
            index = arguments[1] if isinstance(arguments[1], tuple) else (arguments[1],)
            ends = zip(index, self.sizes)
            is_all = all(isinstance(i, slice) and i.indices(size) == (0, size, 1) for i, size in ends)
            return self if is_all and len(index) <= len(self.sizes) else None
        if function is not torch.Tensor.to or self.is_changed:
            return None
        target = torch.empty((), dtype=self.dtype, device=self.device)
        moved = target.to(*arguments[1:], **options)
        if moved is target:
            return self
        if moved.dtype != self.dtype:
            return None
        mask = _map_arrays(self.mask, lambda array: array.to(moved.device))
        sequences = self.sequences
        if sequences is not None and sequences[1] is not None:
            sequences = sequences[0], sequences[1].to(moved.device)
        return ModelMask.make(mask, self.sizes, lambda: self.dense.to(moved.device), self.dtype, moved.device, sequences)

    @property
    def sizes(self):
        with torch._C.DisableTorchFunctionSubclass():
            return tuple(self.shape)

    @classmethod
    def __torch_function__(cls, function, types, arguments=(), options=None):
        options = options or {}
        if function in _OF_TYPE:
            return super().__torch_function__(function, types, arguments, options)
        if arguments and isinstance(arguments[0], ModelMask):
            kept = arguments[0]._keep(function, arguments, options)
            if kept is not None:
                return kept
        arguments, options = torch.utils._pytree.tree_map_only(ModelMask, lambda mask: mask.dense, (arguments, options))
        return function(*arguments, **options)


# What may be read of a tensor without its elements.
_OF_TYPE = {
    *(getattr(torch.Tensor, name).__get__ for name in ("shape", "ndim", "dtype", "device", "is_cuda", "requires_grad")),
    *(getattr(torch.Tensor, name) for name in ("size", "dim", "numel", "is_floating_point", "__len__")),
}


def _map_arrays(mask, change):
    """The mask that reads what `change` makes of its arrays."""
    if not isinstance(mask, Mask) or not mask.arrays:
        return mask
    return mask.with_tensors([Tensor(change(array), "mask") for array in mask.arrays], mask.lengths)


def _get_offsets(query_count, key_count, query_offset, key_offset):
    """What is to be added to the positions of queries and of keys: no number that another call changes."""
    is_known = isinstance(query_offset, int) and isinstance(key_offset, int) and key_offset == 0
    if is_known and query_offset == key_count - query_count:
        return _PAST, 0
    if is_known and query_offset == 0:
        return 0, 0
    return query_offset, key_offset


def _as_number(offset, device):
    """An offset that functions read at each call."""
    if isinstance(offset, torch.Tensor):
        # A static cache counts on in its own tensor before the mask is read.
        return offset.reshape(()).to(device, copy=True)
    return torch.tensor(offset, device=device) if isinstance(offset, int) and offset != 0 else offset


def _split(function):
    """What a mask function of Transformers keeps inside of each sequence of packed rows, the number of each token's sequence
    and the positions, as Transformers puts them together; None for other functions.
    """
    from transformers import masking_utils

    make = getattr(masking_utils, "packed_sequence_compatibility_function", None)
    probe = make and make(masking_utils.causal_mask_function, None, None)

    def get_parts(function):
        # Each is a closure of a tuple of functions, and these are closures of what they were made of.
        parts = inspect.getclosurevars(function).nonlocals.get("mask_functions", ())
        return parts if len(parts) == 2 and all(hasattr(part, "__code__") for part in parts) else None

    found, expected = (get_parts(each) if hasattr(each, "__code__") else None for each in (function, probe))
    if not found or not expected or any(part.__code__ is not other.__code__ for part, other in zip(found, expected)):
        return None
    numbers, inside = (inspect.getclosurevars(part).nonlocals for part in found)
    names = "packed_sequence_mask", "mask_function", "position_ids"
    if names[0] not in numbers or any(name not in inside for name in names[1:]):
        return None
    return inside["mask_function"], numbers["packed_sequence_mask"], inside["position_ids"]


def _find_sequences(mask_function, shape):
    """`ModelMask.sequences` of a mask function of rows without padding, of that shape."""
    from transformers.masking_utils import bidirectional_mask_function, causal_mask_function

    split, offsets, start = _split(mask_function), None, 0
    if split is not None:
        mask_function, numbers, positions = split
        offsets = document_offsets(numbers.expand(shape))
        start, last = torch.stack(positions.expand(shape).flatten()[offsets[:-1]].aminmax()).tolist()
        if start != last:
            return None
    if mask_function is bidirectional_mask_function:
        return None, offsets
    if mask_function is causal_mask_function:
        return causal(), offsets

    def inside(b, h, q, k):
        return mask_function(b, h, q + start, k + start)

    mask = get_shared_mask(inside)
    # What arrays say is of tokens in rows.
    return None if mask.arrays else (mask, offsets)


def make_mask(
    batch_size,
    q_length,
    kv_length,
    q_offset=0,
    kv_offset=0,
    mask_function=None,
    attention_mask=None,
    dtype=torch.float32,
    allow_is_bidirectional_skip=False,
    use_vmap=False,
    device="cpu",
    **options,
):
    """The mask function that `register` hands to Transformers, with the arguments of its `eager_mask`."""
    from transformers.masking_utils import bidirectional_mask_function, causal_mask_function, eager_mask

    if isinstance(q_offset, torch.Tensor):
        q_offset = _as_number(q_offset, device)
    padding = attention_mask
    if padding is not None:
        missing = kv_length + kv_offset - padding.shape[-1]
        if missing > 0:
            padding = torch.nn.functional.pad(padding, (0, missing))
        padding = padding[:, kv_offset : kv_offset + kv_length].to(torch.bool)
        # As Transformers does for its own: most batches have none.
        if not is_compiling() and bool(padding.all()):
            padding = None
    more_queries, more_keys = _get_offsets(q_length, kv_length, q_offset, kv_offset)
    is_aligned = not isinstance(more_queries, (int, torch.Tensor))
    if mask_function is bidirectional_mask_function:
        positions = None
    elif mask_function is causal_mask_function and is_aligned:
        positions = causal()
    else:
        more_queries, more_keys = _as_number(more_queries, device), _as_number(more_keys, device)

        def positions(b, h, q, k):
            return mask_function(b, h, q + more_queries, k + more_keys)

    if padding is None:
        mask = positions
    else:

        def is_token(b, h, q, k):
            return padding[b, k]

        mask = is_token if positions is None else _join(positions, is_token)
    if mask is None and allow_is_bidirectional_skip:
        return None
    if not is_compiling():
        if mask is not None and not isinstance(mask, Mask):
            mask = get_shared_mask(mask)
        # What the mask reads is the caller's, who may change it before the mask is read.
        mask = _map_arrays(mask, torch.clone)
    shape = batch_size, 1, q_length, kv_length

    def make_dense():
        return eager_mask(
            *(batch_size, q_length, kv_length, q_offset, kv_offset, mask_function, attention_mask, dtype),
            use_vmap=use_vmap,
            device=device,
        )

    sequences = None
    is_whole = isinstance(q_offset, int) and q_offset == kv_offset == 0 and q_length == kv_length
    # In a graph that is being made, what positions hold would be constants.
    if is_whole and attention_mask is None and not is_compiling() and not is_watched():
        sequences = _find_sequences(mask_function, (batch_size, q_length))
    return ModelMask.make(mask, shape, make_dense, dtype, device, sequences)


def _join(positions, is_token):
    return (positions if isinstance(positions, Mask) else as_mask(positions)) & is_token


@functools.lru_cache(maxsize=256)
def _make_cap(cap):
    return lambda s, b, h, q, k: cap * tanh(s / cap)


def _get_strides(array, query):
    """What positions are multiplied by: 0 in dimensions (batches, heads, queries, keys) that have one element for all."""
    if array is None:
        return None
    batches, heads, queries, keys = array.shape
    # One kernel is for one query and for more.
    return int(batches > 1), int(heads > 1), int(queries > 1 or query.shape[2] == 1), int(keys > 1)


def _make_score(cap, bias, dense, query):
    """The function of scores with a cap, a bias and a mask of numbers that is given as a tensor."""
    if bias is None and dense is None:
        return None if cap is None else _make_cap(cap)
    of_bias, of_dense = _get_strides(bias, query), _get_strides(dense, query)

    def score(s, b, h, q, k):
        if cap is not None:
            s = cap * tanh(s / cap)
        if bias is not None:
            s = s + bias[b * of_bias[0], h * of_bias[1], q * of_bias[2], k * of_bias[3]]
        if dense is not None:
            s = s + dense[b * of_dense[0], h * of_dense[1], q * of_dense[2], k * of_dense[3]]
        return s

    return score


# What models hand on that eager attention does not look at either: windows are in the mask, and sequences of a packed
# batch are distinguished by their positions or offsets. What continuous batching says of logits is for its own code.
_WITHOUT_EFFECT = frozenset(
    "max_length_q max_length_k position_ids cache_position token_type_ids mm_token_type_ids input_ids labels "
    "num_items_in_batch logits_to_keep logits_indices logits_processor_args sliding_window".split()
)


_REFUSED = ("output_attentions", "head_mask")


@functools.lru_cache(maxsize=1024)
def _get_eager_parameters(kind):
    """The arguments that the eager attention of a model's own module has."""
    eager = getattr(sys.modules.get(kind.__module__), "eager_attention_forward", None)
    return frozenset(inspect.signature(eager).parameters) if eager is not None else frozenset()


def _check_options(module, options):
    """An argument that `attend` does not know must not change what eager attention computes."""
    for name, value in options.items():
        if value is None or value is False or name in _WITHOUT_EFFECT:
            continue
        if name in _REFUSED or isinstance(value, torch.Tensor) or name in _get_eager_parameters(type(module)):
            raise ValueError(f"attention takes no {name}; use attn_implementation='eager'")


def _attend_to_sequences(query, key, value, mask, score, scale, sink, offsets):
    """Attention of rows that are packed."""
    batch, _, length, _ = query.shape
    query, key, value = (array.transpose(1, 2).flatten(0, 1) for array in (query, key, value))
    output = attention(
        query, key, value, mask=mask, score=score, scale=scale, sink=sink, query_offsets=offsets[0], key_offsets=offsets[1]
    )
    return output.unflatten(0, (batch, length))


def attend(
    module,
    query,
    key,
    value,
    attention_mask,
    dropout=0.0,
    scaling=None,
    is_causal=None,
    softcap=None,
    s_aux=None,
    position_bias=None,
    sinks=None,
    cache=None,
    cu_seq_lens_q=None,
    cu_seq_lens_k=None,
    **options,
):
    """The attention function that `register` hands to Transformers.

    Args:
      query: (batch, heads, query length, D); key and value with their own number of heads.
      attention_mask: A ModelMask; None, which keeps all keys unless `is_causal` is True; or a 4-D tensor of truth
        values or of numbers to add, that the caller made. Sizes of 1 are for all batches, heads, queries or keys.
      softcap, s_aux: The cap of scores, and the sinks of heads.
      position_bias: Numbers to add (1 or batch, 1 or heads, 1 or queries, keys).
      sinks: A sink of each query (batch, heads, queries, 1).
      cache: The paged cache of continuous batching, into which key and value go.
      cu_seq_lens_q, cu_seq_lens_k: Where each sequence of packed rows starts; needed where positions do not say.
      options: What other implementations take, of no effect on eager attention.

    Returns:
      (batch, query length, heads, Dv), contiguous, and None instead of the weights.

    Raises:
      ValueError: dropout, weights (output_attentions), a head mask, or any other argument that may change the result
        and that is not known is given.
    """
    if dropout:
        raise ValueError(f"attention has no dropout, and dropout is {dropout}; set it to 0 in the model's config")
    if options:
        _check_options(module, options)
    if cache is not None:
        # It replaces offsets for each kind of layer by the layer's.
        kwargs = {**options, "cu_seq_lens_q": cu_seq_lens_q, "cu_seq_lens_k": cu_seq_lens_k}
        key, value = cache.update(key_states=key, value_states=value, layer_idx=module.layer_idx, kwargs=kwargs)
    mask = dense = sequences = None
    if isinstance(attention_mask, ModelMask) and attention_mask.is_changed:
        attention_mask = attention_mask.dense
    if isinstance(attention_mask, ModelMask):
        sequences = attention_mask.sequences
    elif attention_mask is None:
        sequences = causal() if is_causal else None, None
    if isinstance(attention_mask, ModelMask):
        if attention_mask.sizes[3] != key.shape[2]:
            raise ValueError(f"the mask is for {attention_mask.sizes[3]} keys, and there are {key.shape[2]}")
        mask = attention_mask.mask
    elif attention_mask is None:
        if is_causal and query.shape[2] > 1:
            mask = causal(top_left=True)
    elif attention_mask.dtype == torch.bool:
        strides = _get_strides(attention_mask, query)

        def mask(b, h, q, k):
            return attention_mask[b * strides[0], h * strides[1], q * strides[2], k * strides[3]]

    else:
        dense = attention_mask
    score = _make_score(softcap, position_bias, dense, query)
    sink = None if s_aux is None else s_aux.float()
    if sequences is not None and position_bias is None and sinks is None and cache is None:
        mask_inside, offsets = sequences
        offsets = (cu_seq_lens_q, cu_seq_lens_k) if offsets is None else (offsets, offsets)
        if offsets[0] is not None and offsets[1] is not None:
            return _attend_to_sequences(query, key, value, mask_inside, score, scaling, sink, offsets), None
    options = dict(mask=mask, score=score, scale=scaling, sink=sink)
    if sinks is None:
        output = attention(query, key, value, **options)
    else:
        # A sink takes part in the sum that the log-sum-exp is of.
        output, lse = attention(query, key, value, return_lse=True, **options)
        output = output * torch.sigmoid(lse.unsqueeze(-1) - sinks.float()).to(output.dtype)
    return output.transpose(1, 2).contiguous(), None


def register(name=NAME):
    """Makes `attn_implementation=name` this package's attention, for all models that take one; returns the name.

    By the name "paged|eager" it is for continuous batching, which makes the masks itself and knows no other names.

    Raises ValueError for a name with "flash" in it, which Transformers takes for FlashAttention's.
    """
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface

    if "flash" in name:
        raise ValueError(
            f"{name!r} has 'flash' in it, and Transformers takes that for FlashAttention; {NAME!r} is possible, and "
            "register_flash is for such a name"
        )
    AttentionInterface.register(name, attend)
    if name != "paged|eager":
        AttentionMaskInterface.register(name, make_mask)
    return name


def register_flash():
    """Makes `attn_implementation="flash_mlir"` Transformers' code for FlashAttention with this package's functions; returns the name.

    Continuous batching (`generate_batch`) gives such names packed rows, where it makes a dense mask for others.

    Raises NotImplementedError where Transformers loads FlashAttention's libraries in another way than it is known to.
    """
    from transformers import AttentionInterface
    from transformers.integrations import hub_kernels
    from transformers.integrations.flash_attention import flash_attention_forward
    from transformers.masking_utils import AttentionMaskInterface, flash_attention_mask

    # Only this function is called for the functions of a name that Transformers does not know.
    load = getattr(hub_kernels, "load_and_register_attn_kernel", None)
    if load is None:
        import transformers

        raise NotImplementedError(f"Transformers {transformers.__version__} does not load kernels as 5.23 does; use register")
    if not hasattr(load, "of_flash_mlir"):

        @functools.wraps(load)
        def load_ours(attn_implementation, *arguments, **options):
            return load_ours.of_flash_mlir if attn_implementation == FLASH_NAME else load(attn_implementation, *arguments, **options)

        load_ours.of_flash_mlir = types.SimpleNamespace(
            flash_attn_func=flash_attn_func, flash_attn_varlen_func=flash_attn_varlen_func
        )
        hub_kernels.load_and_register_attn_kernel = load_ours
    AttentionInterface.register(FLASH_NAME, flash_attention_forward)
    AttentionMaskInterface.register(FLASH_NAME, flash_attention_mask)
    return FLASH_NAME
