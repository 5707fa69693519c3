"""A window of its own for each head."""

import numpy as np

windows = np.array([3, 9, 27, 81], dtype=np.int32)


def mask(b, h, q, k):
    return (k <= q) & (q - k <= windows[h])
