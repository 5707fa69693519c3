"""Captured tensors that are indexed in steps, and reductions of their rows, beside PyTorch."""

import numpy as np
import pytest

import flash_mlir as flash

torch = pytest.importorskip("torch")

table = torch.randn(2, 40, generator=torch.Generator().manual_seed(0), requires_grad=True)
deep = torch.randn(3, 2, 40, 40, generator=torch.Generator().manual_seed(1))
points = torch.randn(40, 3, generator=torch.Generator().manual_seed(2), requires_grad=True)
pairs = torch.tensor([[0, 8], [8, 40]])


def squares(row):
    return (row * row).sum(-1)


SCORES = {
    "steps": lambda s, b, h, q, k: s + table[h][q] + deep[0][h, q][k] + deep[2, ..., k][h][q] + deep[1][:, q][h, k],
    "pair": lambda s, b, h, q, k: s + ((k >= pairs[q // 20][..., 0]) & (k < pairs[q // 20][..., 1])) * 0.5,
    "distance": lambda s, b, h, q, k: s - (points[q] - points[k]).pow(2).sum(-1),
    "norm": lambda s, b, h, q, k: s - (1 + squares(points[q])).sqrt() + 2.0 * points[k].mean(-1) + (3 - points[q])[..., 1],
    "choice": lambda s, b, h, q, k: s + (pairs[h] == 8).any(-1) * 0.5 * (k % 2) + points[k].amax(-1),
    "sizes": lambda s, b, h, q, k: s + table[h, q.clamp(max=table.shape[1] // 2)] + len(points) + points.size(1) + table.ndim,
    "transposed": lambda s, b, h, q, k: s + table.T[q, h] + pairs.float()[h, 0] + pairs.to(torch.float32)[h][..., 1] * 0.1,
}


def make_reference(score):
    def attention(query, key, value):
        s = query @ key.mT / query.shape[-1] ** 0.5
        return torch.softmax(score(s, *torch.meshgrid(*map(torch.arange, s.shape), indexing="ij")), -1) @ value

    return attention


def sized(s, b, h, q, k):
    """For all positions at once."""
    return s + deep[0][h, q, k] + table[h, q] + deep[2][h, q, k] + deep[1][h, q, k]


@pytest.mark.parametrize("name", SCORES)
def test_beside_pytorch(name, rng):
    score = SCORES[name]
    operands = [torch.tensor(rng.standard_normal((1, 2, 40, 16)), dtype=torch.float32) for _ in range(3)]
    output_grad = torch.tensor(rng.standard_normal((1, 2, 40, 16)), dtype=torch.float32)
    operands[0].requires_grad_()
    results = []
    for function in (lambda *x: flash.attention(*x, score=score), make_reference(sized if name == "steps" else score)):
        output = function(*operands)
        grads = torch.autograd.grad(output, [operands[0], table, points], output_grad, allow_unused=True)
        results.append((output, *grads))
    for actual, expected in zip(*results):
        assert (actual is None) == (expected is None)
        if actual is not None:
            np.testing.assert_allclose(actual.detach(), expected.detach(), rtol=1e-4, atol=1e-4)


def test_dot(rng):
    operands = [torch.tensor(rng.standard_normal((1, 2, 40, 16)), dtype=torch.float32) for _ in range(3)]
    output = flash.attention(*operands, score=lambda s, b, h, q, k: s + torch.dot(points[q], points[k]))
    expected = make_reference(lambda s, b, h, q, k: s + points @ points.T)(*operands)
    np.testing.assert_allclose(output.detach(), expected.detach(), rtol=1e-4, atol=1e-4)


def test_another_size():
    """What a function computed from sizes holds for these alone."""
    query = torch.randn(1, 1, 8, 8)

    def attend(rows):
        return flash.attention(query, query, query, score=lambda s, b, h, q, k: s * rows[0].sum(-1) * rows.shape[1])

    for size in (2, 3, 2):
        expected = flash.attention(query, query, query, score=lambda s, b, h, q, k: s * float(size) ** 2)
        torch.testing.assert_close(attend(torch.ones(1, size)), expected)


@pytest.mark.parametrize(
    "score, message",
    [
        (lambda s, b, h, q, k: s + table[h], "a Row cannot be traced|truth value|row"),
        (lambda s, b, h, q, k: s + table[h, q, k], "is indexed with 3 positions"),
        (lambda s, b, h, q, k: s + table[h][1:][q], "is sliced by `:` alone"),
        (lambda s, b, h, q, k: s + (points[q] + pairs[h]).sum(-1), "do not go together"),
        (lambda s, b, h, q, k: s + deep[0, 0].sum(), "has 1600 elements"),
        (lambda s, b, h, q, k: s + points[q].median(), "has no median"),
    ],
)
def test_refused(score, message):
    query = torch.randn(1, 2, 40, 16)
    with pytest.raises(flash.TraceError, match=message):
        flash.attention(query, query, query, score=score)
