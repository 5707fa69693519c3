"""Tree: guesses of a decoder, of which several may follow one token. A token sees its ancestors."""

import numpy as np

# Of each token the one that it follows; then, of each pair, whether one is an ancestor of the other.
parents = [(n - 1) // 2 for n in range(128)]
ancestors = np.eye(128, dtype=bool)
for token in range(1, 128):
    ancestors[token] |= ancestors[parents[token]]


def mask(b, h, q, k):
    return ancestors[q, k]
