"""Compares results with attention in double precision, at rows taken at random.

All rows would cost more than everything that is timed.
"""
import numpy

TOLERANCE = {"float16": 1e-3, "float32": 1e-5}
HEADS, ROWS = 3, 24


def keep_mask(kind, rows, length):
    """Which keys take part for which of the rows; `kind` is as in the experiments."""
    i, j = rows[:, None], numpy.arange(length)[None, :]
    name, _, size = (kind or "full").partition(":")
    size = int(size or 0)
    return {
        "full": lambda: numpy.ones((len(rows), length), bool),
        "causal": lambda: j <= i,
        "window": lambda: (j <= i) & (j >= i - size),
        "prefix": lambda: (j <= i) | (j < size),
        "documents": lambda: (j <= i) & (i // size == j // size),
    }[name]()


def modify(score, values, rows, head, slopes):
    if score == "softcap":
        return 20 * numpy.tanh(values / 20)
    if score == "alibi":
        return values + float(slopes[head]) * (numpy.arange(values.shape[1])[None, :] - rows[:, None])
    return values


def compare(query, key, value, output, mask=None, score=None, slopes=None):
    """The relative root mean square error, and what it may be."""
    batch, heads, length, dim = query.shape
    group = heads // key.shape[1]
    random = numpy.random.default_rng(0)
    error = norm = 0.0
    for _ in range(HEADS):
        b, h = random.integers(batch), random.integers(heads)
        rows = numpy.unique(numpy.concatenate([[0, length - 1], random.integers(length, size=ROWS)]))
        scores = query[b, h, rows].astype(float) @ key[b, h // group].astype(float).T / dim**0.5
        scores = modify(score, scores, rows, h, slopes)
        scores = numpy.where(keep_mask(mask, rows, length), scores, -numpy.inf)
        probabilities = numpy.exp(scores - scores.max(axis=1, keepdims=True))
        expected = probabilities @ value[b, h // group].astype(float) / probabilities.sum(axis=1, keepdims=True)
        got = output[b, h, rows].astype(float)
        # A NaN must not vanish in a comparison.
        error += float(((got - expected) ** 2).sum())
        norm += float((expected**2).sum())
    return (error / norm) ** 0.5, TOLERANCE[str(query.dtype)]
