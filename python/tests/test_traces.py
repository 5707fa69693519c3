"""A function that is called again computes with what it refers to then, whatever that is and however it is reached."""

import functools
import sys
import types

import numpy as np
import pytest

import flash_mlir as flash
from flash_mlir import functions, preparation

FACTOR = 1.0
LIMITS = [1.0]
TABLE = {"factor": 1.0}


class Config:
    FACTOR = 1.0
    nested = types.SimpleNamespace(factor=1.0)

    @property
    def computed(self):
        return FACTOR

    @classmethod
    def of_class(cls):
        return cls.FACTOR


config = types.ModuleType("config")
config.FACTOR = 1.0
exec("scale = 1.0\ndef get(): return scale\ndef get_default(x=[1.0]): return x[0]", vars(config))
config.inner = types.ModuleType("config.inner")
config.inner.FACTOR = 1.0
other = types.ModuleType("other")
exec("def through(module): return module.scale", vars(other))


def get_factor():
    return FACTOR


def get_attribute():
    return get_attribute.factor


def use_default(value=LIMITS):
    return value[0]


class Callable:
    factor = 1.0

    def __call__(self, s, b, h, q, k):
        return s * self.factor

    def method(self, s, b, h, q, k):
        return s * self.factor


instance = Callable()
temperature = np.array(1.0, dtype=np.float32)
config.temperature = np.array(1.0, dtype=np.float32)


def scale_score(factor, s, b, h, q, k):
    return s * factor


def set_global(value):
    globals()["FACTOR"] = value


def setter(owner, name):
    return lambda value: setattr(owner, name, value)


def set_item(container, key):
    def change(value):
        container[key] = value

    return change


#: A score function, and what changes the factor that it finds somewhere.
CASES = {
    "global": (lambda s, b, h, q, k: s * FACTOR, set_global),
    "global of a function": (lambda s, b, h, q, k: s * get_factor(), set_global),
    "globals()": (lambda s, b, h, q, k: s * globals()["FACTOR"], set_global),
    "__globals__": (lambda s, b, h, q, k: s * get_factor.__globals__["FACTOR"], set_global),
    "property": (lambda s, b, h, q, k: s * Config().computed, set_global),
    "class": (lambda s, b, h, q, k: s * Config.FACTOR, setter(Config, "FACTOR")),
    "class method": (lambda s, b, h, q, k: s * Config.of_class(), setter(Config, "FACTOR")),
    "class, by type()": (lambda s, b, h, q, k: s * type(instance).factor, setter(Callable, "factor")),
    "nested object": (lambda s, b, h, q, k: s * Config.nested.factor, setter(Config.nested, "factor")),
    "module": (lambda s, b, h, q, k: s * config.FACTOR, setter(config, "FACTOR")),
    "module, by getattr": (lambda s, b, h, q, k: s * getattr(config, "FAC" + "TOR"), setter(config, "FACTOR")),
    "module, by vars": (lambda s, b, h, q, k: s * vars(config)["FACTOR"], setter(config, "FACTOR")),
    "module in a module": (lambda s, b, h, q, k: s * config.inner.FACTOR, setter(config.inner, "FACTOR")),
    "function of a module": (lambda s, b, h, q, k: s * config.get(), setter(config, "scale")),
    "module, by another's function": (lambda s, b, h, q, k: s * other.through(config), setter(config, "scale")),
    "default of a module's function": (
        lambda s, b, h, q, k: s * config.get_default(),
        set_item(config.get_default.__defaults__[0], 0),
    ),
    "array of a module": (lambda s, b, h, q, k: s * config.temperature, set_item(config.temperature, ())),
    "import": (lambda s, b, h, q, k: s * __import__("test_traces_imported").FACTOR, setter(config, "FACTOR")),
    "attribute of a function": (lambda s, b, h, q, k: s * get_attribute(), setter(get_attribute, "factor")),
    "default": (lambda s, b, h, q, k: s * use_default(), set_item(LIMITS, 0)),
    "list": (lambda s, b, h, q, k: s * LIMITS[0], set_item(LIMITS, 0)),
    "dictionary": (lambda s, b, h, q, k: s * TABLE["factor"], set_item(TABLE, "factor")),
    "tuple of a list": (lambda s, b, h, q, k, both=(LIMITS, 3): s * both[0][0], set_item(LIMITS, 0)),
    "callable object": (instance, setter(instance, "factor")),
    "bound method": (instance.method, setter(instance, "factor")),
    "array without dimensions": (lambda s, b, h, q, k: s * temperature, set_item(temperature, ())),
    "partial": (lambda *symbols: functools.partial(scale_score, Config.FACTOR)(*symbols), setter(Config, "FACTOR")),
    "function in a function": (lambda s, b, h, q, k: (lambda x: x * Config.FACTOR)(s), setter(Config, "FACTOR")),
}
sys.modules["test_traces_imported"] = config


