"""Sliding tiles (STA): a picture 16 wide in tiles of 4 by 4; all of a tile see the tiles next to it."""

def mask(b, h, q, k):
    rows = abs(q // 64 - k // 64)
    columns = abs(q % 16 // 4 - k % 16 // 4)
    return (rows <= 1) & (columns <= 1)
