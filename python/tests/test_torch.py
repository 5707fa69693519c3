"""PyTorch tensors: on the CPU, and on a GPU beside PyTorch's own attention."""

import numpy as np
import pytest
from conftest import TOLERANCE, assert_close, reference

torch = pytest.importorskip("torch")

import flash_mlir as flash  # noqa: E402

CAUSAL = flash.causal()
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
DEVICES = ["cpu", pytest.param("cuda", marks=needs_gpu)]
DTYPES = ["float32", "float16", "bfloat16"]


@pytest.fixture
def make_tensors():
    generator = torch.Generator().manual_seed(0)

    def make(device, dtype="float32", batch=2, heads=4, key_heads=2, queries=137, keys=153, size=64, value_size=64):
        shapes = ((batch, heads, queries, size), (batch, key_heads, keys, size), (batch, key_heads, keys, value_size))
        return [torch.randn(s, generator=generator).to(device, getattr(torch, dtype)) for s in shapes]

    return make


def sdpa(query, key, value, keep=None, **options):
    """PyTorch's attention in fp64 on the same values; `keep` is a boolean tensor."""
    query, key, value = (x.double() for x in (query, key, value))
    group = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(group, 1), value.repeat_interleave(group, 1)
    return torch.nn.functional.scaled_dot_product_attention(query, key, value, keep, **options)


