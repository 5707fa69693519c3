"""Stripes (vertical and slash): a query sees the 15 keys before it, and every sixteenth key further back."""

def mask(b, h, q, k):
    return (k <= q) & ((q - k <= 15) | (k % 16 == 0))
