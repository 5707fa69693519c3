"""Compares gradients of attention with a bias, PREFIX.{q,k,v,b,g}.npy, with NumPy: large_grad.py PREFIX TOLERANCE NAME...

PREFIX.NAME-{dq,dk,dv}.npy are the results. Rows with a gradient of the output of 0 add nothing, whatever their scores are.
"""
import sys

import numpy as np

prefix, tolerance, *names = sys.argv[1:]
q, k, v, bias, grad = (np.load(f"{prefix}.{name}.npy").astype(np.float64) for name in "qkvbg")
scale = 1 / np.sqrt(q.shape[-1])
scores = q @ k.swapaxes(-1, -2) * scale + bias
p = np.exp(scores - scores.max(-1, keepdims=True))
p /= p.sum(-1, keepdims=True)
dp = grad @ v.swapaxes(-1, -2)
ds = p * (dp - (p * dp).sum(-1, keepdims=True)) * scale
wanted = {"dq": ds @ k, "dk": ds.swapaxes(-1, -2) @ q, "dv": p.swapaxes(-1, -2) @ grad}
for name in names:
    for result, array in wanted.items():
        np.testing.assert_allclose(np.load(f"{prefix}.{name}-{result}.npy"), array, rtol=0, atol=float(tolerance), err_msg=f"{name} {result}")
