"""What `attention` takes for its operands beside row-major arrays of one dtype."""

import numpy as np
import pytest

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
