"""What `attention` takes for its operands beside row-major arrays of one dtype."""

import numpy as np
import pytest
from conftest import assert_close, reference

import flash_mlir as flash

torch = pytest.importorskip("torch")


def close(actual, expected, tolerance=1e-5):
    torch.testing.assert_close(actual.double(), expected.double(), rtol=tolerance, atol=tolerance)


def negated(tensor):
    """The same values, held by memory with the other sign."""
    view = torch._neg_view(-tensor)
    assert view.is_neg()
    return view


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(
    not torch.cuda.is_available(), reason="needs a GPU"))])
def test_negative_views(device):
    """Every tensor that is read may be a lazy negation, such as the imaginary part of what was conjugated."""
    torch.manual_seed(0)
    operands = [torch.randn(1, 2, 10, 16, device=device) for _ in range(3)]
    sink, bias, output_grad = (torch.randn(shape, device=device) for shape in ((2,), (10, 10), (1, 2, 10, 16)))
    lse_grad = torch.randn(1, 2, 10, device=device)
    lengths = torch.tensor([7], dtype=torch.int32, device=device)

    def differentiate(change):
        leaves = [change(x.clone()).detach().requires_grad_() for x in (*operands, sink, bias)]
        query, key, value, its_sink, its_bias = leaves
        attend = flash.Attention(score=lambda s, b, h, q, k: s + its_bias[q, k], return_lse=True)
        results = attend(query, key, value, change(lengths), its_sink)
        grads = torch.autograd.grad(results, leaves, [change(output_grad), change(lse_grad)])
        captured = change(bias)
        found = flash.attention_grad(
            *map(change, operands), *(change(x.detach()) for x in results), change(output_grad),
            score=lambda s, b, h, q, k: s + captured[q, k], lengths=change(lengths), sink=change(sink),
            lse_grad=change(lse_grad), wrt=[captured],
        )
        plan = flash.plan(lambda b, h, q, k: captured[q, k] > 0, *map(change, operands[:2]), lengths=change(lengths))
        return [*results, *grads, *found, flash.attention(*operands, mask=plan)]

    for actual, expected in zip(differentiate(negated), differentiate(lambda x: x)):
        close(actual, expected)


def test_negative_arguments_of_kernels():
    kernel = flash.compile("""
        func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
          return %x : tensor<4xf32>
        }""", target="cpu")
    x = torch.randn(4)
    close(kernel(negated(x)), x)


def attend_naively(query, key, value, lengths=None, sink=None, causal=False):
    """PyTorch's operators."""
    group = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(group, 1), value.repeat_interleave(group, 1)
    s = query @ key.transpose(-1, -2) * query.shape[-1] ** -0.5
    q, k = torch.arange(s.shape[2])[:, None], torch.arange(s.shape[3])
    if causal:
        s = s.masked_fill(k > q + s.shape[3] - s.shape[2], float("-inf"))
    if lengths is not None:
        s = s.masked_fill(k >= lengths[:, None, None, None], float("-inf"))
    if sink is not None:
        s = torch.cat([s, sink[None, :, None, None].expand(*s.shape[:3], 1)], -1)
    return s.softmax(-1)[..., : key.shape[2]] @ value


def make(dim, value_dim, heads=4, key_heads=2, queries=9, keys=13, dtype=torch.float32):
    torch.manual_seed(dim)
    shapes = (heads, queries, dim), (key_heads, keys, dim), (key_heads, keys, value_dim)
    return [torch.randn(2, *shape, dtype=dtype) for shape in shapes]


