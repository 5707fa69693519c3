"""Whether two arrays of f32 or f16 agree but for rounding."""

import sys

import numpy as np

a, b = (np.load(path) for path in sys.argv[1:3])
# Of f16, two roundings, of the probabilities and of the result.
rtol, atol = (2e-3, 1e-3) if a.dtype == np.float16 else (1e-4, 1e-5)
np.testing.assert_allclose(
    a.astype(np.float64), b.astype(np.float64), rtol=rtol, atol=atol
)
