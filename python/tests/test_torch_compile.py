"""Masks and score functions that are made in a function which torch.compile or torch.export takes as one graph."""

import copy
import math
import pickle

import pytest

torch = pytest.importorskip("torch")

import flash_mlir as flash  # noqa: E402

# Before, Dynamo knows nothing of functions that are made inside, and breaks the graph.
KNOWS_INNER = torch.__version__ >= (2, 14)
needs_inner = pytest.mark.skipif(not KNOWS_INNER, reason="needs PyTorch 2.14")
IDS = torch.arange(20) // 7
SLOPES = torch.tensor([0.5, 0.25, 0.125, 0.0625])
SCALE = 0.5


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.slopes = torch.nn.Parameter(SLOPES.clone())
        self.cap = 30.0

    def bias(self, s, b, h, q, k):
        return s + self.slopes[h] * (k - q).abs()

    def forward(self, query, key, value):
        def score(s, b, h, q, k):
            return self.cap * torch.tanh(s / self.cap) + self.slopes[h] * (k - q).abs()

        return flash.attention(query, key, value, mask=flash.causal(), score=score)


LAYER = Layer()
OUTER = flash.documents(IDS)
TABLE = {"slopes": SLOPES, "number": 2}


def with_masks(query, key, value):
    mask = OUTER & flash.causal() | ~flash.window(left=18) | flash.documents(IDS * 2) & (lambda b, h, q, k: q >= k)
    return flash.attention(query, key, value, mask=mask)


def with_lengths(query, key, value):
    lengths = torch.full((2,), 11, dtype=torch.int32)
    return flash.attention(query, key, value, mask=flash.key_lengths(lengths) & flash.causal())


def with_flex_masks(query, key, value):
    from torch.nn.attention.flex_attention import and_masks

    mask = and_masks(lambda b, h, q, k: IDS[q] == IDS[k], lambda b, h, q, k: q - k <= 5)
    return flash.attention(query, key, value, mask=mask)


def with_closure(query, key, value):
    slopes = 2 * SLOPES
    half = key.shape[2] // 2

    def score(s, b, h, q, k, factor=math.pi):
        return torch.where(k < half, s * slopes[h] * SCALE, s) + TABLE["slopes"][h] * TABLE["number"] + factor

    return flash.attention(query, key, value, score=score)


SHIFT = flash.key_length - flash.query_length


def with_values(query, key, value):
    """A function refers to what was computed from lengths."""
    last = flash.key_length - flash.query_length

    def near(b, h, q, k):
        return (q + last >= k) & (k > q + SHIFT - 7)

    return flash.attention(query, key, value, mask=near)


def with_method(query, key, value):
    output, lse = flash.attention(query, key, value, score=LAYER.bias, return_lse=True)
    return output + lse[..., None]


@pytest.fixture
def inputs():
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(2, 4, 20, 16, generator=generator) for _ in range(3)]


@pytest.mark.parametrize("function", [with_masks, with_lengths, with_flex_masks, with_closure, with_values, with_method, LAYER])
def test_one_graph(inputs, function):
    torch._dynamo.reset()
    is_one = KNOWS_INNER or function in (with_lengths, with_method)
    compiled = torch.compile(function, backend="aot_eager", fullgraph=is_one)
    query, key, value = inputs
    torch.testing.assert_close(compiled(query, key, value), function(query, key, value))
    short = query[:, :, :9], key[:, :, :12], value[:, :, :12]
    torch.testing.assert_close(compiled(*short), function(*short))


def test_gradients_in_one_graph(inputs):
    """Also of what a score function that is made inside reads."""
    torch._dynamo.reset()
    compiled = torch.compile(LAYER, backend="aot_eager", fullgraph=KNOWS_INNER)
    leaves = [*[x.requires_grad_() for x in inputs], LAYER.slopes]
    expected = torch.autograd.grad(LAYER(*inputs).square().sum(), leaves)
    actual = torch.autograd.grad(compiled(*inputs).square().sum(), leaves)
    torch.testing.assert_close(actual, expected, rtol=0, atol=0)


def test_what_changes(inputs, monkeypatch):
    """Numbers and functions are looked at in each call, as are the contents of tensors."""
    torch._dynamo.reset()
    compiled = torch.compile(with_closure, backend="aot_eager", fullgraph=KNOWS_INNER)
    for name, value in (("SCALE", 0.5), ("SCALE", 3.0), ("SLOPES", torch.ones(4)), ("TABLE", {**TABLE, "number": 5})):
        monkeypatch.setitem(globals(), name, value)
        torch.testing.assert_close(compiled(*inputs), with_closure(*inputs))


def test_graph_breaks(inputs):
    """What cannot be described is called outside of the graph."""
    torch._dynamo.reset()

    class Bag:
        __slots__ = ()

        def __call__(self, s, b, h, q, k):
            return 2 * s

    def recursive(s, n):
        return s if n == 0 else 1.5 * recursive(s, n - 1)

    functions = {
        "recursive": lambda *x: flash.attention(*x, score=lambda s, b, h, q, k: recursive(s, 2)),
        "tensor as scale": lambda *x: flash.attention(*x, scale=torch.tensor(0.5)),
    }
    for function in functions.values():
        torch.testing.assert_close(torch.compile(function, backend="eager")(*inputs), function(*inputs))
    bag = Bag()
    compiled = torch.compile(lambda *x: flash.attention(*x, score=bag), backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(*inputs), flash.attention(*inputs, scale=0.5))


