"""Arrays of other libraries, which DLPack hands over: JAX's, and one that has nothing but that."""

import numpy as np
import pytest
from conftest import TOLERANCE, reference

import flash_mlir as flash


class Producer:
    """An array of which nothing is known but what DLPack says."""

    def __init__(self, array, device=1):
        self._array, self._device = array, device

    def __dlpack_device__(self):
        return self._device, 0

    def __dlpack__(self, **options):
        return self._array.__dlpack__()


def test_operands(make, rng):
    arrays = make()
    query, key, value = map(Producer, arrays)
    lengths, slopes = np.array([7, 50], dtype=np.int32), rng.standard_normal(4).astype(np.float32)
    produced = Producer(slopes)
    output, lse = flash.attention(
        query,
        Producer(arrays[1].swapaxes(1, 2).copy().swapaxes(1, 2)),  # Strides.
        value,
        score=lambda s, b, h, q, k: s + slopes[h] * k,
        lengths=Producer(lengths),
        return_lse=True,
    )
    expected = reference(*arrays, score=lambda s, b, h, q, k: s + slopes[h] * k, lengths=lengths)
    for actual, exact in zip((output, lse), expected):
        assert isinstance(actual, np.ndarray)
        np.testing.assert_allclose(actual, exact, rtol=TOLERANCE["float32"], atol=TOLERANCE["float32"])
    kernel = flash.compile(
        "func.func @f(%x: tensor<?xf32>) -> tensor<?xf32> {\n  return %x : tensor<?xf32>\n}", target="cpu"
    )
    np.testing.assert_array_equal(kernel(produced), slopes)


def test_masks(make):
    """Arrays that masks and functions read may be of any library, too."""
    arrays = make(queries=30, keys=30)
    ids = np.arange(30, dtype=np.int32) // 8
    produced = Producer(ids)
    expected = flash.attention(*arrays, mask=flash.documents(ids))
    np.testing.assert_array_equal(flash.attention(*arrays, mask=flash.documents(produced)), expected)


def test_other_devices(make):
    query, key, value = make()
    with pytest.raises(TypeError, match=r"key is a Producer that is not on the CPU; on CUDA .* torch.from_dlpack\(array\)"):
        flash.attention(query, Producer(key, device=2), value)
    with pytest.raises(TypeError, match="value is a Producer that is not on the CPU; the CPU and CUDA devices are possible"):
        flash.attention(query, key, Producer(value, device=10))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_jax(make, dtype):
    jax = pytest.importorskip("jax")
    device = jax.devices("cpu")[0]
    arrays = make(queries=30, keys=30)
    operands = [jax.device_put(x, device).astype(dtype) for x in arrays]
    table = jax.device_put(np.linspace(-1, 1, 59, dtype=np.float32), device)
    output = flash.attention(*operands, mask=flash.causal(), score=lambda s, b, h, q, k: s + table[q - k + 29])
    assert output.dtype.name == dtype
    slope = np.asarray(table)
    exact, _ = reference(
        *[np.asarray(x, dtype=np.float64) for x in operands],
        keep=lambda b, h, q, k: k <= q,
        score=lambda s, b, h, q, k: s + slope[q - k + 29],
    )
    np.testing.assert_allclose(output.astype(np.float64), exact, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


class Tracer:
    """What stands for an array, as JAX's do under jit and grad: it has the methods, which raise."""

    shape, ndim, dtype = (1, 2, 8, 16), 4, np.dtype("float32")

    def __init__(self, has_device):
        self._has_device = has_device

    def __dlpack_device__(self):
        if not self._has_device:
            raise AttributeError("DynamicJaxprTracer has no attribute __dlpack_device__")
        return 1, 0

    def __dlpack__(self, **options):
        raise ValueError("a tracer has no memory")

    def __array__(self, *arguments, **options):
        raise ValueError("a tracer has no elements")


@pytest.mark.parametrize("has_device", [False, True])
def test_tracers(make, has_device):
    query, key, value = make()
    tracer = Tracer(has_device)
    with pytest.raises(TypeError, match="key is a Tracer, which gives no elements.* outside of jax.jit, jax.grad") as error:
        flash.attention(query, tracer, value)
    assert isinstance(error.value.__cause__, (AttributeError, ValueError))
    with pytest.raises(TypeError, match="query is a Tracer, which gives no elements"):
        flash.attention(tracer, tracer, tracer)
