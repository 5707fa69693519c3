"""Packed documents with ALiBi, and a window of 40."""

import numpy as np

ids = np.repeat(np.arange(3), [60, 28, 40]).astype(np.int32)
slopes = (2.0 ** -np.arange(1, 5)).astype(np.float32)


def mask(b, h, q, k):
    return (ids[q] == ids[k]) & (k <= q) & (q - k <= 40)


def score(s, b, h, q, k):
    return s - slopes[h] * (q - k)
