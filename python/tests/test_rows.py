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


number = torch.tensor(0.5)
order = torch.randperm(40, generator=torch.Generator().manual_seed(3))
turns = np.asarray(pairs.numpy() // 8)

# What functions compute, and the same of all positions at once.
PAIRS = {
    "views": (
        lambda s, b, h, q, k: s + table.view(-1)[h * 40 + q] + deep.reshape(6, 40, -1)[4 + h, q, k] + points.flatten()[q * 3 + 1],
        lambda s, b, h, q, k: s + table[h, q] + deep[2, h, q, k] + points[q, 1],
    ),
    "split": (
        lambda s, b, h, q, k: s + table.view(2, 8, 5)[h, q // 5, q % 5] + deep.view(3, 2, 2, 20, 1, 40)[1, h, q // 20, q % 20, 0][k],
        lambda s, b, h, q, k: s + table[h, q] + deep[1, h, q, k],
    ),
    "regrouped": (
        lambda s, b, h, q, k: s + points.view(20, 6)[q // 2, q % 2 * 3 + 2] + points.reshape((3, 40))[-1][q],
        lambda s, b, h, q, k: s + points[q, 2] + points.reshape(3, 40)[2, q],
    ),
    "slices": (
        lambda s, b, h, q, k: s + table[:, 2:][h, k % 38] + points[::2][q // 2, 0] + points[4:, 1:][:, -1][k % 36] + deep[-2:][0, h, q, k],
        lambda s, b, h, q, k: s + table[h, 2 + k % 38] + points[q // 2 * 2, 0] + points[4 + k % 36, 2] + deep[1, h, q, k],
    ),
    "ends": (
        lambda s, b, h, q, k: s + points[q, :2].sum() + table[:, 3:7][h].sum() + table[:, :40][h, q] + points[q][1:3][-1],
        lambda s, b, h, q, k: s + points[q, :2].sum(-1) + table[:, 3:7].sum(-1)[h] + table[h, q] + points[q, 2],
    ),
    "kept": (
        lambda s, b, h, q, k: s - (points[q] - points[q].mean(-1, keepdim=True)).pow(2).sum() + points.sum(1, keepdim=True)[k, 0],
        lambda s, b, h, q, k: s - (points - points.mean(-1, keepdim=True)).pow(2).sum(-1)[q] + points.sum(1)[k],
    ),
    "read": (
        lambda s, b, h, q, k: s + table[h].gather(0, q) + torch.take(table, h * 40 + k) + torch.index_select(table, 1, order)[h, q],
        lambda s, b, h, q, k: s + table[h, q] + table[h, k] + table[h, order[q]],
    ),
    "read by rows": (
        lambda s, b, h, q, k: s + torch.gather(table, 1, pairs % 40)[h].sum() + table[h][pairs[h] // 2].sum() + points[order[q]].sum(),
        lambda s, b, h, q, k: s + table.gather(1, pairs % 40).sum(-1)[h] + table[h[..., None], pairs[h] // 2].sum(-1) + points[order[q]].sum(-1),
    ),
    "isin": (
        lambda s, b, h, q, k: s + torch.isin(k, pairs) * 0.5 + np.isin(q, [1, 2]) * 0.25 - torch.isin(pairs[h], k, invert=True).sum() * 0.1,
        lambda s, b, h, q, k: s
        + torch.isin(k, pairs) * 0.5
        + torch.isin(q, torch.tensor([1, 2])) * 0.25
        - (pairs[h] != k[..., None]).sum(-1) * 0.1,
    ),
    "layouts": (
        lambda s, b, h, q, k: s + deep.permute(3, 0, 2, 1)[k, 0, q, h] + deep[1].transpose(0, -1)[k, q, h] + table[None][0, h, q] + points.mT[0, q],
        lambda s, b, h, q, k: s + deep[0, h, q, k] + deep[1, h, q, k] + table[h, q] + points[q, 0],
    ),
    "dimensions of one": (
        lambda s, b, h, q, k: s + table.unsqueeze(1)[h, 0, q] + table[:, None].squeeze(1)[h, q] + points[q][..., None].squeeze()[1],
        lambda s, b, h, q, k: s + table[h, q] * 2 + points[q, 1],
    ),
    "elements": (
        lambda s, b, h, q, k: s + (table * 2)[h, q] + torch.exp(-number) + torch.abs(points)[q, 0] + torch.maximum(q * 0.1, points[k])[0],
        lambda s, b, h, q, k: s + table[h, q] * 2 + torch.exp(-number) + points[q, 0].abs() + torch.maximum(q * 0.1, points[k, 0]),
    ),
    "numpy": (
        lambda s, b, h, q, k: s
        + turns.reshape(-1)[h]
        + np.take(turns, h)
        + np.take(turns, 1, axis=1)[h]
        + np.sum(turns[h], axis=-1, keepdims=True)[0]
        + np.float32(2) * turns[h].max()
        + turns.transpose()[1, h],
        lambda s, b, h, q, k: s + (pairs.view(-1)[h] * 2 + pairs[h, 1] * 2 + pairs[h].sum(-1) + 2 * pairs[h].amax(-1)) // 8,
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_views(name, rng):
    score, of_all = PAIRS[name]
    operands = [torch.tensor(rng.standard_normal((1, 2, 40, 16)), dtype=torch.float32, requires_grad=True) for _ in range(3)]
    output_grad = torch.tensor(rng.standard_normal((1, 2, 40, 16)), dtype=torch.float32)
    results = []
    for output in (flash.attention(*operands, score=score), make_reference(of_all)(*operands)):
        results.append((output, *torch.autograd.grad(output, [*operands, table, points], output_grad, allow_unused=True)))
    for actual, expected in zip(*results):
        assert (actual is None) == (expected is None)
        if actual is not None:
            np.testing.assert_allclose(actual.detach(), expected.detach(), rtol=1e-4, atol=1e-4)


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
        (lambda s, b, h, q, k: s + table[h], "a row of a captured tensor stands where a number is expected; index the 1"),
        (lambda s, b, h, q, k: s + table[h, q, k], "is indexed with 3 positions"),
        (lambda s, b, h, q, k: s + table[h][:30][q], "ends before the tensor does, at 30.*leave out the end"),
        (lambda s, b, h, q, k: s + table[h][q:][0], "is sliced by numbers"),
        (lambda s, b, h, q, k: s + table[h][::-1][q], "the step -1; steps from 1 on"),
        (lambda s, b, h, q, k: s + points[2:5][3, 0], "has size 3, where it is indexed with 3"),
        (lambda s, b, h, q, k: s + table.view(3, -1)[h, q], r"of shape \(2, 40\) have no view of shape \(3, 26\)"),
        (lambda s, b, h, q, k: s + table.view(torch.int32)[h, q], r"to\(dtype\) is"),
        (lambda s, b, h, q, k: s + table.gather(1, q), "gather of 2 dimensions takes an index of as many"),
        (lambda s, b, h, q, k: s + table.sum(5)[0], "there is no dimension 5 of the 2"),
        (lambda s, b, h, q, k: s + points[q].max(0), "amax has none"),
        (lambda s, b, h, q, k: s + table[pairs[0], pairs[1]].sum(), "one after the other"),
        (lambda s, b, h, q, k: s + torch.cumsum(points[q], 0)[k], "torch.cumsum of a row.*or use sum"),
        (lambda s, b, h, q, k: s + torch.index_select(table[h], 0, q), "index the 1 dimensions left"),
        (lambda s, b, h, q, k: s + (points[q] + pairs[h]).sum(-1), "do not go together"),
        (lambda s, b, h, q, k: s + deep[0, 0].sum(), "has 1600 elements"),
        (lambda s, b, h, q, k: s + points[q].median(), "has no median while functions are traced; index it"),
    ],
)
def test_refused(score, message):
    query = torch.randn(1, 2, 40, 16)
    with pytest.raises(flash.TraceError, match=message):
        flash.attention(query, query, query, score=score)
