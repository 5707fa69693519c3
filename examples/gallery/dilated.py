"""Dilated: a query sees every third position of the 60 before it."""

def mask(b, h, q, k):
    return (k <= q) & (q - k <= 60) & ((q - k) % 3 == 0)