@pytest.mark.parametrize("dims", [(1, 1), (4, 10), (7, 16), (16, 3), (121, 250)])
def test_head_dimensions(dims):
    """Any from 1 to 256: functions, objects, plans, gradients, torch.compile, export, NumPy, three dimensions."""
    operands = make(*dims)
    leaves = [x.requires_grad_() for x in operands]
    mask = flash.causal() & flash.documents(np.arange(9) % 2, np.arange(13) % 2)
    plan = flash.plan(flash.causal() & flash.mask(lambda b, h, q, k: (q * k) % 7 != 8), *operands)
    expected = attend_naively(*(x.double() for x in operands), causal=True)
    output_grad = torch.randn(expected.shape)
    expected_grads = torch.autograd.grad(expected, leaves, output_grad.double())
    attend = flash.Attention(flash.causal())

    def compiled(*operands):
        return attend(*operands)

    for function in (
        attend,
        lambda *operands: flash.attention(*operands, mask=plan),
        torch.compile(compiled, backend="aot_eager", fullgraph=True),
        lambda *operands: torch.stack([flash.attention(*each, mask=flash.causal()) for each in zip(*operands)]),
    ):
        output = function(*operands)
        assert output.is_contiguous()
        close(output, expected)
        for actual, wanted in zip(torch.autograd.grad(output, leaves, output_grad), expected_grads):
            close(actual, wanted, 1e-4)
    plain = [x.detach() for x in operands]
    assert flash.attention(*plain, mask=mask).shape == expected.shape

    class Layer(torch.nn.Module):
        forward = staticmethod(compiled)

    close(torch.export.export(Layer(), tuple(plain)).module()(*plain), expected)
    output, lse = flash.attention(*(x.numpy() for x in plain), mask=flash.causal(), return_lse=True)
    close(torch.tensor(output), expected)
    found = flash.attention_grad(*(x.numpy() for x in plain), output, lse, output_grad.numpy(), mask=flash.causal())
    for actual, wanted in zip(found, expected_grads):
        close(torch.tensor(actual), wanted, 1e-4)
    tiles = attend.tiles(9, 13, dim=dims[0], value_dim=dims[1], target="cpu")
    assert tiles.masked > 0


@pytest.mark.parametrize("dtype", ["int8", "int16", "int64", "uint8", "uint32"])
def test_lengths(dtype):
    """Of any integers; of 64 bits also such that 32 do not hold."""
    operands = make(16, 16)
    for given in ([5, 13], [5, 2**40 if dtype == "int64" else 100]):
        lengths = torch.tensor(given, dtype=getattr(torch, dtype))
        expected = attend_naively(*operands, lengths=torch.tensor(given))
        close(flash.attention(*operands, lengths=lengths), expected)
        close(flash.attention(*operands, mask=flash.key_lengths(lengths)), expected)
        close(flash.attention(*operands, mask=flash.plan(flash.full(), *operands, lengths=lengths)), expected)
        arrays = [x.numpy() for x in operands]
        close(torch.tensor(flash.attention(*arrays, lengths=np.array(given, dtype=dtype))), expected)
        leaf = operands[0].clone().requires_grad_()
        close(flash.attention(leaf, *operands[1:], lengths=lengths), expected)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_sinks(dtype):
    """Of any floating-point type, which the gradient has, too."""
    operands = make(16, 16)
    sink = torch.randn(4).to(getattr(torch, dtype)).requires_grad_()
    output = flash.attention(*operands, sink=sink)
    expected = attend_naively(*(x.double() for x in operands), sink=sink.double())
    close(output, expected)
    (grad,) = torch.autograd.grad(output.sum(), sink)
    (wanted,) = torch.autograd.grad(expected.sum(), sink)
    assert grad.dtype == sink.dtype
    close(grad, wanted, 1e-2 if dtype != "float64" else 1e-5)
    output, lse = flash.attention(*operands, sink=sink.detach(), return_lse=True)
    grads = flash.attention_grad(*operands, output, lse, torch.ones_like(output), sink=sink.detach())
    assert grads[3].dtype == sink.dtype
    close(grads[3], grad)


def test_arrays_of_numpy_beside_tensors():
    """With gradients, too: what autograd keeps is a copy, which later changes of the array leave alone."""
    query, key, value = (x.requires_grad_() for x in make(16, 16, queries=13))
    ids, lengths, sink = np.arange(13) // 4, np.array([9, 13]), np.zeros(4, np.float32)
    bias = np.ones(13, np.float32)

    def attend(query, ids, bias, lengths, sink):
        score = lambda s, b, h, q, k: s * bias[k]  # noqa: E731
        return flash.attention(query, key, value, flash.documents(ids), score, lengths=lengths, sink=sink)

    arrays = ids, bias, lengths, sink
    expected = attend(query, *map(torch.tensor, arrays))
    output = attend(query, *arrays)
    torch.testing.assert_close(output, expected, rtol=0, atol=0)
    torch.testing.assert_close(attend(query.detach(), *arrays), expected, rtol=0, atol=0)
    ids[:], bias[:], lengths[:], sink[:] = 0, 5, 1, 3
    grads = [torch.autograd.grad(x.square().sum(), (query, key, value)) for x in (output, expected)]
    torch.testing.assert_close(*grads, rtol=0, atol=0)
    output = flash.attention(query, key.detach().numpy(), value.detach().numpy())
    assert output.requires_grad and output.shape == expected.shape


