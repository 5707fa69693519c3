"""Causal: a query sees the keys up to its own position."""

def mask(b, h, q, k):
    return k <= q
