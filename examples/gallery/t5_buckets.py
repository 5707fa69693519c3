"""T5: a learned bias for each bucket of distances, which are exact up to 8 and then by the logarithm."""

import numpy as np

import flash_mlir as flash

table = np.linspace(-1, 1, 16 * 4, dtype=np.float32).reshape(16, 4)


def score(s, b, h, q, k):
    distance = flash.maximum(q - k, 0)
    # 8 buckets from a distance of 8 to one of 128.
    far = 8 + (flash.log(flash.maximum(distance, 1) / 8.0) * (8 / 2.772589)).astype(int)
    bucket = flash.where(distance < 8, distance, flash.minimum(far, 15))
    return s + table[bucket, h]


mask = flash.causal()
