"""A picture before text, as one model has it: a prefix that all see, a window, a soft cap, and sinks."""

import numpy as np

import flash_mlir as flash

sink = np.array([0.0, 0.5, -1.0, 2.0], dtype=np.float32)


def mask(b, h, q, k):
    return (k < 24) | ((k <= q) & (q - k <= 40))


def score(s, b, h, q, k):
    return 8.0 * flash.tanh(s / 8.0)
