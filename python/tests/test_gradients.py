"""Gradients on NumPy arrays, against the slope of the fp64 reference."""

import numpy as np
import pytest
from conftest import reference

import flash_mlir as flash

slopes = np.array([0.5, 0.25, 0.125, 0.0625], dtype=np.float32)
#: Largest error of a slope, in units of the gradients' norm.
TOLERANCE = {"float32": 1e-4, "float16": 3e-3}


def check(arrays, make_output, gradients, rng, dtype="float32", grad_of_lse=None):
    """Compares gradients with the slope of (output, lse) = make_output(arrays) along random directions.

    `arrays` and `gradients` are by name; those of other names are constant.
    """
    output_grad = arrays["output_grad"].astype(np.float64)
    values = {name: array.astype(np.float64) for name, array in arrays.items()}

    def loss(moved):
        output, lse = make_output({**values, **moved})
        of_lse = 0 if grad_of_lse is None else (np.where(np.isfinite(lse), lse, 0) * grad_of_lse).sum()
        return (output * output_grad).sum() + of_lse

    for name, gradient in gradients.items():
        assert gradient.shape == arrays[name].shape and gradient.dtype == arrays[name].dtype, name
        for _ in range(3):
            direction = rng.standard_normal(values[name].shape)
            up, down = (loss({name: values[name] + step * direction}) for step in (1e-5, -1e-5))
            difference = abs((up - down) / 2e-5 - (gradient.astype(np.float64) * direction).sum())
            assert difference <= TOLERANCE[dtype] * max(np.linalg.norm(gradient.astype(np.float64)), 1), name


def differentiate(make, rng, keep=None, modify=None, arrays=None, dtype="float32", sizes=None, lse_grad=None, **clauses):
    """Calls attention and attention_grad, and checks the gradients of all operands and of `arrays`.

    `keep` and `modify` are the mask and the score function as the reference has them.
    """
    query, key, value = make(dtype=dtype, **(sizes or {}))
    options = {k: v for k, v in clauses.items() if k != "mask"}
    output, lse = flash.attention(query, key, value, return_lse=True, **clauses)
    output_grad = rng.standard_normal(output.shape).astype(dtype)
    arrays = arrays or {}
    names = ["query", "key", "value"] + ["sink"] * ("sink" in options) + list(arrays)
    results = flash.attention_grad(
        query, key, value, output, lse, output_grad, lse_grad=lse_grad, wrt=list(arrays.values()), **clauses
    )
    assert len(results) == len(names)
    operands = dict(query=query, key=key, value=value, output_grad=output_grad, **arrays)
    if "sink" in options:
        operands["sink"] = options["sink"]

    def make_output(values):
        score_of = None if modify is None else lambda *at: modify(*at, *(values[name] for name in arrays))
        return reference(
            values["query"], values["key"], values["value"], keep, score_of, options.get("scale"), options.get("lengths"),
            values.get("sink"),
        )

    check(operands, make_output, dict(zip(names, results)), rng, dtype, lse_grad)
    return results


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_causal(make, rng, dtype):
    differentiate(make, rng, lambda b, h, q, k: k <= q + 16, dtype=dtype, mask=flash.causal())


def test_rank_3(rng):
    query, key = (rng.standard_normal(shape, dtype=np.float32) for shape in ((4, 9, 16), (2, 9, 16)))
    output, lse = flash.attention(query, key, key, return_lse=True)
    grads = flash.attention_grad(query, key, key, output, lse, output)
    batched = flash.attention_grad(query[None], key[None], key[None], output[None], lse[None], output[None])
    for grad, other in zip(grads, batched):
        np.testing.assert_array_equal(grad, other[0])


def test_clauses(make, rng):
    """A sink, lengths of which one is 0, a scale, and the gradient of the log-sum-exp."""
    lengths = np.array([0, 30], dtype=np.int32)
    sink = rng.standard_normal(4, dtype=np.float32)
    lse_grad = rng.standard_normal((2, 4, 37), dtype=np.float32)
    differentiate(make, rng, lengths=lengths, sink=sink, scale=0.3, lse_grad=lse_grad, sizes={"value_size": 48})