def run(score):
    query = np.linspace(-2, 2, 8 * 8, dtype=np.float32).reshape(1, 1, 8, 8)
    return flash.attention(query, query, query, score=score)


EXPECTED = {factor: run(lambda s, b, h, q, k: s * factor) for factor in (1.0, 0.25)}


@pytest.mark.parametrize("name", CASES)
def test_changed_value(name):
    score, change = CASES[name]
    for value in (1.0, 0.25, 1.0):
        change(value)
        np.testing.assert_allclose(run(score), EXPECTED[value], rtol=1e-6)


def test_other_object():
    """Functions of one code that refer to different objects."""

    def make(factor):
        def inner(s):
            return s * factor

        return lambda s, b, h, q, k: inner(s)

    for factor in (1.0, 0.25):
        np.testing.assert_allclose(run(make(factor)), EXPECTED[factor], rtol=1e-6)
        np.testing.assert_allclose(run(functools.partial(scale_score, factor)), EXPECTED[factor], rtol=1e-6)
        np.testing.assert_allclose(run(make(np.float32(factor))), EXPECTED[factor], rtol=1e-6)


def test_arrays_beside_a_mutable_object():
    """Arrays are replaced even where something else cannot be remembered."""
    table = np.full(8, 0.25, dtype=np.float32)
    aardvark = types.SimpleNamespace(power=1)
    np.testing.assert_allclose(run(lambda s, b, h, q, k: s * table[q] ** aardvark.power), EXPECTED[0.25], rtol=1e-6)
    np.testing.assert_allclose(run(lambda s, b, h, q, k: s * table[q] ** len(LIMITS)), EXPECTED[0.25], rtol=1e-6)


def prepare(score):
    return preparation.prepare(None, score, None, None, False, False)[0]


def test_kernels_are_found_again():
    """A function that is called each time has the variant of an equal expression, also with arrays of its own."""
    table = np.ones(8, dtype=np.float32)
    bias = flash.tensor(np.ones(8, dtype=np.float32))
    score = lambda s, b, h, q, k: s * Config.FACTOR + table[q] + bias[k]
    first = prepare(score)
    assert prepare(score) is first
    assert bias.array is not None
    table = np.zeros(8, dtype=np.float32)
    assert prepare(score) is first
    table = np.zeros(8, dtype=np.float16)
    assert prepare(score) is not first
    Config.FACTOR = 3.0
    assert prepare(score) is not first
    assert all(tensor.array is None for trace in functions._shared.values() for tensor in trace.tensors)


def test_ordinary_functions_are_remembered():
    """What most functions refer to can be told, so that they are called once."""
    calls = []
    slopes = np.ones(8, dtype=np.float32)

    def helper(x):
        return np.tanh(x) + flash.exp(-abs(x))

    def score(s, b, h, q, k):
        pairs = [(i, min(i, 2)) for i in range(3)]
        window, dtype = len("abc"), np.float32(0.5)
        return helper(s) * config.FACTOR + slopes[h] * dtype * sum(i * j for i, j in pairs) + (q - k) * window

    assert functions._Description(score).key is not None
    assert functions._Description(lambda s, b, h, q, k: s + calls).key is None
    assert functions._Description(lambda s, b, h, q, k: s * np.random.rand()).key is None
    for _ in range(2):
        prepare(score)
    value = functions.trace(score, (flash.query_length,) * 5, "score").value
    assert functions.trace(score, (flash.query_length,) * 5, "score").value is value