def compare(actual, expected, dtype):
    assert actual.dtype == getattr(torch, dtype)
    torch.testing.assert_close(actual.double(), expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


def positions(query, key):
    q = torch.arange(query.shape[2], device=query.device)[:, None]
    k = torch.arange(key.shape[2], device=query.device)[None]
    return q, k, q + key.shape[2] - query.shape[2]


MASKS = {
    "full": (None, lambda q, k, d: (k >= 0) & (q >= 0)),
    "causal": (flash.causal(), lambda q, k, d: k <= d),
    "top left": (flash.causal(top_left=True), lambda q, k, d: k <= q),
    "window": (flash.window(40, 9), lambda q, k, d: (k >= d - 40) & (k <= d + 9)),
    "prefix or causal": (flash.prefix(50) | flash.causal(), lambda q, k, d: (k < 50) | (k <= d)),
    "not": (~flash.window(3, 3), lambda q, k, d: (k < d - 3) | (k > d + 3)),
    "function": (lambda b, h, q, k: (q // 16 == k // 16) | (k < 8), lambda q, k, d: (q // 16 == k // 16) | (k < 8)),
    "not affine": (lambda b, h, q, k: (q * k) % 3 != 1, lambda q, k, d: (q * k) % 3 != 1),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", MASKS)
def test_masks(make_tensors, device, dtype, name):
    if device == "cpu" and dtype != "float32" and name != "causal":
        pytest.skip("the CPU's masks are tested in float32")
    mask, keep = MASKS[name]
    query, key, value = make_tensors(device, dtype)
    compare(flash.attention(query, key, value, mask=mask), sdpa(query, key, value, keep(*positions(query, key))), dtype)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("size", [64, 60])
def test_out(make_tensors, device, size):
    """The result lies in the tensor that is given, also in a graph and with gradients."""
    query, key, value = make_tensors(device, "float16", value_size=size)
    expected, of_rows = flash.attention(query, key, value, CAUSAL, return_lse=True)
    places = [
        torch.empty_like(expected),
        torch.empty(2, 137, 4, size, dtype=torch.float16, device=device).transpose(1, 2),
        torch.empty(2, 4, 137, 2 * size, dtype=torch.float16, device=device)[..., :size],
        torch.empty(2 * 4 * 137 * size + 1, dtype=torch.float16, device=device)[1:].view(2, 4, 137, size),
    ]
    attend = flash.Attention(CAUSAL, return_lse=True)
    for out in places:
        for call in (
            lambda out: flash.attention(query, key, value, CAUSAL, return_lse=True, out=out),
            lambda out: attend(query, key, value, out=out),
            torch.compile(lambda out: attend(query, key, value, out=out), backend="aot_eager", fullgraph=True),
        ):
            out.fill_(float("nan"))
            output, lse = call(out)
            assert output.data_ptr() == out.data_ptr() and torch.equal(out, expected) and torch.equal(lse, of_rows)
    query.requires_grad_()
    out = torch.empty_like(expected)
    assert flash.attention(query, key, value, CAUSAL, out=out) is out
    output = flash.attention(query, key, value, CAUSAL)
    assert torch.equal(*[torch.autograd.grad(result.sum(), query)[0] for result in (out, output)])
    with pytest.raises(TypeError, match="out is a ndarray; expected a Tensor"):
        flash.attention(query, key, value, out=np.empty(expected.shape, np.float16))
    with pytest.raises(TypeError, match="out has the dtype float32; expected float16"):
        flash.attention(query, key, value, out=expected.float())
    with torch.no_grad(), pytest.raises(ValueError, match="out has stride 0 in dimension 1, of size 4; expected memory for each element"):
        flash.attention(query, key, value, out=expected[:, :1].expand(-1, 4, -1, -1))
    with torch.no_grad(), pytest.raises(ValueError, match="out has stride 0 in dimension 1, of size 4; expected memory for each element"):
        flash.attention(query[:, :, :0], key, value, out=expected[:, :1, :0].expand(-1, 4, -1, -1))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", ["bnhd", "packed", "sliced"])
def test_strides(make_tensors, device, dtype, layout):
    query, key, value = make_tensors(device, dtype, heads=4, key_heads=4, queries=130, keys=130)
    if layout == "bnhd":
        inputs = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in (query, key, value)]
    elif layout == "packed":
        packed = torch.stack([x.transpose(1, 2) for x in (query, key, value)], dim=2).contiguous()
        inputs = [x.transpose(1, 2) for x in packed.unbind(2)]
    else:
        inputs = [torch.cat([x, x], dim=3)[:, :, ::2, :64] for x in (query, key, value)]
    assert not inputs[0].is_contiguous()
    output = flash.attention(*inputs, mask=flash.causal())
    compare(output, sdpa(*inputs, is_causal=True), dtype)
    if device == "cuda":
        like = torch.empty_like(inputs[0])
        assert output.stride() == like.stride()
        inputs = [x.detach().requires_grad_() for x in inputs]
        grads = torch.autograd.grad(flash.attention(*inputs), inputs, torch.ones_like(output))
        expected = torch.autograd.grad(sdpa(*inputs), inputs, torch.ones_like(output))
        for grad, other, operand in zip(grads, expected, inputs):
            assert grad.stride() == torch.empty_like(operand).stride()
            compare(grad, other.double(), dtype)


def test_fake_strides():
    """Fake tensors on CUDA have the strides of results there."""
    with torch._subclasses.FakeTensorMode():
        query = torch.empty(2, 19, 4, 24, device="cuda").transpose(1, 2)
        packed = torch.empty(2, 19, 3, 4, 24, device="cuda")[:, :, 0].transpose(1, 2)
        alone = torch.empty(1, 19, 4, 24, device="cuda").transpose(1, 2)
        expanded = torch.empty(1, 4, 19, 24, device="cuda").expand(2, 4, 19, 24)
        for tensor in (query, packed, alone):
            assert flash.attention(tensor, query[:1].expand(tensor.shape), tensor).stride()[1:] == (24, 96, 1)
        assert flash.attention(expanded, query, query).stride() == (1824, 456, 24, 1)
        output, lse = flash.attention(query, query, query[..., :8], return_lse=True)
        assert output.stride() == (608, 8, 32, 1) and lse.stride() == (76, 19, 1)
        row_major = torch.empty(2, 4, 19, 24, device="cpu").transpose(0, 1).contiguous().transpose(0, 1)
        assert flash.attention(row_major, row_major, row_major).is_contiguous()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("heads, key_heads, size, value_size", [(8, 1, 128, 128), (6, 2, 40, 96), (2, 2, 256, 64)])
def test_shapes(make_tensors, device, dtype, heads, key_heads, size, value_size):
    query, key, value = make_tensors(device, dtype, 1, heads, key_heads, 77, 200, size, value_size)
    compare(flash.attention(query, key, value, scale=0.1), sdpa(query, key, value, scale=0.1), dtype)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_operands(make_tensors, device, dtype):
    """Lengths, sinks, captured tensors, the log-sum-exp."""
    query, key, value = make_tensors(device, dtype)
    lengths = torch.tensor([100, 20], dtype=torch.int32, device=device)
    sink = torch.randn(4, device=device)
    slopes = torch.tensor([0.5, 0.25, 0.125, 0.0625], device=device)
    documents = (torch.arange(153, device=device) // 60).to(torch.int64)

    def score(s, b, h, q, k):
        return 30 * torch.tanh(s / 30) + slopes[h] * (k - q)

    mask = flash.documents(documents) | flash.prefix(10)
    output, lse = flash.attention(query, key, value, mask, score, lengths=lengths, sink=sink, return_lse=True)
    ids, per_head = documents.cpu().numpy(), slopes.cpu().numpy()
    expected, expected_lse = reference(
        *(x.float().cpu().numpy() for x in (query, key, value)),
        keep=lambda b, h, q, k: (ids[q] == ids[k]) | (k < 10),
        score=lambda s, b, h, q, k: 30 * np.tanh(s / 30) + per_head[h] * (k - q),
        lengths=lengths.cpu().numpy(),
        sink=sink.cpu().numpy(),
    )
    assert lse.dtype == torch.float32 and lse.device == query.device
    assert_close(output.float().cpu().numpy(), expected, dtype)
    assert_close(lse.cpu().numpy(), expected_lse, dtype)


# As they are written for FlexAttention. Each runs with traced values, and with tensors as the reference.
SCORES = {
    "casts": lambda s, b, h, q, k: (4 * s).to(torch.int32).float() + (q - k).to(s.dtype) / 9 + (3 * s).long() % 2,
    "half": lambda s, b, h, q, k: (30 * s).half().float() / 30 + (5 * s).to(torch.bfloat16).to(torch.float32) / 8,
    "clamp": lambda s, b, h, q, k: s.clamp(-0.5, 0.5) + (q - k).clamp(min=-3) * 0.25 + torch.clamp(s, max=0.25),
    "fill": lambda s, b, h, q, k: s.masked_fill(q - k > 100, -float("inf")) + torch.where(k.eq(3), s.new_ones(()), 0.5),
    "new": lambda s, b, h, q, k: s.where(q.new_ones((), dtype=torch.bool), s.new_zeros(())) + s.new_full((), 2) * k,
    "like": lambda s, b, h, q, k: torch.where(q > k, torch.zeros_like(s), s) + torch.full_like(s, 0.5) * (k % 2),
    "methods": lambda s, b, h, q, k: s.abs().sqrt() + s.sigmoid().log1p() - s.tanh().square() + (q - k).abs() / 50,
    "division": lambda s, b, h, q, k: torch.div(s * 8, 3, rounding_mode="floor")
    + torch.div(q - k, 5, rounding_mode="trunc") / 4 + torch.floor_divide(q, 4) % 3 + torch.remainder(k, 5),
    "rounding": lambda s, b, h, q, k: torch.round(3 * s) + torch.trunc(s * 4) + s.floor() + s.ceil() + s.sign(),
    "bucket": lambda s, b, h, q, k: s + 0.1 * torch.log2((q - k).abs().float() + 0.5).mul(2).to(torch.long),
}
MASK_MODS = {
    "names": lambda b, h, q, k: torch.le(k, q) & q.sub(k).lt(50) | torch.eq(k, 0) & ~torch.ge(q, 30),
    "logic": lambda b, h, q, k: torch.logical_and((q - k).abs() < 40, q.new_ones((), dtype=torch.bool))
    | torch.logical_xor(q.ne(k), k.gt(3)).logical_not(),
}


def test_functions_and_methods(make_tensors):
    query, key, value = make_tensors("cpu", batch=1, heads=2, key_heads=2, queries=61, keys=75, size=16, value_size=16)
    scores = query @ key.transpose(2, 3) / 4
    b, h, q, k = (torch.arange(n).reshape(-1, *[1] * (3 - i)) for i, n in enumerate((1, 2, 61, 75)))
    for function in SCORES.values():
        probabilities = torch.softmax(function(scores, b, h, q, k), dim=-1)
        compare(flash.attention(query, key, value, score=function), (probabilities @ value).double(), "float32")
    for function in MASK_MODS.values():
        expected = sdpa(query, key, value, function(b, h, q, k))
        compare(flash.attention(query, key, value, mask=function), expected, "float32")


@pytest.mark.parametrize("device", DEVICES)
def test_torch_compile(make_tensors, device):
    query, key, value = make_tensors(device)
    slopes = torch.tensor([0.5, 0.25, 0.125, 0.0625], device=device)
    mask = flash.causal() & flash.window(left=20)
    attend = flash.Attention(mask=mask, score=lambda s, b, h, q, k: s + slopes[h] * (k - q), return_lse=True)

    def with_mask(query, key, value):
        return flash.attention(2 * query, key, value, mask=mask) + 1

    def with_new_mask(query, key, value):
        return flash.attention(query, key, value, mask=flash.window(left=20) | flash.prefix(3), scale=0.25)

    def with_object(query, key, value):
        output, lse = attend(query, key, value)
        return output * lse[..., None]

    def with_function(query, key, value):
        return flash.attention(query, key, value, score=lambda s, b, h, q, k: s + slopes[h] * (k - q)) * 2

    for function in (with_mask, with_object, with_new_mask, with_function):
        torch._dynamo.reset()
        # Slopes are neither of the function that is compiled, nor are they global.
        compiled = torch.compile(function, backend="aot_eager", fullgraph=function is not with_function)
        for length in (137, 64):
            short = query[:, :, :length]
            torch.testing.assert_close(compiled(short, key, value), function(short, key, value))


@pytest.mark.parametrize("device", DEVICES)
def test_flex_attention_masks(make_tensors, device):
    """Masks that PyTorch's functions compose, and tensors that are neither in a closure nor globals."""
    flex = pytest.importorskip("torch.nn.attention.flex_attention")

    class Documents:
        def __init__(self, ids):
            self.ids = ids

        def keep(self, b, h, q, k):
            return self.ids[q] == self.ids[k]

    ids = torch.arange(153, device=device) // 40
    other = torch.arange(153, device=device) // 33

    def documents(b, h, q, k):
        return ids[q] == ids[k]

    def left(b, h, q, k):
        return q - k <= 30

    def first(b, h, q, k):
        return k < 3 + 0 * ids[q]

    query, key, value = make_tensors(device)
    q, k, _ = positions(query, key)
    keep = documents(0, 0, q, k)
    for mask, expected in (
        (flex.and_masks(documents, left), keep & (q - k <= 30)),
        (flex.or_masks(flex.and_masks(documents, left), first), keep & (q - k <= 30) | (k < 3)),
        (Documents(ids).keep, keep),
        (Documents(other).keep, other[q] == other[k]),
    ):
        compare(flash.attention(query, key, value, mask=mask), sdpa(query, key, value, expected), "float32")


@pytest.mark.parametrize("device", DEVICES)
def test_autocast(make_tensors, device):
    """As scaled_dot_product_attention: query, key and value become of the dtype of autocast, whatever they were."""
    query, key, value = make_tensors(device, "float16", heads=2, key_heads=2)
    bias = torch.linspace(-1, 1, 153, device=device)
    attend = flash.Attention(mask=flash.causal(), score=lambda s, b, h, q, k: s + bias[k])
    sink = torch.zeros(2, device=device)
    compiled = torch.compile(lambda *x: attend(*x, sink=sink) * 2, backend="aot_eager", fullgraph=True)
    with_mask = torch.compile(
        lambda *x: flash.attention(*x, mask=CAUSAL, sink=sink) * 2, backend="aot_eager", fullgraph=True
    )
    for dtype in (torch.bfloat16, torch.float16):
        inputs = query.to(dtype), key.to(dtype), value.to(dtype)
        expected = attend(*inputs, sink=sink)
        for arguments in ((query, key.float(), value.bfloat16()), (query.float(), key.float(), value.float())):
            with torch.autocast(device, dtype=dtype):
                output = attend(*arguments, sink=sink)
                known = torch.nn.functional.scaled_dot_product_attention(*arguments)
                assert output.dtype == known.dtype == dtype
                assert_close(output.double().cpu(), expected.double().cpu().numpy(), "bfloat16")
                assert compiled(*arguments).dtype == with_mask(*arguments).dtype == dtype
                assert_close(compiled(*arguments).double().cpu() / 2, expected.double().cpu().numpy(), "bfloat16")
                output = flash.attention(*arguments, mask=CAUSAL, sink=sink)
                assert torch.equal(2 * output, with_mask(*arguments))
    with pytest.raises(TypeError, match="key is float32 of shape .*, query float16 of shape .*; the dtypes must agree"):
        attend(query, key.float(), value)
    message = "query float64 of shape .*; the dtypes must agree" if device == "cpu" else "query is float64 of shape"
    with torch.autocast(device), pytest.raises(TypeError, match=message):
        attend(query.double(), key, value)


def test_what_watches(make_tensors):
    """A mode sees operators, in the forward and in the backward; where there is none, none is called."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Watcher(TorchDispatchMode):
        def __torch_dispatch__(self, operator, types, arguments=(), options=None):
            seen.append(operator.name())
            return operator(*arguments, **(options or {}))

    seen = []
    query, key, value = (x.requires_grad_() for x in make_tensors("cpu"))
    output = flash.attention(query, key, value, mask=CAUSAL)
    expected = torch.autograd.grad(output, query, output.detach(), retain_graph=True)
    with Watcher():
        actual = torch.autograd.grad(output, query, output.detach())
    assert "flash_mlir::attention_grad" in seen
    torch.testing.assert_close(actual, expected, rtol=0, atol=0)
    seen.clear()
    with Watcher():
        watched = flash.attention(query, key, value, mask=CAUSAL)
    assert "flash_mlir::attention_with_lse" in seen
    torch.testing.assert_close(watched, output, rtol=0, atol=0)
    seen.clear()
    torch.testing.assert_close(torch.autograd.grad(watched, query, output.detach()), expected, rtol=0, atol=0)
    assert not seen


def test_copies(make_tensors):
    """A copy of a module has copies of its buffers, which a `flash.Attention` in it reads."""
    import copy
    import io

    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("slopes", torch.tensor([0.5, 0.25, 0.125, 0.0625]))
            slopes = self.slopes
            self.attend = flash.Attention(flash.causal(), lambda s, b, h, q, k: s + slopes[h] * (k - q))

        def forward(self, *inputs):
            return self.attend(*inputs)

    inputs = make_tensors("cpu")
    layer = Layer()
    other = copy.deepcopy(layer)
    assert torch.equal(layer(*inputs), other(*inputs))
    other.slopes.zero_()
    torch.testing.assert_close(other(*inputs), flash.attention(*inputs, mask=CAUSAL))
    assert not torch.equal(other(*inputs), layer(*inputs))
    file = io.BytesIO()
    torch.save(layer.attend, file)
    file.seek(0)
    assert torch.equal(torch.load(file, weights_only=False)(*inputs), layer(*inputs))


def test_operator(make_tensors):
    from flash_mlir.preparation import prepare

    import flash_mlir.torch_operator  # noqa: F401

    operators = torch.ops.flash_mlir
    query, key, value = make_tensors("cpu", queries=5, keys=7)
    for return_lse, operator in ((False, operators.attention), (True, operators.attention_with_lse)):
        config = prepare(flash.causal(), None, None, None, False, return_lse)[0].config
        torch.library.opcheck(operator.default, (query, key, value, None, None, [], config))
    # It is copied in each call.
    assert config == '{"clauses": ["mask(#flash.causal)"], "lse": true}'
    output, lse = operators.attention_with_lse(query, key, value, None, None, [], config)
    arguments = (query, key, value, output, lse, output, None, None, None, [])
    torch.library.opcheck(operators.attention_grad.default, (*arguments, [], config))
    with pytest.raises(ValueError, match="wrt has the number 1, and the functions read 0 arrays"):
        operators.attention_grad(*arguments, [1], config)
    leaves = [x.requires_grad_() for x in (query, key, value)]
    torch.library.opcheck(operators.attention_with_gradients.default, (*leaves, None, None, [], config))
    with pytest.raises(NotImplementedError, match="query requires gradients"):
        operators.attention_with_lse(*leaves, None, None, [], config)


def test_errors(make_tensors):
    query, key, value = make_tensors("cpu")
    with pytest.raises(TypeError, match="query has dtype torch.complex64; float16"):
        flash.attention(query.to(torch.complex64), key, value)
    with pytest.raises(TypeError, match="value is left out; give it, or value_dim"):
        flash.attention(query, key, None)


def bias_of(tensor):
    return lambda s, b, h, q, k: s + tensor[h]


GRADIENT_TOLERANCE = {"float32": 1e-4, "float16": 5e-3, "bfloat16": 4e-2}


class Temperature(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.number = torch.nn.Parameter(torch.tensor(0.5))

    def score(self, s, b, h, q, k):
        return s * self.number


def attend_naively(query, key, value, score=None, sink=None, lengths=None, causal=False):
    """What PyTorch differentiates."""
    group = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(group, 1), value.repeat_interleave(group, 1)
    scores = query @ key.transpose(2, 3) * query.shape[3] ** -0.5
    b, h, q, k = (
        torch.arange(n, device=query.device).reshape([-1 if d == i else 1 for d in range(4)])
        for i, n in enumerate(scores.shape)
    )
    if score is not None:
        scores = score(scores, b, h, q, k)
    if causal:
        scores = scores.masked_fill(k > q + scores.shape[3] - scores.shape[2], float("-inf"))
    if lengths is not None:
        scores = scores.masked_fill(k >= lengths.reshape(-1, 1, 1, 1), float("-inf"))
    if sink is not None:
        scores = torch.cat([scores, sink.reshape(1, -1, 1, 1).expand(*scores.shape[:3], 1)], -1)
    lse = scores.logsumexp(-1)
    return torch.softmax(scores, -1)[..., : key.shape[2]] @ value, lse


def compare_gradients(ours, theirs, leaves, rng, dtype="float32"):
    """Both are called without arguments and return (output, lse); theirs may widen the leaves."""
    output, lse = theirs()
    grads = [torch.from_numpy(rng.standard_normal(tuple(x.shape))).to(output.device, x.dtype) for x in ours()]
    expected = torch.autograd.grad((output, lse), leaves, [grad.to(output.dtype) for grad in grads])
    actual = torch.autograd.grad(ours(), leaves, grads)
    tolerance = GRADIENT_TOLERANCE[dtype]
    for one, other in zip(actual, expected):
        assert one.dtype == other.dtype
        magnitude = float(other.float().square().mean().sqrt())
        torch.testing.assert_close(one.float(), other.float(), rtol=tolerance, atol=tolerance * max(magnitude, 1))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("queries, keys, heads, key_heads, size", [(129, 129, 4, 4, 64), (200, 77, 6, 2, 128), (1, 65, 2, 1, 40)])
def test_plain_gradients(make_tensors, rng, device, dtype, queries, keys, heads, key_heads, size):
    """Grouped heads, odd lengths and sinks, with the strides that models have."""
    packed = make_tensors(device, dtype, heads=heads, key_heads=key_heads, queries=queries, keys=keys, size=size, value_size=size)
    leaves = [x.transpose(1, 2).contiguous().requires_grad_() for x in packed]
    sink = torch.from_numpy(rng.standard_normal(heads)).to(device, torch.float32).requires_grad_()
    inputs = [x.transpose(1, 2) for x in leaves]
    compare_gradients(
        lambda: flash.attention(*inputs, mask=CAUSAL, sink=sink, return_lse=True),
        lambda: [x.nan_to_num(neginf=0) for x in attend_naively(*(x.float() for x in inputs), sink=sink, causal=True)],
        [*leaves, sink],
        rng,
        dtype,
    )


def test_gradients(make_tensors, rng):
    """Of all operands and of what a score function reads, as PyTorch's own."""
    query, key, value = [x.requires_grad_() for x in make_tensors("cpu", queries=20, keys=30)]
    slopes, table = torch.rand(4, requires_grad=True), torch.randn(49, requires_grad=True)
    sink = torch.randn(4, requires_grad=True)
    lengths = torch.tensor([7, 30], dtype=torch.int32)

    def score(s, b, h, q, k):
        return 5 * torch.tanh(s / 5) - slopes[h] * abs(q - k) + table[q - k + 29]

    compare_gradients(
        lambda: flash.attention(query, key, value, score=score, sink=sink, lengths=lengths, return_lse=True),
        lambda: attend_naively(query, key, value, score, sink, lengths),
        [query, key, value, slopes, table, sink],
        rng,
    )
    attend = flash.Attention(score=score)
    attend(query, key, value, sink=sink).sum().backward()
    assert all(x.grad is not None for x in (query, key, value, slopes, table, sink))


@pytest.mark.parametrize("device", DEVICES)
def test_gradient_of_a_number(make_tensors, device, rng):
    """A parameter without dimensions is read by the kernel; without a gradient it is a constant."""
    query, key, value = make_tensors(device, queries=20, keys=30)
    module = Temperature().to(device)
    compare_gradients(
        lambda: flash.attention(query, key, value, score=module.score, return_lse=True),
        lambda: attend_naively(query, key, value, module.score),
        [module.number],
        rng,
    )
    with torch.no_grad():
        assert torch.equal(
            flash.attention(query, key, value, score=module.score),
            flash.attention(query, key, value, score=lambda s, b, h, q, k: s * 0.5),
        )


def test_some_gradients(make_tensors):
    """Only those that are asked for are kept."""
    query, key, value = make_tensors("cpu", queries=9, keys=9)
    value = (2 * value.requires_grad_()).transpose(2, 3).contiguous().transpose(2, 3)
    slopes = torch.rand(4)
    output = flash.attention(query, key, value, score=lambda s, b, h, q, k: s * slopes[h])
    (grad,) = torch.autograd.grad(output.sum(), value)
    assert grad.shape == value.shape and not query.requires_grad
    with torch.no_grad():
        assert not flash.attention(query, key, value).requires_grad


@pytest.mark.parametrize("device", DEVICES)
def test_saved_tensors(make_tensors, device):
    """The forward keeps its operands, the output and the log-sum-exp, and nothing else."""
    query, key, value = [x.requires_grad_() for x in make_tensors(device, "float16")]
    saved = []
    with torch.autograd.graph.saved_tensors_hooks(lambda x: (saved.append(x.shape), x)[1], lambda x: x):
        output = flash.attention(query, key, value)
    assert output.requires_grad
    assert sorted(saved) == sorted([query.shape, key.shape, value.shape, output.shape, query.shape[:-1]])


def test_results_that_are_written_to(make_tensors):
    """Gradients would be of other results than those that were returned."""
    query, key, value = [x.requires_grad_() for x in make_tensors("cpu", queries=9, keys=9)]
    for place in range(2):
        results = flash.attention(query, key, value, mask=CAUSAL, return_lse=True)
        with torch.no_grad():
            results[place].mul_(2)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            results[0].sum().backward()


@pytest.mark.parametrize("device", DEVICES)
def test_gradients_that_are_refused(make_tensors, device):
    query, key, value = make_tensors(device)
    number = torch.tensor(0.5, requires_grad=True)
    with pytest.raises(NotImplementedError, match="scale requires gradients, and attention has none of numbers"):
        flash.attention(query, key, value, scale=number)
    with torch.no_grad():
        flash.attention(query, key, value, scale=number)
    query.requires_grad_()
    output = flash.attention(query, key, value)
    with pytest.raises(NotImplementedError, match="attention has no second derivative"):
        torch.autograd.grad(output.sum(), query, create_graph=True)


def test_compiled_gradients(make_tensors):
    """In one graph, with the bits of a call that is not compiled."""
    query, key, value = [x.requires_grad_() for x in make_tensors("cpu", queries=20, keys=30)]
    slopes = torch.rand(4, requires_grad=True)
    attend = flash.Attention(mask=flash.causal(), score=bias_of(slopes))
    torch._dynamo.reset()
    compiled = torch.compile(lambda *x: attend(*x) * 2, backend="aot_eager", fullgraph=True)
    leaves = [query, key, value, slopes]
    expected = torch.autograd.grad((attend(query, key, value) * 2).sum(), leaves)
    actual = torch.autograd.grad(compiled(query, key, value).sum(), leaves)
    for one, other in zip(actual, expected):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


def test_derivatives_are_refused(make_tensors):
    """Those that PyTorch follows by other means than requires_grad."""
    from torch.autograd import forward_ad

    query, key, value = make_tensors("cpu", queries=5, keys=7)
    with forward_ad.dual_level():
        assert flash.attention(query, key, value).shape == query.shape
        dual = forward_ad.make_dual(query, torch.ones_like(query))
        with pytest.raises(NotImplementedError, match="attention has no forward-mode derivative"):
            flash.attention(dual, key, value)
    attend = lambda query: flash.attention(query, key, value)
    with pytest.raises(NotImplementedError, match="attention has no forward-mode derivative"):
        torch.func.jvp(attend, (query,), (query,))
    with pytest.raises(NotImplementedError, match="attention has no gradients for torch.func"):
        torch.func.grad(lambda query: attend(query).sum())(query)
    with pytest.raises(NotImplementedError, match="attention has no gradients for torch.func"):
        torch.vmap(torch.func.grad(lambda query: attend(query[None]).sum()))(query)


def test_vmap(make_tensors):
    """Each element is as a call of its own: masks count its batches alone."""
    query, key, value = make_tensors("cpu", queries=5, keys=7)
    stacked = torch.stack([query, -query, 2 * query], 1)
    slopes = torch.rand(3, 2, 4)

    def attend(query, slopes, key):
        score = lambda s, b, h, q, k: s + slopes[b, h] * k
        return flash.attention(query, key, value, mask=lambda b, h, q, k: q * b <= k, score=score, return_lse=True)

    expected = [attend(stacked[:, i], slopes[i], key) for i in range(3)]
    actual = torch.vmap(attend, in_dims=(1, 0, None))(stacked, slopes, key)
    for part in range(2):
        assert torch.equal(actual[part], torch.stack([each[part] for each in expected]))
    # Two of them, of three dimensions.
    twice = torch.vmap(torch.vmap(lambda q, k, v: flash.attention(q, k, v, mask=CAUSAL)))
    inputs = [x.unflatten(0, (2, 1)) for x in (query, key, value)]
    assert torch.equal(twice(*inputs), flash.attention(query, key, value, mask=CAUSAL).unflatten(0, (2, 1)))

    leaves = [x.requires_grad_() for x in (stacked, slopes, key)]
    torch.vmap(attend, in_dims=(1, 0, None))(*leaves)[0].square().sum().backward()
    found = [x.grad.clone() for x in leaves]
    sum(attend(stacked[:, i], slopes[i], key)[0].square().sum() for i in range(3)).backward()
    for leaf, once in zip(leaves, found):
        torch.testing.assert_close(leaf.grad, 2 * once)

    query.requires_grad_()
    output = flash.attention(query, key, value, mask=CAUSAL)
    directions = torch.randn(3, *output.shape)
    differentiate = lambda direction: torch.autograd.grad(output, query, direction, retain_graph=True)[0]
    for direction, gradient in zip(directions, torch.vmap(differentiate)(directions)):
        assert torch.equal(gradient, differentiate(direction))
    with pytest.raises(NotImplementedError, match="no gradients of a batch at once.*; call torch.autograd.grad for each"):
        torch.autograd.grad(output, query, directions, is_grads_batched=True)


class Block(torch.nn.Module):
    def __init__(self, attend):
        super().__init__()
        self.project, self.slopes, self.attend = torch.nn.Linear(64, 64), torch.nn.Parameter(torch.rand(4)), attend

    def forward(self, query, key, value):
        return self.attend(self.project(query), key, value, self.slopes) + 1


@pytest.mark.parametrize("has_gradients", [False, True])
def test_traced_modules(make_tensors, has_gradients):
    """What torch.jit.trace and torch.fx make calls attention with the tensors that it is given."""
    import io

    attend = flash.Attention(mask=CAUSAL)
    ids = torch.arange(137) // 9
    functions = (
        lambda q, k, v, slopes: attend(q, k, v),
        lambda q, k, v, slopes: torch.cat(flash.attention(q, k, v, return_lse=True)[:1]),
        lambda q, k, v, slopes: flash.attention(q, k, v, CAUSAL, lambda s, b, h, q, k: s - slopes[h] * abs(q - k)),
        lambda q, k, v, slopes: flash.attention(q, k, v, mask=lambda b, h, q, k: ids[q] != k),
        lambda q, k, v, slopes: flash.flex_attention(q, k, v, enable_gqa=True),
    )
    of_jit_alone = functions[2], functions[4]
    inputs, others = make_tensors("cpu"), make_tensors("cpu")
    for function in functions:
        module = Block(function)
        expected = module(*others)
        with torch.set_grad_enabled(has_gradients):
            traced = torch.jit.trace(module, inputs)
        file = io.BytesIO()
        torch.jit.save(traced, file)
        file.seek(0)
        graphs = [traced, torch.jit.load(file)]
        if function not in of_jit_alone:
            graphs.append(torch.fx.symbolic_trace(module))
        for graph in graphs:
            output = graph(*others)
            torch.testing.assert_close(output, expected, rtol=0, atol=0)
            for actual, parameter in zip(graph.parameters(), module.parameters()):
                actual.grad = None
            output.square().sum().backward()
            found = {name: parameter.grad for name, parameter in graph.named_parameters()}
            module.zero_grad()
            module(*others).square().sum().backward()
            for name, parameter in module.named_parameters():
                torch.testing.assert_close(found[name], parameter.grad)


def test_symbols_of_fx(make_tensors):
    """What has no elements is an error where these are needed."""
    query, key, value = make_tensors("cpu")
    output, lse = flash.attention(query, key, value, return_lse=True)
    with pytest.raises(TypeError, match="query is a Proxy, which stands for a tensor; the elements are needed here"):
        torch.fx.symbolic_trace(lambda query: flash.attention_grad(query, key, value, output, lse, output))
    with pytest.raises(TypeError, match="query is a Proxy, which stands for a tensor"):
        torch.fx.symbolic_trace(lambda query: flash.attention(query, key, value, mask=flash.plan(CAUSAL, query, key)))
    with pytest.raises(flash.TraceError, match="torch.fx.symbolic_trace knows no elements of the tensors"):
        torch.fx.symbolic_trace(lambda slopes: flash.attention(query, key, value, score=bias_of(slopes)))


EAGER = """
import sys, torch, flash_mlir as flash
query, key, value = (torch.randn(1, 2, 8, 16, requires_grad=True) for _ in range(3))
slopes = torch.rand(2, requires_grad=True)
flash.attention(query, key, value, mask=flash.causal(), score=lambda s, b, h, q, k: s + slopes[h]).sum().backward()
attend = flash.Attention(mask=flash.causal())
attend(query, key, value).sum().backward()
flash.attention(query, key, value, mask=flash.plan(lambda b, h, q, k: q * k < 9, query, key)).sum().backward()
flash.attention(query.to("meta"), key.to("meta"), value.to("meta"))
with torch.no_grad():
    attend(query, key, value)
assert "torch._dynamo" not in sys.modules, "torch._dynamo was imported"
"""


def test_eager_calls_do_not_import_dynamo():
    """That takes seconds."""
    import subprocess
    import sys

    subprocess.run([sys.executable, "-c", EAGER], check=True)


def test_tensors_without_memory(make_tensors):
    """They give what PyTorch's operators give for such, or an error, and never a crash."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx

    query, key, value = inputs = make_tensors("cpu", "float16", queries=5, value_size=32)
    slopes = torch.ones(4)
    attend = flash.Attention(flash.causal(), bias_of(slopes), return_lse=True)
    meta = [x.to("meta") for x in inputs]
    result = flash.attention(*meta, mask=flash.causal())
    assert (result.device.type, result.dtype, result.shape) == ("meta", torch.float16, (2, 4, 5, 32))
    output, lse = flash.attention(*meta, score=bias_of(slopes.to("meta")), return_lse=True)
    assert lse.is_meta and lse.dtype == torch.float32 and lse.shape == (2, 4, 5)
    for wrong in ((query, *meta[1:]), (meta[0], key, value)):
        with pytest.raises(ValueError, match="a tensor is on .*; they must be on one device"):
            flash.attention(*wrong)
    with pytest.raises(ValueError, match="a tensor is on meta, query on cpu"):
        flash.attention(*inputs, score=bias_of(slopes.to("meta")))

    with FakeTensorMode() as mode:
        fake = [mode.from_tensor(x) for x in inputs]
        result = flash.attention(*fake)
        assert type(result) is type(fake[0]) and result.shape == (2, 4, 5, 32)
    assert type(flash.attention(*fake)) is type(fake[0])  # Also outside of the mode.

    for mode in ("real", "fake", "symbolic"):
        graph = make_fx(lambda *x: attend(*x)[0] + 1, tracing_mode=mode, _allow_non_fake_inputs=True)(*inputs)
        assert any("flash_mlir" in str(node.target) for node in graph.graph.nodes)
        assert torch.equal(graph(*inputs), attend(*inputs)[0] + 1)
    assert torch.equal(torch.func.functionalize(lambda x: flash.attention(x, key, value))(query), flash.attention(*inputs))

    freed = query.clone()
    freed.untyped_storage().resize_(0)
    table = torch.ones(4)
    table.untyped_storage().resize_(0)
    with pytest.raises(ValueError, match="query is a Tensor on the device cpu without memory"):
        flash.attention(freed, key, value)
    with pytest.raises(ValueError, match="tensor is a Tensor on the device cpu without memory"):
        flash.attention(*inputs, score=bias_of(table))
    kernel = flash.compile(
        "func.func @f(%q: tensor<?xf32>) -> tensor<?xf32> {\n  return %q : tensor<?xf32>\n}", target="cpu"
    )
    with pytest.raises(ValueError, match="argument 0 is a Tensor on the device meta without memory"):
        kernel(slopes.to("meta"))


def test_kinds_of_tensors(make_tensors):
    query, key, value = make_tensors("cpu", queries=5, keys=7)
    kinds = {
        "query is a torch.sparse_coo tensor; a dense one is needed": query.to_sparse(),
        "query is a nested tensor": torch.nested.nested_tensor([query[0], query[1]]),
        "query has dtype torch.qint8": torch.quantize_per_tensor(query, 0.1, 0, torch.qint8),
        "query has dtype torch.complex64": query.to(torch.complex64),
        "query has dtype torch.float8_e5m2": query.to(torch.float8_e5m2),
        "query is float8_e4m3fn of shape": query.to(torch.float8_e4m3fn),
        "query is uint8 of shape": query.to(torch.uint8),
    }
    for message, tensor in kinds.items():
        with pytest.raises(TypeError, match=message):
            flash.attention(tensor, key, value)
    for tensor in (torch.eye(7).to_sparse_csr(), torch.ones(7, 7, dtype=torch.uint64)):
        with pytest.raises(TypeError, match="table is a torch.sparse_csr tensor|table has dtype torch.uint64"):
            table = tensor
            flash.attention(query, key, value, score=lambda s, b, h, q, k: s + table[q, k])
    for dtype in (torch.uint8, torch.uint16, torch.uint32):
        table = torch.full((5,), torch.iinfo(dtype).max, dtype=torch.int64).to(dtype)
        top = float(torch.iinfo(dtype).max)
        output = flash.attention(query, key, value, score=lambda s, b, h, q, k: s * (table[q] / top))
        torch.testing.assert_close(output, flash.attention(query, key, value))


def test_tracing_is_remembered():
    """Functions that name PyTorch's can be told apart."""
    from flash_mlir.functions import _Description

    table = torch.ones(4)
    score = lambda s, b, h, q, k: torch.where(q > k, s.to(torch.float32), torch.clamp(s, max=2)) + table[h]
    assert _Description(score).key is not None
    assert _Description(lambda s, b, h, q, k: s * torch.rand(()).item()).key is None


@needs_gpu
def test_gpu_errors(make_tensors):
    query, key, value = make_tensors("cuda")
    with pytest.raises(ValueError, match="key is on the CPU, query on cuda:0; they must be on one device"):
        flash.attention(query, key.cpu(), value)
    with pytest.raises(ValueError, match="query has stride 137 in its last dimension, which must be contiguous"):
        flash.attention(query.transpose(2, 3).contiguous().transpose(2, 3), key, value)
    slopes = torch.ones(4)
    with pytest.raises(ValueError, match="slopes is on the CPU, query on cuda:0"):
        flash.attention(query, key, value, score=lambda s, b, h, q, k: s * slopes[h])


@needs_gpu
def test_results_are_of_pytorchs_allocator(make_tensors):
    """Otherwise record_stream would do nothing, and another stream's memory could be given away."""
    query, key, value = make_tensors("cuda", "float16")
    assert flash.attention(query, key, value).untyped_storage().resizable()


@needs_gpu
def test_streams_and_graphs(make_tensors):
    """Calls are queued on the current stream, and neither wait nor allocate behind PyTorch's back: a graph takes them."""
    query, key, value = make_tensors("cuda", "float16")
    expected = flash.attention(query, key, value, mask=flash.causal())
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.cuda._sleep(200_000_000)
        result = flash.attention(query, key, value, mask=flash.causal())
        assert not stream.query()
    stream.synchronize()
    assert torch.equal(result, expected)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = flash.attention(query, key, value, mask=flash.causal())
    captured.zero_()
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(captured, expected)


@needs_gpu
def test_gpu_program(make_tensors):
    text = flash.compile(
        "func.func @f(%q: tensor<?x?x?x64xf16>) -> tensor<?x?x?x64xf16> {\n"
        "  %o = flash.attention %q, %q, %q"
        " : (tensor<?x?x?x64xf16>, tensor<?x?x?x64xf16>, tensor<?x?x?x64xf16>) -> tensor<?x?x?x64xf16>\n"
        "  return %o : tensor<?x?x?x64xf16>\n}"
    )
    assert text.target.startswith("sm_")
    query, _, _ = make_tensors("cuda", "float16")
    compare(text(query), sdpa(query, query, query), "float16")
    with pytest.raises(ValueError, match="argument 0 is on the CPU"):
        text(query.cpu())


@needs_gpu
@pytest.mark.parametrize("queries", [1, 16])
def test_few_queries(make_tensors, queries):
    """Split-KV needs scratch memory."""
    query, key, value = make_tensors("cuda", "float16", 1, 8, 2, queries, 8192)
    compare(flash.attention(query, key, value), sdpa(query, key, value), "float16")


@needs_gpu
@pytest.mark.parametrize("size, length", [(64, 512), (128, 2048)])
@pytest.mark.parametrize("mask", ["full", "causal", "window", "pixels", "documents"])
def test_order_of_sums(size, length, mask):
    """Tiles of keys are x and -x, large beside all others: sums of dQ in any other order have other bits, which those of
    random inputs, rounded to 16 bits, hardly ever have."""
    shape = (8192 // length, 2048 // size, length, size)
    generator = torch.Generator("cuda").manual_seed(0)
    key, value, output_grad = (
        torch.randn(shape, generator=generator, device="cuda", dtype=torch.bfloat16) for _ in range(3)
    )
    query = torch.zeros_like(key)
    for start in range(128, length - 128, 256):
        one, other = slice(start, start + 128), slice(start + 128, start + 256)
        key[:, :, one] *= 2.0**16
        key[:, :, other] = -key[:, :, one]
        value[:, :, other] = value[:, :, one]
    operands = [x.requires_grad_() for x in (query, key, value)]
    documents = (torch.arange(length, device="cuda") * 3 // length).int()
    masks = {
        "full": None,
        "causal": flash.causal(),
        "window": lambda b, h, q, k: (k <= q) & (q - k < length // 2),
        # These leave tiles no ranges, so that lists say the ranks.
        "pixels": lambda b, h, q, k: (q % 256 - k % 256).abs() <= 100,
        "documents": flash.documents(documents) & flash.causal(),
    }
    output = flash.attention(*operands, mask=masks[mask])
    backward = lambda: torch.autograd.grad(output, query, output_grad, retain_graph=True)[0]
    first = backward()
    differ = sum((backward() != first).any() for _ in range(500))
    assert differ == 0


@needs_gpu
def test_many_launches():
    """Ten thousand launches of 24 kernels in random order: the last result of each has the bits of its first."""
    import itertools
    import random

    shapes = [  # (batch, heads, key heads, length)
        (1, 8, 8, 65),
        (2, 8, 2, 512),
        (3, 4, 4, 1000),
        (4, 6, 1, 1000),
    ]
    generator = torch.Generator().manual_seed(0)
    programs = []
    for size, is_causal, (index, shape) in itertools.product((64, 128, 256), (False, True), enumerate(shapes)):
        batch, heads, key_heads, length = shape
        dtype = ("float16", "bfloat16")[(index + is_causal) % 2]
        inputs = [
            torch.randn((batch, n, length, size), generator=generator).to("cuda", getattr(torch, dtype))
            for n in (heads, key_heads, key_heads)
        ]
        programs.append((inputs, is_causal, dtype))
    masks = {False: None, True: flash.causal()}

    first, last = {}, {}
    order = random.Random(0).choices(range(len(programs)), k=10_000)
    for number, index in enumerate(order, start=1):
        inputs, is_causal, _ = programs[index]
        last[index] = flash.attention(*inputs, mask=masks[is_causal])
        first.setdefault(index, last[index])
        if number % 500 == 0:
            torch.cuda.synchronize()

    assert len(first) == len(programs)
    for index, (inputs, is_causal, dtype) in enumerate(programs):
        assert last[index] is not first[index]
        assert torch.equal(first[index].view(torch.int16), last[index].view(torch.int16)), f"program {index}"
        compare(first[index], sdpa(*inputs, is_causal=is_causal), dtype)


@needs_gpu
def test_overhead(make_tensors):
    """Time of a cached call on the host, beyond that of an empty kernel's launch, in microseconds."""
    import time

    query, key, value = make_tensors("cuda", "float16", 1, 1, 1, 64, 64)
    mask = flash.causal()
    flash.attention(query, key, value, mask=mask)
    best = float("inf")
    for _ in range(20):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(100):
            flash.attention(query, key, value, mask=mask)
        best = min(best, (time.perf_counter() - start) / 100)
    print(f"a cached call takes {1e6 * best:.1f} us on the host")
    assert best < 30e-6


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "int8"])
def test_caches_of_8_bits(device, dtype):
    """New keys go into pages of bytes, and are read there with a scale for each sequence and head."""
    generator = torch.Generator().manual_seed(2)
    draw = lambda *shape: (torch.randn(shape, generator=generator) * 3).to(device, getattr(torch, dtype))
    key, value, new_key, new_value = draw(6, 16, 2, 64), draw(6, 16, 2, 64), draw(2, 3, 2, 64), draw(2, 3, 2, 64)
    query = torch.randn(2, 3, 4, 64, generator=generator).to(device, torch.bfloat16)
    table, lengths = torch.tensor([[4, 1], [0, 5]], dtype=torch.int32, device=device), torch.tensor([14, 20], dtype=torch.int32, device=device)
    scale = (torch.rand(2, 2, generator=generator) + 0.5).to(device)
    expected = [key.clone(), value.clone()]
    for rows, new in zip(expected, (new_key, new_value)):
        for b, length in enumerate(lengths.tolist()):
            for i in range(3):
                page = table[b, (length + i) // 16]
                rows[page, (length + i) % 16] = new[b, i]
    options = dict(cache_seqlens=lengths, block_table=table, causal=True)
    output = flash.flash_attn_with_kvcache(query, key, value, new_key, new_value, k_descale=scale, v_descale=0.25, **options)
    assert torch.equal(key.view(torch.uint8), expected[0].view(torch.uint8)) and torch.equal(value.view(torch.uint8), expected[1].view(torch.uint8))
    for b, length in enumerate((lengths + 3).tolist()):
        rows = [x[table[b].long()].flatten(0, 1)[:length].transpose(0, 1)[None].float() for x in (key, value)]
        k, v = ((x * s).bfloat16() for x, s in zip(rows, (scale[b][:, None, None], 0.25)))
        keep = torch.ones(3, length, dtype=torch.bool, device=device).tril(length - 3)
        compare(output[b : b + 1].transpose(1, 2), sdpa(query[b : b + 1].transpose(1, 2), k, v, keep), "bfloat16")


def test_scale_is_where_queries_are():
    query, key = torch.zeros(1, 1, 2, 16).half(), torch.zeros(1, 5, 2, 16, dtype=torch.int8)
    value, before = key.clone(), key.clone()
    with pytest.raises(ValueError, match="^k_descale is on meta, q on cpu; they must be on one device"):
        options = dict(cache_seqlens=torch.zeros(1, dtype=torch.int32), k_descale=torch.ones(1, device="meta"))
        flash.flash_attn_with_kvcache(query, key, value, key[:, :1] + 1, key[:, :1] + 1, **options)
    assert torch.equal(key, before) and torch.equal(value, before)


def test_tracers_refuse_8_bits():
    """A graph without the call would have a constant in place of its result."""
    proxies = pytest.importorskip("torch.fx.experimental.proxy_tensor")
    query, key = torch.randn(1, 2, 3, 16).half(), torch.zeros(1, 2, 5, 16, dtype=torch.int8)
    call = lambda query: flash.attention(query, key, key, key_scale=1, value_scale=1)
    for trace in (proxies.make_fx(call), lambda query: torch.jit.trace(call, query)):
        with pytest.raises(NotImplementedError, match="have no operator for torch.compile and tracers"):
            trace(query)


def test_errors_of_functions_are_their_own():
    """Names of arguments are exchanged in messages of calls alone that say it by another name."""
    query, key_scale = torch.randn(1, 3, 2, 16), torch.ones(2)
    with pytest.raises(ValueError, match="^key_scale has size 2 in dimension 0"):
        flash.flash_attn_func(query, query, query, score=lambda s, b, h, q, k: s * key_scale[q])

    class Own(ValueError):
        def __init__(self, first, second):
            super().__init__(f"{first} page_table {second}")

    def refuse(b, h, q, k):
        raise Own(1, 2)

    lengths = torch.tensor([3], dtype=torch.int32)
    for options in ({}, dict(cache_seqlens=lengths)):
        with pytest.raises(Own, match="1 page_table 2"):
            flash.flash_attn_with_kvcache(query, query, query, mask=refuse, **options)
    mask = flash.key_lengths(torch.tensor([2], dtype=torch.int32))
    output = flash.flash_attn_with_kvcache(query, query, query, cache_seqlens=lengths, mask=mask)
    assert torch.equal(output, flash.flash_attn_with_kvcache(query, query, query, mask=mask))
