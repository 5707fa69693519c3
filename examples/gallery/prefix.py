"""Prefix: all see the first 40 keys, which are the question; what follows is causal."""

def mask(b, h, q, k):
    return (k < 40) | (k <= q)
