"""Types of the public interface. `A` is numpy.ndarray or torch.Tensor."""

import os
from typing import Any, Callable, Dict, List, Literal, NamedTuple, Optional, Sequence, Tuple, TypeVar, Union, overload

from . import cache as cache, serving as serving

A = TypeVar("A")
Value = Any
MaskFunction = Callable[[Value, Value, Value, Value], Value]
ScoreFunction = Callable[[Value, Value, Value, Value, Value], Value]
Target = str  # One of compiler.TARGETS.
TensorType = Tuple[str, Tuple[Optional[int], ...]]

__version__: str

class Error(RuntimeError): ...
class CompileError(Error): ...
class DeviceError(Error): ...
class TraceError(Error, TypeError): ...

class Mask:
    def __and__(self, other: Union[Mask, MaskFunction]) -> Mask: ...
    def __rand__(self, other: MaskFunction) -> Mask: ...
    def __or__(self, other: Union[Mask, MaskFunction]) -> Mask: ...
    def __ror__(self, other: MaskFunction) -> Mask: ...
    def __invert__(self) -> Mask: ...

class Plan:
    mask: Mask
    lengths: Optional[Any]
    @property
    def nbytes(self) -> int: ...

class Blocks(NamedTuple):
    indices: Any
    counts: Any
    size: Tuple[int, int]
    query_indices: Optional[Any] = None
    query_counts: Optional[Any] = None

def full() -> Mask: ...
def causal(top_left: bool = False, sequences: Optional[Any] = None) -> Mask: ...
def window(left: Optional[int] = None, right: Optional[int] = None) -> Mask: ...
def prefix(length: int) -> Mask: ...
def documents(query_ids: Any, key_ids: Any = None) -> Mask: ...
def key_lengths(lengths: Any) -> Mask: ...
def document_offsets(ids: Any, count: Optional[int] = None) -> Any: ...
def mask(function: MaskFunction) -> Mask: ...
def plan(
    mask: Union[Mask, MaskFunction],
    query: A,
    key: A,
    value: Optional[A] = None,
    lengths: Optional[A] = None,
    gradients: Optional[bool] = None,
    score: Optional[ScoreFunction] = None,
) -> Plan: ...
@overload
def attention(
    query: A,
    key: A,
    value: Optional[A] = None,
    mask: Union[Mask, MaskFunction, Plan, None] = None,
    score: Optional[ScoreFunction] = None,
    scale: Optional[float] = None,
    lengths: Optional[A] = None,
    sink: Optional[A] = None,
    return_lse: Literal[False] = False,
    blocks: Optional[Blocks] = None,
    query_offsets: Optional[A] = None,
    key_offsets: Optional[A] = None,
    page_table: Optional[A] = None,
    key_lengths: Optional[A] = None,
    schedule: Optional[str] = None,
    out: Optional[A] = None,
    key_scale: Union[float, A, None] = None,
    value_scale: Union[float, A, None] = None,
    value_dim: Optional[int] = None,
    query_scale: Union[float, A, None] = None,
) -> A: ...
@overload
def attention(
    query: A,
    key: A,
    value: Optional[A] = None,
    mask: Union[Mask, MaskFunction, Plan, None] = None,
    score: Optional[ScoreFunction] = None,
    scale: Optional[float] = None,
    lengths: Optional[A] = None,
    sink: Optional[A] = None,
    *,
    return_lse: Literal[True],
    blocks: Optional[Blocks] = None,
    query_offsets: Optional[A] = None,
    key_offsets: Optional[A] = None,
    page_table: Optional[A] = None,
    key_lengths: Optional[A] = None,
    schedule: Optional[str] = None,
    out: Optional[A] = None,
    key_scale: Union[float, A, None] = None,
    value_scale: Union[float, A, None] = None,
    value_dim: Optional[int] = None,
    query_scale: Union[float, A, None] = None,
) -> Tuple[A, A]: ...

def merge(
    outputs: Sequence[A], lses: Sequence[A], *, base: Union[Literal["e"], float] = "e", rows_first: bool = False
) -> Tuple[A, A]: ...
def merge_state(v_a: A, s_a: A, v_b: A, s_b: A) -> Tuple[A, A]: ...
def merge_states(v: A, s: A) -> Tuple[A, A]: ...
def merge_attn_states(
    output: A, prefix_output: A, prefix_lse: A, suffix_output: A, suffix_lse: A, output_lse: Optional[A] = None
) -> None: ...
def attention_grad(
    query: A,
    key: A,
    value: A,
    output: A,
    lse: A,
    output_grad: A,
    mask: Union[Mask, MaskFunction, Plan, None] = None,
    score: Optional[ScoreFunction] = None,
    scale: Optional[float] = None,
    lengths: Optional[A] = None,
    sink: Optional[A] = None,
    lse_grad: Optional[A] = None,
    wrt: Sequence[A] = (),
    blocks: Optional[Blocks] = None,
    query_offsets: Optional[A] = None,
    key_offsets: Optional[A] = None,
    key_lengths: Optional[A] = None,
) -> Tuple[A, ...]: ...

