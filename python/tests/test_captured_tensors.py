"""Tensors that functions reach by attributes, lists and partials are read at each call, like those of closures."""

import copy
import functools
import types

import numpy as np
import pytest
from conftest import assert_close, reference

import flash_mlir as flash
from flash_mlir.preparation import prepare

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
    prepared = prepare(None, score, None, None, False, False)[0]
    for factor in (1.0, 0.25, 4.0):
        number.fill_(factor)
        expected, _ = reference(*arrays, score=lambda s, b, h, q, k: s * factor)
        assert_close(attend(query, key, value), expected, "float32")
        assert_close(flash.attention(query, key, value, score=score), expected, "float32")
        expected, _ = reference(*arrays, lambda b, h, q, k: (k - q) * factor <= 8)
        assert_close(flash.attention(query, key, value, mask=mask), expected, "float32")
    # A number is no new kernel.
    assert prepare(None, score, None, None, False, False)[0] is prepared


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
    copied = copy.deepcopy(Layer(of_method))
    check(torch.func.functional_call(copied, dict(other.state_dict()), tuple(operands)), other)
    copied.load_state_dict(other.state_dict(), assign=True)
    check(copied(*operands), other)
    copied = copy.deepcopy(Layer(of_method))
    copied.load_state_dict(other.state_dict(), assign=True)
    check(torch.compile(copied, backend="eager", fullgraph=True)(*operands), other)


@pytest.mark.parametrize("is_compiled", [False, True])
@pytest.mark.parametrize("is_copied", [False, True])
def test_parameters_of_another_dtype(make, is_copied, is_compiled):
    arrays = make()
    layer = Layer()
    layer = (copy.deepcopy(layer) if is_copied else layer).double()
    factor, bias, offset = (x.detach().numpy() for x in (layer.factor, layer.bias, layer.offset))
    expected, _ = reference(*arrays, score=lambda s, b, h, q, k: s * factor + bias[q, k] + offset * k / 53)
    call = torch.compile(layer, backend="eager", fullgraph=True) if is_compiled else layer
    assert_close(call(*[torch.from_numpy(array).double() for array in arrays]).detach().numpy(), expected, "float32")


class Computed(torch.nn.Module):
    """Its functions compute numbers and arrays of what they find."""

    def __init__(self):
        super().__init__()
        self.slopes = torch.nn.Parameter(torch.rand(8))
        self.register_buffer("table", torch.rand(53))
        self.register_buffer("size", torch.tensor(7))
        self.attend = flash.Attention(mask=flash.full() & self.keep, score=self.score)

    def keep(self, b, h, q, k):
        return (q - k) % 11 < self.size + 1

    def score(self, s, b, h, q, k):
        return s - self.slopes.exp()[h] * (self.table * 2)[k]

    def forward(self, *arrays):
        return self.attend(*arrays)


@pytest.mark.parametrize("is_compiled", [False, True])
@pytest.mark.parametrize("assign", [False, True])
def test_what_functions_compute_is_computed_at_each_call(make, assign, is_compiled):
    arrays = make()
    operands = list(map(torch.from_numpy, arrays))
    layer = Computed()
    copied = copy.deepcopy(layer)
    for module in (layer, copied):
        call = torch.compile(module, backend="eager", fullgraph=True) if is_compiled else module
        for size in (7, 3):
            state = Computed().state_dict()
            module.load_state_dict({**state, "size": torch.tensor(size)}, assign=assign)
            slopes, table = (state[name].double().numpy() for name in ("slopes", "table"))
            expected, _ = reference(
                *arrays,
                lambda b, h, q, k: (q - k) % 11 < size + 1,
                score=lambda s, b, h, q, k: s - np.exp(slopes)[h] * 2 * table[k],
            )
            output = call(*operands)
            assert_close(output.detach(), expected, "float32")
            module.slopes.grad = None
            output.sum().backward()
            assert module.slopes.grad is not None


@pytest.mark.parametrize("is_compiled", [False, True])
def test_masks_of_functions_in_objects(make, is_compiled):
    arrays = make()
    operands = list(map(torch.from_numpy, arrays))
    owner = types.SimpleNamespace(number=torch.tensor([3]))
    near = flash.mask(lambda b, h, q, k: abs(q - k) < owner.number[0])
    attend = flash.Attention(~(flash.prefix(2) | near))
    call = torch.compile(attend, backend="eager", fullgraph=True) if is_compiled else attend
    for size in (3, 8):
        owner.number = torch.tensor([size])
        expected, _ = reference(*arrays, lambda b, h, q, k: (k >= 2) & (abs(q - k) >= size))
        assert_close(call(*operands), expected, "float32")


def test_vmap_of_parameters(make):
    """As an ensemble is called, whose base has no memory."""
    operands = list(map(torch.from_numpy, make()))
    layers = [Layer(), Layer()]
    parameters, buffers = torch.func.stack_module_state(layers)
    base = copy.deepcopy(layers[0]).to("meta")
    outputs = torch.vmap(lambda *state: torch.func.functional_call(base, state, tuple(operands)))(parameters, buffers)
    loss = sum(output.square().sum() for output in outputs)
    grads = torch.autograd.grad(loss, list(parameters.values()))
    for number, layer in enumerate(layers):
        output = layer(*operands)
        torch.testing.assert_close(outputs[number], output)
        for grad, expected in zip(grads, torch.autograd.grad(output.square().sum(), list(layer.parameters()))):
            torch.testing.assert_close(grad[number], expected)


def test_vmap_of_numbers(make):
    operands = list(map(torch.from_numpy, make()))
    numbers = torch.tensor([3, 9])
    outputs = torch.vmap(lambda n: flash.attention(*operands, mask=lambda b, h, q, k: abs(q - k) < n))(numbers)
    for number, output in zip(numbers.tolist(), outputs):
        torch.testing.assert_close(output, flash.attention(*operands, mask=lambda b, h, q, k: abs(q - k) < number))