def test_float64():
    """Computed in fp64 throughout: with gradients as autograd's own check wants them."""
    query, key, value = (x.requires_grad_() for x in make(5, 3, queries=4, keys=6, dtype=torch.float64))
    lengths = torch.tensor([4, 6])
    sink, bias = torch.randn(4, dtype=torch.float64), torch.randn(4, 6, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda *x: flash.attention(*x, mask=flash.causal()), (query, key, value))
    leaves = query, key, value, sink.requires_grad_(), bias.requires_grad_()

    def attend(query, key, value, sink, bias):
        score = lambda s, b, h, q, k: flash.tanh(s) + bias[h, k]  # noqa: E731
        return flash.attention(query, key, value, None, score, lengths=lengths, sink=sink, return_lse=True)

    assert torch.autograd.gradcheck(attend, leaves)
    output, lse = attend(*leaves)
    assert output.dtype == lse.dtype == torch.float64
    expected = attend_naively(query, key, value, lengths, sink)
    close(flash.attention(query, key, value, lengths=lengths, sink=sink), expected, 1e-14)
    arrays = [x.detach().numpy() for x in (query, key, value)]
    close(torch.tensor(flash.attention(*arrays)), attend_naively(query, key, value), 1e-14)
    kept = bias.detach()
    plan = flash.plan(lambda b, h, q, k: kept[h, k] > 0, query, key, value)
    close(flash.attention(query, key, value, mask=plan), flash.attention(query, key, value, mask=plan.mask), 0)
    compiled = torch.compile(attend, backend="aot_eager", fullgraph=True)(*leaves)
    torch.testing.assert_close(compiled, (output, lse), rtol=0, atol=0)


def test_float64_with_a_plan_of_another_dtype():
    operands = make(16, 16)
    ids = torch.arange(13) % 3
    plan = flash.plan(flash.documents(ids[:9], ids), *operands)
    if plan.nbytes:
        with pytest.raises(ValueError, match="make a plan of float64, or give the mask"):
            flash.attention(*(x.double() for x in operands), mask=plan)


@pytest.mark.parametrize("heads, key_heads", [(0, 0), (0, 2)])
def test_no_heads(heads, key_heads):
    leaves = [x.requires_grad_() for x in make(16, 8, heads, key_heads)]
    output, lse = flash.attention(*leaves, mask=flash.causal(), return_lse=True)
    assert output.shape == (2, 0, 9, 8) and lse.shape == (2, 0, 9)
    grads = torch.autograd.grad(output.sum(), leaves)
    for grad, leaf in zip(grads, leaves):
        assert torch.equal(grad, torch.zeros_like(leaf))
    output = flash.attention(*(x.detach().numpy() for x in leaves))
    assert output.shape == (2, 0, 9, 8) and output.dtype == np.float32


def test_dtypes_that_differ():
    query, key, value = make(16, 16)
    with pytest.raises(TypeError, match=r"key is float16 of .*; the dtypes must agree: cast key by .to\(query.dtype\)"):
        flash.attention(query, key.half(), value)
    with pytest.raises(TypeError, match=r"value is float64 of .*: cast value by .astype\(query.dtype\)"):
        flash.attention(query.numpy(), key.numpy(), value.double().numpy())


def test_bfloat16_arrays(make):
    """NumPy's arrays, with the dtype that ml_dtypes adds."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    query, key, value = make(dtype=ml_dtypes.bfloat16)
    output = flash.attention(query, key, value)
    assert output.dtype == ml_dtypes.bfloat16
    assert_close(output, reference(query, key, value)[0], "bfloat16")
