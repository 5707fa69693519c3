"""Attention kernels from a compiler: masks and score functions in Python, fused kernels for CPUs and NVIDIA GPUs.

    import flash_mlir as flash

    output = flash.attention(query, key, value, mask=flash.causal() & flash.window(left=1023))
    capped = flash.attention(query, key, value, score=lambda s, b, h, q, k: 20.0 * flash.tanh(s / 20.0))

See docs/python.md.
"""

from . import cache, serving
from ._core import set_thread_count
from .attention import Attention, attention
from .blocks import Blocks
from .checking import checks
from .compiler import Kernel, Tiles, compile, get_device_target
from .errors import CompileError, DeviceError, Error, TraceError
from .expressions import key_length, query_length, tensor, where
from .flash_attn import flash_attn_func, flash_attn_varlen_func, varlen_attn
from .flex import flex_attention
from .gradients import attention_grad
from .kv_cache import flash_attn_with_kvcache
from .library import get_include, get_library
from .masks import Mask, causal, documents, full, key_lengths, mask, prefix, window
from .merging import merge, merge_attn_states, merge_state, merge_states
from .number_functions import (
    absolute,
    ceil,
    clip,
    cos,
    erf,
    exp,
    exp2,
    expm1,
    floor,
    log,
    log1p,
    log2,
    maximum,
    minimum,
    round,
    rsqrt,
    sigmoid,
    sign,
    sin,
    sqrt,
    tanh,
    trunc,
)
from .offsets import document_offsets
from .plans import Plan, plan
from .plot import Picture, plot
from .resources import Resources, resources
from .timelines import Timeline, timeline

from ._core import version as __version__

__all__ = [
    "Attention",
    "Blocks",
    "CompileError",
    "DeviceError",
    "Error",
    "Kernel",
    "Mask",
    "Plan",
    "Picture",
    "Resources",
    "Tiles",
    "Timeline",
    "TraceError",
    "absolute",
    "attention",
    "attention_grad",
    "cache",
    "causal",
    "ceil",
    "checks",
    "clip",
    "compile",
    "cos",
    "document_offsets",
    "documents",
    "erf",
    "exp",
    "exp2",
    "expm1",
    "flash_attn_func",
    "flash_attn_varlen_func",
    "flash_attn_with_kvcache",
    "flex_attention",
    "floor",
    "full",
    "get_device_target",
    "get_include",
    "get_library",
    "key_length",
    "key_lengths",
    "log",
    "log1p",
    "log2",
    "mask",
    "maximum",
    "merge",
    "merge_attn_states",
    "merge_state",
    "merge_states",
    "minimum",
    "plan",
    "plot",
    "prefix",
    "query_length",
    "resources",
    "round",
    "rsqrt",
    "serving",
    "set_thread_count",
    "sigmoid",
    "sign",
    "sin",
    "sqrt",
    "tanh",
    "tensor",
    "timeline",
    "trunc",
    "varlen_attn",
    "where",
    "window",
]
