"""Sliding window: a query sees its own position and the 31 before it."""

def mask(b, h, q, k):
    return (k <= q) & (q - k <= 31)
