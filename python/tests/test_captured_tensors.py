"""Tensors that functions reach by attributes, lists and partials are read at each call, like those of closures."""

import functools

import numpy as np
import pytest
from conftest import assert_close, reference

import flash_mlir as flash
from flash_mlir.attention import _prepare

torch = pytest.importorskip("torch")


class Owner:
    def __init__(self, number):
        self.number = number

    def __call__(self, s, b, h, q, k):
        return s * get_number(self.number)


def get_number(number):
    return number if number.ndim == 0 else number[0]


def of_closure(number):
    return lambda s, b, h, q, k: s * get_number(number)


def of_list(number):
    numbers = [number]
    return lambda s, b, h, q, k: s * get_number(numbers[0])


def of_partial(number):
    return functools.partial(lambda number, s, b, h, q, k: s * get_number(number), number)


def of_detached(number):
    owner = Owner(number)
    return lambda s, b, h, q, k: s * get_number(owner.number.detach())


@pytest.mark.parametrize("make_score", [Owner, of_closure, of_list, of_partial, of_detached])
@pytest.mark.parametrize("shape", [(), (1,)])
def test_numbers_are_read_at_each_call(make, make_score, shape):
    arrays = make()
    query, key, value = map(torch.from_numpy, arrays)
    number = torch.ones(shape)
    score = make_score(number)
    attend = flash.Attention(score=score)
    mask = flash.mask(lambda b, h, q, k: score(k - q, b, h, q, k) <= 8)
    prepared = _prepare(None, score, None, None, False, False)[0]
    for factor in (1.0, 0.25, 4.0):
        number.fill_(factor)
        expected, _ = reference(*arrays, score=lambda s, b, h, q, k: s * factor)
        assert_close(attend(query, key, value), expected, "float32")
        assert_close(flash.attention(query, key, value, score=score), expected, "float32")
        expected, _ = reference(*arrays, lambda b, h, q, k: (k - q) * factor <= 8)
        assert_close(flash.attention(query, key, value, mask=mask), expected, "float32")
    # A number is no new kernel.
    assert _prepare(None, score, None, None, False, False)[0] is prepared


def test_attribute_without_dimensions_of_numpy(make):
    arrays = make()
    owner = Owner(np.array(1.0, np.float32))
    attend = flash.Attention(score=owner)
    for factor in (1.0, 0.25):
        owner.number[()] = factor
        assert_close(attend(*arrays), reference(*arrays, score=lambda s, b, h, q, k: s * factor)[0], "float32")


@pytest.mark.parametrize("kind", [np.array, torch.tensor])
def test_sizes_of_masks_that_change(make, kind):
    arrays = make()
    number = kind(4)
    kept = flash.prefix(number) | flash.window(number, 1)
    attend = flash.Attention(kept)
    for size in (4, 9, 0):
        number[...] = size
        # Key 16 is on the diagonal of the first query.
        expected, _ = reference(*arrays, lambda b, h, q, k: (k < size) | ((k - q - 16 >= -size) & (k - q - 16 <= 1)))
        for mask in (kept, flash.prefix(number) | flash.window(number, 1)):
            assert_close(flash.attention(*arrays, mask=mask), expected, "float32")
        assert_close(attend(*arrays), expected, "float32")
    for wrong, text in ((kind([3]), "length has 1 dimensions; expected 0"), (kind(3.0), "length has no integer dtype")):
        with pytest.raises((TypeError, ValueError), match=text):
            flash.prefix(wrong)


@pytest.mark.parametrize(
    "number",
    [
        lambda: torch.tensor(3),
        lambda: torch.tensor([3])[0],
        lambda: torch.full((), 2) + 1,
        lambda: torch.tensor(3.0).detach(),
        lambda: np.array(3),
        lambda: np.array([3]).reshape(()),
    ],
)
def test_numbers_that_functions_make_are_constants(number):
    mask = flash.mask(lambda b, h, q, k: k <= q + number())
    assert not mask.tensors
    if "float" not in str(number().dtype):
        assert mask.lowered[0] is not None and mask.lowered[1] is None


class Layer(torch.nn.Module):
    def __init__(self, of_method=False, device=None):
        super().__init__()
        self.bias = torch.nn.Parameter(torch.randn(37, 53, device=device))
        self.factor = torch.nn.Parameter(torch.tensor(0.5, device=device))
        self.register_buffer("offset", torch.tensor([3], device=device))
        score = self.score if of_method else lambda s, b, h, q, k: self.score(s, b, h, q, k)
        self.attend = flash.Attention(score=score)

    def score(self, s, b, h, q, k):
        return s * self.factor + self.bias[q, k] + self.offset[0] * k / 53

    def forward(self, *arrays):
        return self.attend(*arrays)


@pytest.mark.parametrize("of_method", [False, True])
def test_parameters_that_are_replaced(make, of_method):
    """As `Module` does by assign=True, functional_call, and to_empty."""
    arrays = make()
    operands = list(map(torch.from_numpy, arrays))

    def check(output, layer):
        factor, bias, offset = (x.detach().double().numpy() for x in (layer.factor, layer.bias, layer.offset))
        expected, _ = reference(*arrays, score=lambda s, b, h, q, k: s * factor + bias[q, k] + offset * k / 53)
        assert_close(output.detach(), expected, "float32")

    layer, other = Layer(of_method), Layer(of_method)
    with torch.no_grad():
        other.factor.fill_(2.0)
        other.offset.fill_(-1)
    check(layer(*operands), layer)
    check(torch.func.functional_call(layer, dict(other.state_dict()), tuple(operands)), other)
    check(layer(*operands), layer)
    layer.load_state_dict(other.state_dict(), assign=True)
    output = layer(*operands)
    check(output, other)
    output.sum().backward()
    assert layer.bias.grad is not None and layer.factor.grad is not None
    empty = Layer(of_method, device="meta").to_empty(device="cpu")
    empty.load_state_dict(other.state_dict())
    check(empty(*operands), other)