def flex_attention(
    query: Any,
    key: Any,
    value: Any,
    score_mod: Optional[ScoreFunction] = None,
    block_mask: Optional[Any] = None,
    scale: Optional[float] = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: Optional[Dict[str, Any]] = None,
    *,
    return_aux: Optional[Any] = None,
) -> Any: ...

def flash_attn_func(
    q: A,
    k: A,
    v: A,
    dropout_p: float = 0.0,
    softmax_scale: Optional[float] = None,
    causal: Union[bool, A] = False,
    window_size: Sequence[Optional[int]] = (-1, -1),
    softcap: Optional[float] = 0.0,
    alibi_slopes: Optional[A] = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
    *,
    return_lse: bool = False,
    learnable_sink: Optional[A] = None,
    mask: Union[Mask, MaskFunction, None] = None,
    score: Optional[ScoreFunction] = None,
    out: Optional[A] = None,
    q_descale: None = None,
    k_descale: Union[float, A, None] = None,
    v_descale: Union[float, A, None] = None,
) -> Any: ...
def flash_attn_varlen_func(
    q: A,
    k: A,
    v: A,
    cu_seqlens_q: Optional[A] = None,
    cu_seqlens_k: Optional[A] = None,
    max_seqlen_q: Optional[int] = None,
    max_seqlen_k: Optional[int] = None,
    dropout_p: float = 0.0,
    softmax_scale: Optional[float] = None,
    causal: Union[bool, A] = False,
    window_size: Sequence[Optional[int]] = (-1, -1),
    softcap: Optional[float] = 0.0,
    alibi_slopes: Optional[A] = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
    block_table: Optional[A] = None,
    *,
    return_lse: bool = False,
    learnable_sink: Optional[A] = None,
    seqused_k: Optional[A] = None,
    num_splits: Optional[int] = 0,
    mask: Union[Mask, MaskFunction, None] = None,
    score: Optional[ScoreFunction] = None,
    out: Optional[A] = None,
    q_descale: None = None,
    k_descale: Union[float, A, None] = None,
    v_descale: Union[float, A, None] = None,
) -> Any: ...
def flash_attn_with_kvcache(
    q: A,
    k_cache: A,
    v_cache: A,
    k: Optional[A] = None,
    v: Optional[A] = None,
    rotary_cos: None = None,
    rotary_sin: None = None,
    cache_seqlens: Union[int, A, None] = None,
    cache_batch_idx: Optional[A] = None,
    cache_leftpad: Optional[A] = None,
    block_table: Optional[A] = None,
    softmax_scale: Optional[float] = None,
    causal: Union[bool, A] = False,
    window_size: Sequence[Optional[int]] = (-1, -1),
    softcap: Optional[float] = 0.0,
    rotary_interleaved: bool = True,
    alibi_slopes: Optional[A] = None,
    num_splits: Optional[int] = 0,
    return_softmax_lse: bool = False,
    *,
    learnable_sink: Optional[A] = None,
    mask: Union[Mask, MaskFunction, None] = None,
    score: Optional[ScoreFunction] = None,
    out: Optional[A] = None,
    q_descale: None = None,
    k_descale: Union[float, A, None] = None,
    v_descale: Union[float, A, None] = None,
) -> Any: ...
def varlen_attn(
    query: A,
    key: A,
    value: A,
    cu_seq_q: A,
    cu_seq_k: Optional[A],
    max_q: Optional[int] = None,
    max_k: Optional[int] = None,
    is_causal: bool = False,
    *,
    return_aux: Optional[Any] = None,
    scale: Optional[float] = None,
    window_size: Optional[Sequence[int]] = (-1, -1),
    enable_gqa: bool = False,
    seqused_k: Optional[A] = None,
    block_table: Optional[A] = None,
    num_splits: Optional[int] = None,
    mask: Union[Mask, MaskFunction, None] = None,
    score: Optional[ScoreFunction] = None,
) -> Any: ...

class Attention:
    return_lse: bool
    def __init__(
        self,
        mask: Union[Mask, MaskFunction, Plan, None] = None,
        score: Optional[ScoreFunction] = None,
        scale: Optional[float] = None,
        return_lse: bool = False,
        schedule: Optional[str] = None,
        gradient_schedule: Optional[str] = None,
    ) -> None: ...
    def __call__(
        self,
        query: A,
        key: A,
        value: A,
        lengths: Optional[A] = None,
        sink: Optional[A] = None,
        query_offsets: Optional[A] = None,
        key_offsets: Optional[A] = None,
        page_table: Optional[A] = None,
        key_lengths: Optional[A] = None,
        out: Optional[A] = None,
    ) -> Any: ...
    def mlir(
        self,
        query: A,
        key: A,
        value: A,
        lengths: Optional[A] = None,
        sink: Optional[A] = None,
        query_offsets: Optional[A] = None,
        key_offsets: Optional[A] = None,
        page_table: Optional[A] = None,
        key_lengths: Optional[A] = None,
    ) -> str: ...
    def tiles(
        self,
        query_length: int,
        key_length: int,
        batch: int = 1,
        heads: int = 1,
        key_heads: Optional[int] = None,
        dim: int = 64,
        value_dim: Optional[int] = None,
        dtype: str = "float16",
        target: Optional[Target] = None,
    ) -> Tiles: ...