def test_masks_that_leave_the_graph(inputs):
    """They are masks as others are."""
    torch._dynamo.reset()
    mask = torch.compile(lambda: flash.causal() & flash.window(left=3), backend="eager", fullgraph=True)()
    expected = flash.causal() & flash.window(left=3)
    assert mask == expected and hash(mask) == hash(expected) and repr(mask) == repr(expected)
    assert copy.deepcopy(mask) == expected and pickle.loads(pickle.dumps(mask)) == expected
    torch.testing.assert_close(flash.attention(*inputs, mask=mask), flash.attention(*inputs, mask=expected))
    assert (mask | flash.prefix(2)) == (expected | flash.prefix(2))


@pytest.mark.parametrize("strict", [False, pytest.param(True, marks=needs_inner)])
def test_export(inputs, strict):
    length = torch.export.Dim("length", min=2, max=512)
    program = torch.export.export(LAYER, tuple(inputs), dynamic_shapes=[{2: length}] * 3, strict=strict)
    names = [str(node.target) for node in program.graph.nodes]
    assert "flash_mlir.attention_with_gradients.default" in names
    short = [x[:, :, :13] for x in inputs]
    torch.testing.assert_close(program.module()(*short), LAYER(*short))
    with torch.no_grad():
        inference = torch.export.export(LAYER, tuple(inputs), strict=strict)
        assert "flash_mlir.attention.default" in [str(node.target) for node in inference.graph.nodes]
        torch.testing.assert_close(inference.module()(*inputs), LAYER(*inputs))


@pytest.mark.parametrize("strict", [False, pytest.param(True, marks=needs_inner)])
def test_exported_captures(strict):
    """Tensors that functions read keep a size that is open."""

    class Documents(torch.nn.Module):
        def forward(self, query, key, value, ids, bias):
            score = lambda s, b, h, q, k: s + bias[h, k]
            return flash.attention(query, key, value, mask=lambda b, h, q, k: ids[q] == ids[k], score=score)

    def make(length):
        return (*torch.randn(3, 2, 4, length, 16), torch.arange(length) // 5, torch.randn(4, length))

    length = torch.export.Dim("length", min=2, max=512)
    shapes = {2: length}, {2: length}, {2: length}, {0: length}, {1: length}
    program = torch.export.export(Documents(), make(12), dynamic_shapes=shapes, strict=strict)
    others = make(20)
    torch.testing.assert_close(program.module()(*others), Documents()(*others))


class WithObject(torch.nn.Module):
    """An `Attention` that reads a parameter, an element of a list, and a variable."""

    def __init__(self):
        super().__init__()
        self.slopes = torch.nn.Parameter(SLOPES.clone())
        self.ids = [IDS]
        self.factor = 0.5

        def score(s, b, h, q, k):
            return s * self.factor + self.slopes[h] * (k - q).abs() + TABLE["slopes"][h]

        self.attend = flash.Attention(lambda b, h, q, k: self.ids[0][q] == self.ids[0][k], score, schedule="key_tile=32")

    def forward(self, query, key, value):
        return self.attend(query, key, value)


@pytest.mark.parametrize("fullgraph", [False, True])
def test_objects_read_what_is_there(inputs, monkeypatch, fullgraph):
    """Arrays that were replaced after the graph was made, as an eager call does; numbers stay what they were."""
    torch._dynamo.reset()
    layer = WithObject()
    compiled = torch.compile(lambda *x: layer(*x), backend="aot_eager", fullgraph=fullgraph)
    results = [compiled(*inputs)]

    def check():
        expected, actual = layer(*inputs), compiled(*inputs)
        torch.testing.assert_close(actual, expected)
        assert not any(torch.equal(actual, other) for other in results)
        results.append(actual)
        parameters = [layer.slopes]
        assert torch.equal(*[torch.autograd.grad(x.sum(), parameters)[0] for x in (expected, actual)])

    torch.testing.assert_close(results[0], layer(*inputs))
    layer.load_state_dict({"slopes": torch.ones(4)}, assign=True)
    check()
    layer.ids[0] = torch.arange(20) // 5
    check()
    monkeypatch.setitem(TABLE, "slopes", torch.randn(4))
    check()
    given = {"slopes": torch.zeros(4)}
    call = lambda given, *x: torch.func.functional_call(layer, given, x)
    torch.testing.assert_close(torch.compile(call, backend="eager", fullgraph=fullgraph)(given, *inputs), call(given, *inputs))
    layer.factor = 2.0
    if fullgraph:
        with pytest.raises(Exception, match="has changed since the object was made"):
            compiled(*inputs)
    else:
        torch.testing.assert_close(compiled(*inputs), layer(*inputs))


def test_plan_of_object(inputs):
    """Its arrays come last."""
    torch._dynamo.reset()
    query, key, value = inputs
    table = {"slopes": torch.zeros(4)}
    plan = flash.plan(flash.documents(IDS), query, key)
    attend = flash.Attention(plan, lambda s, b, h, q, k: s + table["slopes"][h] * (q - k))
    compiled = torch.compile(lambda *x: attend(*x), backend="eager", fullgraph=True)
    for slopes in (SLOPES, -SLOPES):
        table["slopes"] = slopes
        torch.testing.assert_close(compiled(*inputs), attend(*inputs))
