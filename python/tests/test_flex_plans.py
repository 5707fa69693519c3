"""Score and mask functions together, with a mask function, a plan and a BlockMask, beside FlexAttention in float64."""

import pytest

torch = pytest.importorskip("torch")
flex = pytest.importorskip("torch.nn.attention.flex_attention")

import flash_mlir as flash  # noqa: E402

LENGTH, HEADS = 200, 2
INF = float("inf")
GENERATOR = torch.Generator().manual_seed(0)
ONE_DOCUMENT = torch.zeros(LENGTH, dtype=torch.int32)
DOCUMENTS = torch.repeat_interleave(torch.arange(4, dtype=torch.int32), torch.tensor([100, 13, 64, 23]))
IS_KEPT = torch.rand(LENGTH, generator=GENERATOR) > 0.3
BIAS = torch.randn(HEADS, LENGTH, generator=GENERATOR)
BIAS[:, ::7] = -INF
PAGES = torch.randperm(LENGTH, generator=GENERATOR, dtype=torch.int32)


def full(b, h, q, k):
    """Keeps each tile, which only a tensor tells."""
    return ONE_DOCUMENT[q] == ONE_DOCUMENT[k]


def documents(b, h, q, k):
    return DOCUMENTS[q] == DOCUMENTS[k]


def causal_documents(b, h, q, k):
    return (q >= k) & (DOCUMENTS[q] == DOCUMENTS[k])


def padded(b, h, q, k):
    return (k < 150 - 100 * b) & IS_KEPT[k]


def sinks_and_window(b, h, q, k):
    return (q >= k) & ((q - k < 40) | (k < 4))


def of_a_head(b, h, q, k):
    return (h == 0) | (DOCUMENTS[q] >= DOCUMENTS[k])


def alibi(s, b, h, q, k):
    return s + torch.exp2(-(h + 1.0)) * (k - q)


def causal(s, b, h, q, k):
    return torch.where(q >= k, s, -INF)


def outside_window(s, b, h, q, k):
    """-inf in the other branch, and with a head of its own."""
    return torch.where((q - k > 30 * (h + 1)) | (k > q), -INF, s * 2)


def even_keys(s, b, h, q, k):
    return torch.where(k % 2 == 0, torch.tanh(s), -INF)


def large_scores(s, b, h, q, k):
    """A choice by the score."""
    return torch.where(s > -0.5, s, -INF)


def with_bias(s, b, h, q, k):
    """What is added is -inf."""
    return s + BIAS[h, k]


def pages(s, b, h, q, k):
    """Of keys in another order, as paged attention has it: causal in the order of the pages."""
    page = PAGES[k]
    return torch.where(torch.where(q >= page, page < 190, False), s - 0.01 * (q - page), -INF)


def twice(s, b, h, q, k):
    return torch.where(IS_KEPT[k], torch.where(q >= k, s, -INF), -INF)


MASKS = [full, documents, causal_documents, padded, sinks_and_window, of_a_head]
SCORES = [alibi, causal, outside_window, even_keys, large_scores, with_bias, pages, twice]


def make(*shape):
    return torch.randn(*shape, generator=GENERATOR)


QUERY, KEY, VALUE, GRAD = (make(2, HEADS, LENGTH, dim) for dim in (16, 16, 24, 24))


def differentiate(attend, dtype):
    """(output, lse, gradients) for the inputs of a dtype."""
    leaves = [x.to(dtype).requires_grad_() for x in (QUERY, KEY, VALUE)]
    output, lse = attend(*leaves)
    return [output, lse, *torch.autograd.grad(output, leaves, GRAD.to(dtype))]


def attend_naively(query, key, value, score_mod, mask_mod):
    """What FlexAttention computes, where it has no numbers for rows that nothing is left of."""
    sizes = 2, HEADS, LENGTH, LENGTH
    b, h, q, k = (torch.arange(n).reshape([-1 if d == i else 1 for d in range(4)]) for i, n in enumerate(sizes))
    scores = score_mod(query @ key.transpose(2, 3) * query.shape[3] ** -0.5, b, h, q, k)
    scores = torch.where(mask_mod(b, h, q, k), scores, -INF)
    most = scores.detach().amax(-1, keepdim=True).clamp(min=-1e300)
    weights = torch.where(scores == -INF, 0, torch.exp(scores - most))
    total = weights.sum(-1, keepdim=True)
    lse = torch.where(total > 0, total.clamp(min=1e-300).log() + most, -INF).squeeze(-1)
    return weights / total.clamp(min=1e-300) @ value, lse


def compare(actual, expected):
    for found, wanted in zip(actual, expected, strict=True):
        torch.testing.assert_close(found.double(), wanted, rtol=1e-4, atol=1e-4)


def make_block_mask(mask_mod):
    return flex.create_block_mask(mask_mod, 2, HEADS, LENGTH, LENGTH, device="cpu", BLOCK_SIZE=64)


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("mask_mod", MASKS)
@pytest.mark.parametrize("score_mod", SCORES)
def test_together(score_mod, mask_mod):
    block_mask = make_block_mask(mask_mod)
    naive = differentiate(lambda *x: attend_naively(*x, score_mod, mask_mod), torch.float64)
    with torch.no_grad():
        theirs = flex.flex_attention(*[x.double() for x in (QUERY, KEY, VALUE)], score_mod, block_mask)
    torch.testing.assert_close(theirs, naive[0].detach())

    def planned(*inputs):
        plan = flash.plan(mask_mod, *inputs, score=planned.score)
        return flash.attention(*inputs, mask=plan, score=score_mod, return_lse=True)

    def function(*inputs):
        return flash.attention(*inputs, mask=mask_mod, score=score_mod, return_lse=True)

    compare(differentiate(function, torch.float32), naive)
    # With tiles that pay with the score, and without.
    for planned.score in (None, score_mod):
        compare(differentiate(planned, torch.float32), naive)
    with_block_mask = lambda *x: flash.flex_attention(*x, score_mod, block_mask, return_lse=True)  # noqa: E731
    compare(differentiate(with_block_mask, torch.float32), naive)