class checks:
    def __init__(self, enabled: bool = True) -> None: ...
    def __enter__(self) -> "checks": ...
    def __exit__(self, *_: Any) -> None: ...

class Tiles(NamedTuple):
    skipped: int
    unmasked: int
    masked: int
    query_tile: int
    key_tile: int

class Picture:
    kinds: Any
    query_length: int
    key_length: int
    query_tile: int
    key_tile: int
    def count(self) -> Tuple[int, int, int]: ...
    def save(self, path: Union[str, os.PathLike[str]]) -> None: ...

def plot(
    mask: Union[Mask, MaskFunction],
    query_length: int,
    key_length: Optional[int] = None,
    batch: int = 0,
    head: int = 0,
    query_tile: int = 64,
    key_tile: int = 64,
) -> Picture: ...

class Timeline:
    work: List[Any]
    rings: Dict[int, Tuple[str, int, int, int]]
    roles: Dict[str, Tuple[int, int]]
    end: int
    def count_products(self) -> int: ...
    def stages(self) -> List[Tuple[int, int, int, int, int, int]]: ...
    def draw(self, until: Optional[int] = None, stages: bool = False) -> str: ...
    def save(self, path: Union[str, os.PathLike[str]], until: Optional[int] = None, stages: bool = False) -> None: ...

def timeline(
    path: Union[str, os.PathLike[str]],
    launch: int = 0,
    names: Sequence[str] = (),
    copy: int = 1,
    product: int = 2,
    maxima: int = 1,
    exponentials: int = 2,
    store: int = 1,
) -> Timeline: ...

class Resources:
    blocks: List[Any]
    shared_bytes: int
    registers: int
    def save(self, path: Union[str, os.PathLike[str]]) -> None: ...

def resources(kernel: Kernel, names: Sequence[str] = ()) -> Resources: ...

class Kernel:
    @property
    def target(self) -> Target: ...
    @property
    def arguments(self) -> List[TensorType]: ...
    @property
    def results(self) -> List[TensorType]: ...
    @property
    def ptx(self) -> str: ...
    def __call__(self, *arguments: A) -> Union[A, Tuple[A, ...]]: ...
    def ir(self, level: Union[str, int]) -> str: ...
    def tiles(self, *sizes: Sequence[int]) -> Tiles: ...
    def save(self, path: Union[str, os.PathLike[str]]) -> None: ...

def compile(
    text: str,
    target: Optional[Target] = None,
    function: Optional[str] = None,
    schedule: Optional[str] = None,
    sizes: Optional[Sequence[Sequence[Optional[int]]]] = None,
    versions: Optional[Sequence[Sequence[Sequence[Union[int, range, None]]]]] = None,
    device: Union[int, str, None] = None,
    tuning: Union[str, os.PathLike[str], None] = None,
) -> Kernel: ...
def get_device_target(device: int = 0) -> Target: ...
def get_include() -> str: ...
def get_library() -> str: ...
def set_thread_count(count: int) -> None: ...
def tensor(array: Any, name: str = "a captured tensor") -> Any: ...

query_length: Value
key_length: Value

def where(condition: Value, a: Value, b: Value) -> Value: ...
def minimum(a: Value, b: Value) -> Value: ...
def maximum(a: Value, b: Value) -> Value: ...
def absolute(x: Value) -> Value: ...
def ceil(x: Value) -> Value: ...
def clip(x: Value, min: Optional[Value] = None, max: Optional[Value] = None) -> Value: ...
def cos(x: Value) -> Value: ...
def erf(x: Value) -> Value: ...
def exp(x: Value) -> Value: ...
def exp2(x: Value) -> Value: ...
def expm1(x: Value) -> Value: ...
def floor(x: Value) -> Value: ...
def log(x: Value) -> Value: ...
def log1p(x: Value) -> Value: ...
def log2(x: Value) -> Value: ...
def round(x: Value) -> Value: ...
def rsqrt(x: Value) -> Value: ...
def sigmoid(x: Value) -> Value: ...
def sign(x: Value) -> Value: ...
def sin(x: Value) -> Value: ...
def sqrt(x: Value) -> Value: ...
def tanh(x: Value) -> Value: ...
def trunc(x: Value) -> Value: ...

__all__: Sequence[str]
