"""Block diffusion: the first half of the row is noised, the second clean. Noised blocks of 16 see themselves and the clean blocks before them; clean blocks see the clean ones up to themselves."""

def mask(b, h, q, k):
    same = (q < 64) & (q // 16 == k // 16)
    before = (q < 64) & (k >= 64) & (q // 16 > (k - 64) // 16)
    clean = (q >= 64) & (k >= 64) & (q // 16 >= k // 16)
    return same | before | clean
