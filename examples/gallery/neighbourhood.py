"""Neighbourhood (NATTEN): pixels of a picture 16 wide see those at most 2 rows and 2 columns away."""

def mask(b, h, q, k):
    return (abs(q // 16 - k // 16) <= 2) & (abs(q % 16 - k % 16) <= 2)
