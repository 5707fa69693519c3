"""Each message names the argument and the rule."""

import math

import numpy as np
import pytest

import flash_mlir as flash

F32 = np.float32


def zeros(*shape, dtype=F32):
    return np.zeros(shape, dtype=dtype)


Q, K = zeros(2, 4, 8, 16), zeros(2, 2, 9, 16)
table = np.zeros(3, dtype=F32)
swapped, wide = np.zeros(3, dtype=">i4"), np.zeros(3, dtype=np.uint64)


def calls_itself(b, h, q, k):
    return calls_itself(b, h, q, k + 1)


BAD_CALLS = [
    ((Q, K, [1, 2]), {}, TypeError, "value is a list; a NumPy array, a PyTorch tensor, or an array that has __dlpack__"),
    ((Q.astype(complex), K, K), {}, TypeError, "query has dtype complex128; float16"),
    ((Q.astype(float), K, K), {}, TypeError, "key is float32 of shape (2, 2, 9, 16), query float64 of shape (2, 4, 8, 16)"),
    ((Q, K.astype(np.float16), K), {}, TypeError, "key is float16 of shape (2, 2, 9, 16), query float32"),
    ((Q[0, 0], K, K), {}, ValueError, "query is float32 of shape (8, 16); expected (batch, heads, length, head"),
    ((Q, K[0], K), {}, ValueError, "the ranks must agree"),
    ((Q, K[:1], K), {}, ValueError, "the batch sizes must agree"),
    ((Q, zeros(2, 3, 9, 16), zeros(2, 3, 9, 16)), {}, ValueError, "query has 4 heads, key has 3; the former must be"),
    ((Q, K, zeros(2, 4, 9, 16)), {}, ValueError, "value has 4 heads, key has 2"),
    ((Q, K, zeros(2, 2, 7, 16)), {}, ValueError, "value has length 7, key has 9"),
    ((Q, zeros(2, 2, 9, 24), K), {}, ValueError, "key has head dimension 24, query has 16"),
    ((Q, K, zeros(2, 2, 9, 577)), {}, ValueError, "value has head dimension 577; 1 to 576 are possible"),
    ((Q, K, K), {"lengths": zeros(2)}, TypeError, "lengths is float32 of shape (2,); expected integers of shape (2,)"),
    ((Q, K, K), {"lengths": zeros(3, dtype=np.int32)}, ValueError, "expected integers of shape (2,), one for each batch"),
    ((Q[0], K[0], K[0]), {"lengths": zeros(2, dtype=np.int32)}, ValueError, "lengths are per batch, and query is"),
    ((Q, K, K), {"sink": zeros(2)}, ValueError, "sink is float32 of shape (2,); expected floating-point numbers of shape (4,)"),
    ((Q, K, K), {"mask": 3}, TypeError, "mask is a int; expected a Mask, a Plan or a function"),
    ((Q, K, K), {"mask": Q > 0}, TypeError, "of an array it is lambda b, h, q, k: array[q, k]"),
    ((Q, K, K), {"score": 3}, TypeError, "score is a int; expected a function"),
    ((Q, K, K), {"mask": lambda b, h, q, k: q + k}, TypeError, "the mask function returns a number"),
    ((Q, K, K), {"score": lambda s, b, h, q, k: s > 0}, TypeError, "the score function returns a truth value"),
    ((Q, K, K), {"score": lambda s, b, h, q, k: None}, TypeError, "the score function returns nothing"),
    ((Q, K, K), {"score": lambda s: s}, TypeError, "it is called with s, b, h, q and k"),
    ((Q, K, K), {"mask": lambda q, k: q >= k}, TypeError, "it is called with b, h, q and k"),
    ((Q, K, K), {"mask": flash.causal}, TypeError, "; flash_mlir.causal() is a mask"),
    ((Q, K, K), {"score": lambda s, b, h, q, k: math.exp(s)}, TypeError, "instead of functions of math"),
    ((Q, K, K), {"score": lambda s, b, h, q, k: s if q < k else 0}, TypeError, "use where(condition, a, b) instead"),
    ((Q, K, K), {"mask": lambda b, h, q, k: k - 4 <= q <= k}, TypeError, "two comparisons instead of a chain"),
    ((Q, K, K), {"score": lambda s, b, h, q, k: float(s)}, TypeError, "has no number before the kernel runs"),
    ((Q, K, K), {"score": lambda s, b, h, q, k: s + q // 0}, TypeError, "an integer is divided by 0"),
    ((Q, K, K), {"score": lambda s, b, h, q, k: np.arctanh(s)}, TypeError, "numpy.arctanh cannot be traced"),
    ((Q, K, K), {"score": lambda s, b, h, q, k: s + "x"}, TypeError, "a str cannot be traced"),
    ((Q, K, K), {"score": lambda s, b, h, q, k: s + table}, TypeError, "table has 1 dimensions; index it"),
    ((Q, K, K), {"score": lambda s, b, h, q, k: s + table[h, q]}, TypeError, "table has 1 dimensions, but is indexed"),
    ((Q, K, K), {"score": lambda s, b, h, q, k: s + table[s]}, TypeError, "table is indexed with a value that is no"),
    ((Q, K, K), {"score": lambda s, b, h, q, k: s + table[h]}, ValueError, "table has size 3 in dimension 0, where h"),
    ((Q, K, K), {"score": lambda s, b, h, q, k: s + 2**63 * q}, TypeError, "does not fit in 64 bits"),
    ((Q, K, K), {"score": lambda s, b, h, q, k: s + 10**5000}, TypeError, "an integer does not fit in 64 bits"),
    ((Q, K, K), {"score": lambda s, b, h, q, k: s - 1e300}, TypeError, "a number is 1e+300, which does not fit in"),
    ((Q, K, K), {"mask": lambda *p: calls_itself(*p)}, TypeError, "the mask function <lambda> cannot be traced: it calls"),
    ((Q, K, K), {"scale": float("nan")}, ValueError, "scale is nan; it must be finite"),
    ((Q, K, K), {"scale": -float("inf")}, ValueError, "scale is -inf; it must be finite"),
    ((Q, K, K), {"scale": 10**400}, ValueError, "scale is a number of so many digits, which does not fit in float32"),
    ((Q, K, K), {"scale": 1e39}, ValueError, "scale is 1e+39, which does not fit in float32"),
    ((Q, K, K), {"scale": "0.5"}, TypeError, "scale is a str; expected a number"),
    ((Q, K, K), {"scale": 1j}, TypeError, "scale is a complex; expected a number"),
    ((Q, K, K), {"scale": zeros(2)}, TypeError, "scale is a ndarray; expected a number"),
    ((Q.astype(">f4"), K, K), {}, TypeError, "query has dtype >f4, the byte order of another machine; convert it by"),
    ((Q, K, K), {"score": lambda s, b, h, q, k: s + swapped[0]}, TypeError, "swapped has dtype >i4, the byte order of"),
    ((Q, K, K), {"score": lambda s, b, h, q, k: s + wide[0]}, TypeError, "wide has dtype uint64; float16"),
    ((Q.astype(np.uint32), K, K), {}, TypeError, "query is uint32 of shape (2, 4, 8, 16); float16, bfloat16 and"),
    ((Q, K, K), {"lengths": zeros(2, dtype=bool)}, TypeError, "lengths is bool of shape (2,); expected integers"),
]


@pytest.mark.parametrize("arguments, options, kind, message", BAD_CALLS, ids=[case[3] for case in BAD_CALLS])
def test_bad_calls(arguments, options, kind, message):
    with pytest.raises(kind) as error:
        flash.attention(*arguments, **options)
    assert message in str(error.value)


def test_masks():
    for make in (lambda: flash.window(1.5), lambda: flash.window(left="1.5"), lambda: flash.prefix([1.5])):
        with pytest.raises(TypeError, match=r"^(left|length) is .*1\.5.*; expected an integer$"):
            make()
    with pytest.raises(ValueError, match="left is -1; it must be from 0 to 2147483647"):
        flash.window(left=-1)
    with pytest.raises(TypeError, match="masks compose with &, | and ~"):
        flash.causal() and flash.prefix(3)
    with pytest.raises(TypeError, match="int is no mask"):
        flash.causal() & 3
    with pytest.raises(TypeError, match="query_ids has no integer dtype"):
        flash.documents(zeros(4))
    with pytest.raises(ValueError, match="query_ids has 3 dimensions; expected 1 or 2"):
        flash.documents(zeros(4, 1, 1, dtype=np.int32))
    lengths = np.array([3, 4], dtype=np.int32)
    with pytest.raises(ValueError, match="lengths are given twice"):
        flash.attention(Q, K, K, mask=flash.key_lengths(lengths), lengths=lengths)


def test_diagnostics():
    with pytest.raises(flash.CompileError) as error:
        flash.compile("func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n  return %y : tensor<4xf32>\n}")
    assert "program:2:10: error: use of undeclared SSA value name" in str(error.value)
    with pytest.raises(flash.CompileError, match="unknown target|no function to run"):
        flash.compile("module {}", target="cpu")
    with pytest.raises(ValueError, match="unknown target 'gpu'; the targets are"):
        flash.compile("module {}", target="gpu")
    with pytest.raises(ValueError, match="a schedule has no key 'tile'"):
        flash.compile("module {}", target="cpu", schedule="tile=3")
    with pytest.raises(TypeError, match="the program is a bytes; expected its text"):
        flash.compile(b"module {}")
    with pytest.raises(TypeError, match="target is a int; expected one of cpu, emulate"):
        flash.compile("module {}", target=3)
    for name in ("schedule", "function"):
        with pytest.raises(TypeError, match=f"{name} is a dict; expected text"):
            flash.compile("module {}", target="cpu", **{name: {}})
    with pytest.raises(TypeError, match=r"the sizes of an argument are \('a',\); expected a tuple of numbers and None"):
        flash.compile("module {}", target="cpu", sizes=[("a",)])
    with pytest.raises(ValueError, match=r"the sizes of an argument are \(-1,\); expected numbers that are not negative"):
        flash.compile("module {}", target="cpu", sizes=[(-1,)])
    # A head dimension that the language lacks, with the place in the program.
    text = "func.func @f(%q: tensor<2x8x12xf32>) -> tensor<2x8x12xf32> {\n"
    text += "  %o = flash.attention %q, %q, %q : (tensor<2x8x12xf32>, tensor<2x8x12xf32>, tensor<2x8x12xf32>)"
    text += " -> tensor<2x8x12xf32>\n  return %o : tensor<2x8x12xf32>\n}"
    with pytest.raises(flash.CompileError, match=r"program:2:8: error: 'flash.attention' op"):
        flash.compile(text)


ROWS, KEYS = zeros(2, 3, 4, 16), zeros(2, 9, 2, 16)
USED, OFFSETS = np.array([9, 9], dtype=np.int32), np.array([0, 9, 18])
FLASH_CALLS = [
    (dict(q=zeros(2, 3, 3, 16)), ValueError, "q has 3 heads, {k} has 2; the former"),
    (dict(k=zeros(2, 9, 2, 8)), ValueError, "{k} has head dimension 8, q has 16; they must agree"),
    (dict(v=zeros(2, 9, 1, 16)), ValueError, "{v} has 1 heads, {k} has 2; they must agree"),
    (dict(v=zeros(2, 8, 2, 16)), ValueError, "{v} has length 8, {k} has 9; they must agree"),
    # Shapes are those of the caller's arrays.
    (
        dict(k=KEYS.astype(np.float16)),
        TypeError,
        "{k} is float16 of shape (2, 9, 2, 16), q float32 of shape (2, 3, 4, 16); the dtypes must agree: cast {k} by .astype(q.dtype)",
    ),
    (dict(learnable_sink=zeros(3)), ValueError, "learnable_sink is float32 of shape (3,); expected floating-point numbers of shape (4,), one for each query"),
    (dict(softmax_scale="1"), TypeError, "softmax_scale is a str; expected a number"),
    (dict(q=zeros(3, 4, 16)), ValueError, "q has 3 dimensions; expected"),
]


@pytest.mark.parametrize("changes, error, message", FLASH_CALLS)
@pytest.mark.parametrize("has_lengths", [False, True])
def test_names_of_flash_attention(changes, error, message, has_lengths):
    """Errors have the names of the caller's arguments."""
    call = {"q": ROWS, "k": KEYS, "v": KEYS, **changes}
    with pytest.raises(error) as raised:
        flash.flash_attn_func(**call)
    assert str(raised.value).startswith(message.format(k="k", v="v"))
    call.update(k_cache=call.pop("k"), v_cache=call.pop("v"), cache_seqlens=USED if has_lengths else None)
    with pytest.raises(error) as raised:
        flash.flash_attn_with_kvcache(**call)
    assert str(raised.value).startswith(message.format(k="k_cache", v="v_cache"))


def test_names_of_packed_rows():
    q, k = zeros(6, 4, 16), zeros(18, 2, 16)
    at = np.array([0, 3, 6], dtype=np.int32)
    for changes, message in [
        (dict(v=k[1:]), "v has length 17, k has 18; they must agree"),
        (dict(cu_seqlens_k=OFFSETS + 2**32), "cu_seqlens_k[0] is 4294967296; offsets do not decrease and are from 0 to 18, the rows of k"),
        (dict(q=zeros(2, 3, 4, 16)), "q is float32 of shape (2, 3, 4, 16); with cu_seqlens_q it is (rows of all sequences, heads, head dimension)"),
        (dict(cu_seqlens_k=None), "k has 3 dimensions; without cu_seqlens_k it is (batch, length, heads, head dimension)"),
    ]:
        with pytest.raises(ValueError) as error:
            flash.flash_attn_varlen_func(**{**dict(q=q, k=k, v=k, cu_seqlens_q=at, cu_seqlens_k=OFFSETS), **changes})
        assert str(error.value) == message
    # The names of torch.nn.attention.varlen.
    with pytest.raises(ValueError, match="^value has length 17, key has 18; they must agree"):
        flash.varlen_attn(q, k, k[1:], at, OFFSETS, enable_gqa=True)
    with pytest.raises(TypeError, match="^cache_seqlens is a bool; expected an array of int32"):
        flash.flash_attn_with_kvcache(ROWS, KEYS, KEYS, cache_seqlens=True)


def test_errors_of_functions_of_flash_attention():
    """Words of other errors stay."""

    def mask(b, h, q, k):
        raise ValueError("the key and a value have no scale")

    with pytest.raises(ValueError, match="^the key and a value have no scale$"):
        flash.flash_attn_func(ROWS, KEYS, KEYS, mask=mask)
    key = zeros(4)
    with pytest.raises(ValueError, match="^key has size 4 in dimension 0, where k goes from 0 to 8"):
        flash.flash_attn_func(ROWS, KEYS, KEYS, score=lambda s, b, h, q, k: s + key[k])
