"""Attention over parts of the keys that is put together, beside attention over all."""

import math

import numpy as np
import pytest
from conftest import TOLERANCE, assert_close, reference

import flash_mlir as flash

ENDS = [0, 20, 20, 21, 53]


def split(*arrays):
    return [[array[:, :, start:end] for array in arrays] for start, end in zip(ENDS, ENDS[1:])]


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
def test_parts(make, dtype):
    """Of which one has no keys, and others none for some rows."""
    query, key, value = make(dtype=dtype)
    lengths = np.array([20, 0])
    outputs, lses = zip(*[flash.attention(query, *part, lengths=lengths, return_lse=True) for part in split(key, value)])
    kept = np.concatenate([np.arange(end - start)[None] < lengths[:, None] for start, end in zip(ENDS, ENDS[1:])], 1)
    expected, rows = reference(query, key, value, keep=lambda b, h, q, k: kept[b, k])
    output, lse = flash.merge(outputs, lses)
    assert output.dtype == dtype and lse.dtype == lses[0].dtype
    tolerance = "float32" if dtype == "float64" else dtype
    assert_close(output, expected, tolerance)
    assert_close(lse, rows, tolerance)
    assert (output[1] == 0).all() and np.isneginf(lse[1]).all()
    # As FlashInfer has logarithms, and as FlashAttention has rows without keys.
    twos = [x / np.asarray(math.log(2), x.dtype) for x in lses]
    twos = [np.where(np.isneginf(x), np.inf, x) for x in twos]
    outputs = [np.where(np.isinf(x)[..., None], np.nan, y).astype(dtype) for x, y in zip(twos, outputs)]
    output, lse = flash.merge(outputs, twos, base=np.float32(2) if dtype == "float32" else 2)
    assert_close(output, expected, tolerance)
    assert_close(lse, rows / math.log(2), tolerance)


def test_rows_first(make):
    query, key, value = make(queries=4)  # As many as heads, so that no shape tells them apart.
    turned = query.swapaxes(1, 2)
    parts = [flash.flash_attn_func(turned, *[x.swapaxes(1, 2) for x in part], return_lse=True) for part in split(key, value)]
    expected, rows = reference(query, key, value)
    output, lse = flash.merge(*zip(*parts), rows_first=True)
    assert_close(output, expected.swapaxes(1, 2), "float32")
    assert_close(lse, rows, "float32")
    output, lse = flash.merge([x[0] for x, _ in parts], [x[0] for _, x in parts], rows_first=True)
    assert_close(output, expected[0].swapaxes(0, 1), "float32")