def test_rows_without_keys(make, rng):
    sizes = {"queries": 50, "keys": 20}
    grads = differentiate(make, rng, lambda b, h, q, k: k <= q - 30, mask=flash.causal(), sizes=sizes)
    assert (grads[0][:, :, :30] == 0).all()


def test_score_function(make, rng):
    """The gradients of what a score function reads: a slope of each head and a table of distances."""
    table = rng.standard_normal(37 + 53 - 1, dtype=np.float32)

    def score(s, b, h, q, k):
        return 5.0 * flash.tanh(s / 5.0) + slopes[h] * (k - q) + table[q - k + 52]

    def expected(s, b, h, q, k, slopes, table):
        return 5.0 * np.tanh(s / 5.0) + slopes[h] * (k - q) + table[q - k + 52]

    differentiate(make, rng, None, expected, {"slopes": slopes, "table": table}, score=score)


def test_documents(make, rng):
    """Masks that read arrays: of integers without a sign, and of truth values."""
    ids = np.repeat(np.arange(4, dtype=np.uint8), 10)[:37]
    even = np.arange(37) % 2 == 0

    def mask(b, h, q, k):
        return (ids[q] == ids[k]) & even[k]

    differentiate(make, rng, lambda b, h, q, k: (ids[q] == ids[k]) & even[k], sizes={"keys": 37}, mask=mask)


def test_masked_nan(make, rng):
    """What the mask hides has no effect."""
    query, key, value = make(queries=20, keys=20)
    output, lse = flash.attention(query, key, value, mask=flash.prefix(15), return_lse=True)
    expected = flash.attention_grad(query, key, value, output, lse, output, mask=flash.prefix(15))
    key[:, :, 15:], value[:, :, 15:] = np.nan, np.inf
    grads = flash.attention_grad(query, key, value, output, lse, output, mask=flash.prefix(15))
    for grad, other in zip(grads, expected):
        np.testing.assert_array_equal(grad, other)


def test_repeatable(make):
    query, key, value = make(queries=300, keys=300)
    output, lse = flash.attention(query, key, value, return_lse=True)
    first = flash.attention_grad(query, key, value, output, lse, output)
    for _ in range(5):
        for grad, other in zip(flash.attention_grad(query, key, value, output, lse, output), first):
            np.testing.assert_array_equal(grad, other)


def test_errors(make):
    query, key, value = make()
    output, lse = flash.attention(query, key, value, return_lse=True)

    def call(*arguments, **options):
        return flash.attention_grad(*arguments, **options)

    with pytest.raises(ValueError, match=r"output has the shape \(2, 4, 36, 32\); expected \(2, 4, 37, 32\)"):
        call(query, key, value, output[:, :, :36], lse, output)
    with pytest.raises(TypeError, match="lse is float16; expected float32"):
        call(query, key, value, output, lse.astype(np.float16), output)
    with pytest.raises(TypeError, match="output_grad is float64; expected float32"):
        call(query, key, value, output, lse, output.astype(np.float64))
    with pytest.raises(ValueError, match=r"lse_grad has the shape \(4, 37\)"):
        call(query, key, value, output, lse, output, lse_grad=lse[0])
    with pytest.raises(TypeError, match="output_grad is a str; a NumPy array, a PyTorch tensor"):
        call(query, key, value, output, lse, "output")
    with pytest.raises(ValueError, match="value has 2 heads, key has 3; they must agree"):
        call(query, key[:, [0, 1, 1]], value, output, lse, output)
    with pytest.raises(ValueError, match="array 0 of wrt is none that the mask or the score function reads"):
        call(query, key, value, output, lse, output, wrt=[slopes])

    def score(s, b, h, q, k):
        return s + slopes[h] + counts[h]

    counts = np.arange(4)
    with pytest.raises(TypeError, match="counts is int64; there are gradients of float16, bfloat16 and float32"):
        call(query, key, value, output, lse, output, score=score, wrt=[counts])
    with pytest.raises(ValueError, match="array 1 of wrt is given twice"):
        call(query, key, value, output, lse, output, score=score, wrt=[slopes, slopes])
