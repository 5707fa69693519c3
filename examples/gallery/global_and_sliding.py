"""Global and sliding (Longformer): the first 4 positions see all and are seen by all; the others see 20 to each side."""

def mask(b, h, q, k):
    return (q < 4) | (k < 4) | (abs(q - k) <= 20)
