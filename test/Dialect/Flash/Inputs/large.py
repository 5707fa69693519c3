"""Compares attention with a bias of large numbers, PREFIX.{q,k,v,b}.npy, with NumPy: large.py PREFIX TOLERANCE NAME...

Scores are rounded to f32, as they are where the maximum is subtracted; PREFIX.NAME.npy and PREFIX.NAME-lse.npy are results.
"""
import sys

import numpy as np

prefix, tolerance, *names = sys.argv[1:]
q, k, v, bias = (np.load(f"{prefix}.{name}.npy").astype(np.float64) for name in "qkvb")
scores = (q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]) + bias).astype(np.float32).astype(np.float64)
top = scores.max(-1, keepdims=True)
p = np.exp(scores - top)
out, lse = p @ v / p.sum(-1, keepdims=True), (top + np.log(p.sum(-1, keepdims=True)))[..., 0]
for name in names:
    np.testing.assert_allclose(np.load(f"{prefix}.{name}.npy"), out, rtol=0, atol=float(tolerance), err_msg=name)
    np.testing.assert_allclose(np.load(f"{prefix}.{name}-lse.npy"), lse, rtol=1e-6, atol=float(tolerance), err_msg=name)
