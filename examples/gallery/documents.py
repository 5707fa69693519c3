"""Documents: sequences that are packed into one row, each causal, and apart from the others."""

import numpy as np

# Which document each position is in.
ids = np.repeat(np.arange(4), [20, 50, 11, 47]).astype(np.int32)


def mask(b, h, q, k):
    return (ids[q] == ids[k]) & (k <= q)
