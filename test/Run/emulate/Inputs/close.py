"""Whether two arrays of f32 agree but for rounding."""

import sys

import numpy as np

a, b = (np.load(path) for path in sys.argv[1:3])
np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