@pytest.mark.parametrize("is_torch", [False, True])
def test_names_of_others(make, is_torch):
    """FlashInfer's functions, with rows before heads and logarithms to the base 2, and vLLM's, with natural ones."""
    query, key, value = make(queries=4, batch=1)
    expected, rows = (x[0] for x in reference(query, key, value))
    expected = expected.swapaxes(0, 1)
    parts = [flash.attention(query[0], *[x[0] for x in part], return_lse=True) for part in split(key, value)]
    outputs, lses = [x.swapaxes(0, 1) for x, _ in parts], [x for _, x in parts]
    twos = [lse.swapaxes(0, 1) * np.float32(math.log2(math.e)) for lse in lses]
    stack, empty = np.stack, np.empty_like
    if is_torch:
        torch = pytest.importorskip("torch")
        outputs, lses, twos = ([torch.from_numpy(np.ascontiguousarray(x)) for x in arrays] for arrays in (outputs, lses, twos))
        stack, empty = torch.stack, torch.empty_like
    states = flash.merge_states(stack(outputs, 1), stack(twos, 1))
    last = flash.merge_state(outputs[2], twos[2], outputs[3], twos[3])
    state = flash.merge_state(*flash.merge_state(outputs[0], twos[0], outputs[1], twos[1]), *last)
    for output, lse in (states, state):
        assert_close(output, expected, "float32")
        assert_close(lse, rows.T / math.log(2), "float32")
    prefix = flash.merge(outputs[:3], lses[:3], rows_first=True)
    output, lse = empty(outputs[0]), empty(lses[0])
    assert flash.merge_attn_states(output, *prefix, outputs[3], lses[3], lse) is None
    assert_close(output, expected, "float32")
    assert_close(lse, rows, "float32")
    flash.merge_attn_states(output, *prefix, outputs[3], lses[3])
    assert_close(output, expected, "float32")
    for call, message in (
        (lambda: flash.merge_state(outputs[0], twos[0][:3], outputs[1], twos[1][:3]), "lses have the shape"),
        (lambda: flash.merge_state(outputs[0], None, outputs[1], twos[1]), r"s_a is a NoneType; expected \(rows, heads\)"),
        (lambda: flash.merge_states(outputs[0], twos[0]), r"v and s are \(4, 4, 32\) and \(4, 4\); expected \(rows, parts"),
        (lambda: flash.merge_attn_states(output[:1], *prefix, outputs[3], lses[3]), r"output has the shape \(1, 4, 32\); expected"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    # Nothing is written then.
    written = empty(outputs[0])
    written[...] = 7
    with pytest.raises(ValueError, match="output_lse has the shape"):
        flash.merge_attn_states(written, *prefix, outputs[3], lses[3], lse[:1])
    assert (written == 7).all()


@pytest.mark.parametrize("is_compiled", [False, True])
def test_gradients(is_compiled):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    leaves = [torch.randn(2, heads, n, 32, requires_grad=True) for heads, n in ((4, 5), (2, 53), (2, 53))]

    def attend(query, key, value):
        parts = [flash.attention(query, *part, return_lse=True) for part in split(key, value)]
        return flash.merge([output for output, _ in parts], [lse for _, lse in parts])

    attend = torch.compile(attend, backend="aot_eager", fullgraph=True) if is_compiled else attend
    results, wanted = attend(*leaves), flash.attention(*leaves, return_lse=True)
    given = [torch.randn_like(x) for x in results]
    tolerance = dict(rtol=10 * TOLERANCE["float32"], atol=10 * TOLERANCE["float32"])
    for x, y in zip(results, wanted):
        torch.testing.assert_close(x, y, **tolerance)
    for x, y in zip(torch.autograd.grad(results, leaves, given), torch.autograd.grad(wanted, leaves, given)):
        torch.testing.assert_close(x, y, **tolerance)


def test_refusals():
    output, lse = np.zeros((2, 4, 5, 8), np.float32), np.zeros((2, 4, 5), np.float32)
    for arguments, options, kind, match in (
        (([output], []), {}, ValueError, "outputs has 1 arrays and lses 0; expected as many, at least one"),
        (([], []), {}, ValueError, "at least one"),
        (([output, 1], [lse, lse]), {}, TypeError, r"outputs\[1\] is a int; expected an array"),
        (([output, output[:1]], [lse, lse]), {}, ValueError, r"outputs\[1\] has the shape .1, 4, 5, 8."),
        (([output, output.astype("f2")], [lse, lse]), {}, TypeError, r"outputs\[1\] has the dtype float16, outputs\[0\] float32"),
        (([output], [lse.swapaxes(1, 2)]), {}, ValueError, "expected .2, 4, 5.; rows_first=True is for outputs"),
        (([output], [lse]), dict(rows_first=True), ValueError, "expected .2, 5, 4.$"),
        (([output.astype(int)], [lse]), {}, TypeError, r"outputs\[0\] has the dtype int64; expected a floating-point one"),
        (([output], [lse.astype(int)]), {}, TypeError, r"lses\[0\] has the dtype int64; expected a floating-point one"),
        (([output], [lse]), dict(base=np.ones(2)), ValueError, "base is array.*; expected 'e' for natural logarithms, or 2"),
        (([output], [lse]), dict(base="2"), ValueError, "base is '2'; expected 'e' for natural logarithms, or 2"),
        (([output], [lse]), dict(base=10), ValueError, "base is 10; expected 'e' for natural logarithms, or 2"),
    ):
        with pytest.raises(kind, match=match):
            flash.merge(*arguments, **options)
    torch = pytest.importorskip("torch")
    tensor = torch.from_numpy(output)
    with pytest.raises(TypeError, match=r"outputs\[0\] is a tensor of PyTorch and lses\[0\] an array of NumPy; they must be of one library"):
        flash.merge([tensor], [lse])
    rows, of_rows = output[0].swapaxes(0, 1), lse[0].swapaxes(0, 1)
    with pytest.raises(TypeError, match="v_a is an array of NumPy and v_b a tensor of PyTorch; they must be"):
        flash.merge_state(rows, of_rows, torch.from_numpy(rows), torch.from_numpy(of_rows))
    with pytest.raises(TypeError, match="v is a tensor of PyTorch and s an array of NumPy"):
        flash.merge_states(torch.from_numpy(rows[:, None]), of_rows[:, None])
    with pytest.raises(TypeError, match="prefix_output is an array of NumPy and suffix_lse a tensor of PyTorch"):
        flash.merge_attn_states(rows, rows, lse[0], rows, torch.from_numpy(lse[0]))
