"""FlexAttention's interface: functions as they are written for it, beside FlexAttention itself."""

import pytest

torch = pytest.importorskip("torch")
flex = pytest.importorskip("torch.nn.attention.flex_attention")

import flash_mlir as flash  # noqa: E402

LENGTH = 64
HEADS = 4


def make_documents(lengths):
    """Which document a position is in, and where the documents start."""
    lengths = torch.tensor(lengths)
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])
    return torch.repeat_interleave(torch.arange(len(lengths)), lengths), offsets


def causal(b, h, q, k):
    return q >= k


def sliding_window(b, h, q, k):
    return (q >= k) & (q - k <= 20)


def prefix_lm(b, h, q, k):
    return (k < PREFIX[b]) | causal(b, h, q, k)


def packed_documents(b, h, q, k):
    """Causal within a document, by positions of their own."""
    inner = causal(b, h, q - OFFSETS[DOCUMENTS[q]], k - OFFSETS[DOCUMENTS[k]])
    return (DOCUMENTS[q] == DOCUMENTS[k]) & inner


def neighbourhood(b, h, q, k):
    """In a grid of 8 by 8, a window of 5 by 5 that stays within the grid."""
    row, column = (q // 8).clamp(2, 5), (q % 8).clamp(2, 5)
    return ((row - k // 8).abs() <= 2) & ((column - k % 8).abs() <= 2)


def dilated(b, h, q, k):
    distance = torch.abs(q - k)
    return torch.logical_and(distance <= 24, torch.eq(distance % 3, 0))


def global_and_sliding(b, h, q, k):
    return flex.or_masks(lambda b, h, q, k: (q < 4) | (k < 4), flex.and_masks(causal, sliding_window))(b, h, q, k)


def block_diffusion(b, h, q, k):
    """The noised half sees its own block and clean blocks before it; the clean half sees clean blocks up to its own."""
    half = LENGTH // 2
    is_clean_q, is_clean_k = q >= half, k >= half
    block_q = torch.where(is_clean_q, (q - half) // 8, q // 8)
    block_k = torch.where(is_clean_k, (k - half) // 8, k // 8)
    same = (block_q == block_k) & (is_clean_q == is_clean_k)
    before = (block_q > block_k) & is_clean_k & ~is_clean_q
    clean = (block_q >= block_k) & is_clean_k & is_clean_q
    return same | before | clean


def per_head(b, h, q, k):
    return torch.where(h % 2 == 0, q - k <= 9, k - q <= WINDOWS[h])


def alibi(score, b, h, q, k):
    return score + torch.exp2(-((h + 1) * 8.0 / HEADS)) * (k - q)


def soft_cap(score, b, h, q, k):
    return 20 * torch.tanh(score / 20)


def relative_buckets(score, b, h, q, k):
    """As of T5: exact up to 8, then by the logarithm."""
    distance = (q - k).clamp(min=0)
    large = 8 + (torch.log(distance.float().clamp(min=1) / 8) / 2.0794 * 8).to(torch.int64)
    bucket = torch.where(distance < 8, distance, torch.minimum(large, torch.full_like(large, 15)))
    return score + BUCKETS[bucket, h]


def activation(score, b, h, q, k):
    functional = torch.nn.functional
    return functional.silu(score) + functional.gelu(score) - functional.gelu(score + 1, approximate="tanh")


def with_bias(score, b, h, q, k):
    return torch.nn.functional.relu(score) + BIAS[b, h, q, k] - torch.sigmoid(score) * 0.5


GENERATOR = torch.Generator().manual_seed(0)
DOCUMENTS, OFFSETS = make_documents([10, 27, 20, 7])
PREFIX = torch.tensor([5, 30])
WINDOWS = torch.tensor([3, 9, 27, 60])
BUCKETS = torch.randn(16, HEADS, generator=GENERATOR)
BIAS = torch.randn(2, HEADS, LENGTH, LENGTH, generator=GENERATOR)
MASKS = [causal, sliding_window, prefix_lm, packed_documents, neighbourhood, dilated, global_and_sliding]
MASKS += [block_diffusion, per_head]
SCORES = [alibi, soft_cap, activation, relative_buckets, with_bias]


@pytest.fixture(scope="module")
def inputs():
    return [torch.randn(2, HEADS, LENGTH, 16, generator=GENERATOR) for _ in range(3)]


def make_block_mask(mask_mod, block=16):
    return flex.create_block_mask(mask_mod, 2, HEADS, LENGTH, LENGTH, device="cpu", BLOCK_SIZE=block)


def attend_naively(query, key, value, score_mod=None, mask_mod=None):
    """What FlexAttention says that it computes, written out: (output, lse)."""
    b, h, q, k = (torch.arange(n).reshape([-1 if d == i else 1 for d in range(4)]) for i, n in enumerate(BIAS.shape))
    scores = query @ key.transpose(2, 3) * query.shape[3] ** -0.5
    if score_mod is not None:
        scores = score_mod(scores, b, h, q, k)
    if mask_mod is not None:
        scores = scores.masked_fill(~mask_mod(b, h, q, k), -float("inf"))
    # Rows without keys are 0.
    return torch.softmax(scores, -1).nan_to_num() @ value, scores.logsumexp(-1)


@pytest.mark.parametrize("mask_mod", MASKS)
def test_masks(inputs, mask_mod):
    actual = flash.flex_attention(*inputs, block_mask=make_block_mask(mask_mod), return_lse=True)
    torch.testing.assert_close(actual, attend_naively(*inputs, mask_mod=mask_mod), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_block_masks_of_16_bits(inputs, dtype):
    """The lists of a BlockMask are compared with what its function leaves, whatever the elements are."""
    leaves = [x.to(dtype).requires_grad_() for x in inputs]
    output = flash.flex_attention(*leaves, block_mask=make_block_mask(packed_documents))
    exact = [x.detach().float().requires_grad_() for x in leaves]
    expected, _ = attend_naively(*exact, mask_mod=packed_documents)
    torch.testing.assert_close(output.float(), expected, rtol=2e-2, atol=2e-2)
    actual = torch.autograd.grad(output.float().square().sum(), leaves)
    expected = torch.autograd.grad(expected.square().sum(), exact)
    for mine, other in zip(actual, expected):
        torch.testing.assert_close(mine.float(), other, rtol=5e-2, atol=5e-2)


@pytest.mark.parametrize("score_mod", SCORES)
def test_scores(inputs, score_mod):
    leaves = [x.clone().requires_grad_() for x in inputs]
    output = flash.flex_attention(*leaves, score_mod=score_mod)
    expected, _ = attend_naively(*leaves, score_mod=score_mod)
    torch.testing.assert_close(output, expected, rtol=1e-5, atol=1e-5)
    actual = torch.autograd.grad(output.square().sum(), leaves)
    expected = torch.autograd.grad(expected.square().sum(), leaves)
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-4)


def test_beside_flex_attention(inputs):
    """The same call of FlexAttention's own function."""
    query, key, value = inputs
    options = dict(score_mod=alibi, block_mask=make_block_mask(sliding_window), scale=0.3, enable_gqa=True)
    options["return_lse"] = True
    few = key[:, :2], value[:, :2]
    expected = flex.flex_attention(query, *few, **options)
    torch.testing.assert_close(
        flash.flex_attention(query, *few, **options, kernel_options={"BLOCK_M": 32}), expected, rtol=1e-5, atol=1e-5
    )
    shared = key[:1], value[:1]
    mask = make_block_mask(packed_documents)
    expected = flex.flex_attention(query, *shared, block_mask=mask, return_aux=flex.AuxRequest(lse=True))
    output, aux = flash.flex_attention(query, *shared, block_mask=mask, return_aux=flex.AuxRequest(lse=True))
    torch.testing.assert_close(output, expected[0], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(aux.lse, expected[1].lse, rtol=1e-5, atol=1e-5)
    output = flash.flex_attention(query[:, :, :33], key, value, block_mask=mask)
    expected, _ = attend_naively(*inputs, mask_mod=packed_documents)
    torch.testing.assert_close(output, expected[:, :, :33], rtol=1e-5, atol=1e-5)


def test_plans(inputs, monkeypatch):
    """Tiles are looked for once for a BlockMask, and again for gradients and where what the mask reads has changed."""
    made = []

    def plan(*arguments, **options):
        made.append(arguments)
        return flash.plan(*arguments, **options)

    monkeypatch.setattr(flash.flex, "plan", plan)
    ids, last = DOCUMENTS.clone(), LENGTH

    def mask_mod(b, h, q, k):
        return (ids[q] == ids[k]) & (k < last)

    block_mask = make_block_mask(mask_mod)

    def check(number, tensors, of=block_mask):
        actual = flash.flex_attention(*tensors, block_mask=of)
        expected, _ = attend_naively(*tensors, mask_mod=mask_mod)
        torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-5)
        if actual.requires_grad:
            grads = (torch.autograd.grad(output.square().sum(), tensors) for output in (actual, expected))
            torch.testing.assert_close(*grads, rtol=1e-4, atol=1e-4)
        assert len(made) == number

    for _ in range(2):
        check(1, inputs)
    leaves = [x.clone().requires_grad_() for x in inputs]
    for _ in range(2):
        check(2, leaves)
    ids[:20] = 7
    check(3, inputs)
    check(4, leaves)
    last = 40
    check(5, inputs)
    ids = ids.clone()
    check(6, inputs)
    check(7, inputs, make_block_mask(mask_mod))
    # No BlockMask of these lengths.
    flash.flex_attention(inputs[0][:, :, :33], *inputs[1:], block_mask=block_mask)
    with torch.inference_mode():
        ids = ids.clone()
    check(7, inputs)
    # Gradients with a score function have tiles of their own, whatever the function is.
    ids, last = DOCUMENTS.clone(), LENGTH
    block_mask = make_block_mask(mask_mod)
    for tensors, number in ((inputs, 8), (leaves, 9)):
        for factor in (2, 3):
            flash.flex_attention(*tensors, lambda s, b, h, q, k: s * factor, block_mask=block_mask)  # noqa: B023
            assert len(made) == number


@pytest.mark.parametrize("block", [16, 20])
def test_lists(inputs, block):
    """A BlockMask without a mask_mod keeps all of the blocks that it lists, also where kernels have no lists of this size."""
    numbers = torch.tensor([2, 1, 0, 3], dtype=torch.int32).expand(1, 1, 4)
    indices = torch.tensor([[1, 3, 0, 2], [0, 1, 2, 3], [0, 1, 2, 3], [3, 2, 0, 1]], dtype=torch.int32)
    indices = indices.expand(1, 1, 4, 4)
    block_mask = flex.BlockMask.from_kv_blocks(numbers, indices, BLOCK_SIZE=block, seq_lengths=(LENGTH, LENGTH))
    kept = torch.tensor([[0, 1, 0, 1], [1, 0, 0, 0], [0, 0, 0, 0], [1, 0, 1, 1]], dtype=torch.bool)
    expected = attend_naively(*inputs, mask_mod=lambda b, h, q, k: kept[q // block, k // block])
    actual = flash.flex_attention(*inputs, block_mask=block_mask, return_lse=True)
    torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-5)


def make_lists(kept, width=None):
    """(numbers, indices) of blocks, of which there may be fewer columns than blocks of keys."""
    indices = torch.argsort(kept.int(), dim=-1, descending=True, stable=True).to(torch.int32)
    return kept.sum(-1, dtype=torch.int32), indices[..., :width].contiguous()


def make_narrow(kept, mask_mod, whole=None, width=None):
    """A BlockMask of part of the blocks, and the mask that it is."""
    lists = make_lists(kept, width) + (() if whole is None else make_lists(whole))
    options = dict(BLOCK_SIZE=16, mask_mod=mask_mod, seq_lengths=(LENGTH, LENGTH), compute_q_blocks=width is None)
    batches, heads = (int(size > 1) for size in kept.shape[:2])

    def keep(b, h, q, k):
        place = b * batches, h * heads, q // 16, k // 16
        result = kept[place] & mask_mod(b, h, q, k)
        return result if whole is None else result | whole[place]

    return flex.BlockMask.from_kv_blocks(*lists, **options), keep


KEPT = torch.rand(2, HEADS, 4, 4, generator=GENERATOR) > 0.4


@pytest.mark.parametrize("mask_mod", [causal, packed_documents])
@pytest.mark.parametrize(
    "lists",
    [
        {"kept": KEPT},
        {"kept": KEPT[:1, :1]},
        {"kept": torch.eye(4, dtype=torch.bool).expand(1, 1, 4, 4), "width": 1},
        {"kept": KEPT & torch.eye(4, dtype=torch.bool), "whole": KEPT & ~torch.eye(4, dtype=torch.bool)},
    ],
)
def test_lists_beside_mask_mod(inputs, mask_mod, lists):
    """What is listed counts, as in compiled FlexAttention: mask_mod in blocks of kv_indices, all of full_kv_indices."""
    block_mask, keep = make_narrow(lists["kept"], mask_mod, lists.get("whole"), lists.get("width"))
    leaves = [x.clone().requires_grad_() for x in inputs]
    expected, lse = attend_naively(*leaves, alibi, keep)
    for _ in range(2):
        actual = flash.flex_attention(*leaves, alibi, block_mask, return_lse=True)
        torch.testing.assert_close(actual, (expected, lse), rtol=1e-5, atol=1e-5)
    # What is written out has no gradients of rows without keys.
    left = lse[..., None] > -float("inf")
    actual, expected = (torch.where(left, x, 0).square().sum() for x in (actual[0], expected))
    grads = [torch.autograd.grad(loss, leaves) for loss in (actual, expected)]
    if bool(left.all()):
        torch.testing.assert_close(*grads, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(grads[0][2], grads[1][2], rtol=1e-4, atol=1e-4)


def test_visited_lists(inputs, monkeypatch):
    """Lists that leave something else than mask_mod are visited as they are; a table of blocks is made for gradients of what
    score_mod reads alone."""
    tables, make_table = [], flash.blocks.read_table

    def read_table(*arguments):
        tables.append(arguments)
        return make_table(*arguments)

    monkeypatch.setattr(flash.blocks, "read_table", read_table)
    # A row of blocks sees one at least.
    kept = KEPT | torch.eye(4, dtype=torch.bool)
    block_mask, keep = make_narrow(kept & ~torch.eye(4, dtype=torch.bool), causal, torch.eye(4, dtype=torch.bool) & kept)
    bias = BIAS[0].clone().requires_grad_()
    for number, score_mod in enumerate((alibi, lambda s, b, h, q, k: s + bias[h, q, k])):
        leaves = [x.clone().requires_grad_() for x in inputs] + [bias] * number
        actual = flash.flex_attention(*leaves[:3], score_mod, block_mask)
        expected, _ = attend_naively(*leaves[:3], score_mod, keep)
        torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-5)
        grads = (torch.autograd.grad(output.square().sum(), leaves) for output in (actual, expected))
        torch.testing.assert_close(*grads, rtol=1e-4, atol=1e-4)
        assert len(tables) == number
    # Of fewer queries and keys than the lists are for.
    query, key, value = inputs[0][:, :, :40], inputs[1][:, :, :23], inputs[2][:, :, :23]
    b, h, q, k = torch.arange(2)[:, None, None, None], torch.arange(HEADS)[:, None, None], torch.arange(40)[:, None], torch.arange(23)
    scores = (query @ key.transpose(2, 3) / 4).masked_fill(~keep(b, h, q, k), -float("inf"))
    actual = flash.flex_attention(query, key, value, block_mask=block_mask)
    torch.testing.assert_close(actual, torch.softmax(scores, -1).nan_to_num() @ value, rtol=1e-5, atol=1e-5)


def test_lists_that_change(inputs):
    """Lists that were written to are read again; those that say what mask_mod does are not read."""
    block_mask, keep = make_narrow(KEPT.clone(), causal)
    flash.flex_attention(*inputs, block_mask=block_mask)
    other, keep = make_narrow(~KEPT, causal)
    block_mask.kv_num_blocks.copy_(other.kv_num_blocks)
    block_mask.kv_indices.copy_(other.kv_indices)
    actual = flash.flex_attention(*inputs, block_mask=block_mask)
    torch.testing.assert_close(actual, attend_naively(*inputs, mask_mod=keep)[0], rtol=1e-5, atol=1e-5)
    for mask_mod in MASKS:
        block_mask = make_block_mask(mask_mod)
        assert flash.flex._get_mask(block_mask, *inputs[:2]) == (mask_mod, None)


def test_compiled_lists(inputs):
    torch._dynamo.reset()
    compiled = torch.compile(
        lambda query, key, value, block_mask: flash.flex_attention(query, key, value, block_mask=block_mask),
        backend="aot_eager",
        fullgraph=torch.__version__ >= (2, 14),
    )
    for kept in (KEPT, ~KEPT, torch.ones_like(KEPT)):
        block_mask, keep = make_narrow(kept, causal)
        leaves = [x.clone().requires_grad_() for x in inputs]
        expected, lse = attend_naively(*leaves, mask_mod=keep)
        actual = compiled(*leaves, block_mask)
        torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-5)
        left = lse[..., None] > -float("inf")
        losses = (torch.where(left, x, 0).square().sum() for x in (actual, expected))
        grads = (torch.autograd.grad(loss, leaves[2]) for loss in losses)
        torch.testing.assert_close(*grads, rtol=1e-4, atol=1e-4)


def test_compiled(inputs):
    torch._dynamo.reset()
    block_mask = make_block_mask(packed_documents)

    def layer(query, key, value, bias):
        def score_mod(score, b, h, q, k):
            return score + bias[h, q, k]

        return flash.flex_attention(query, key, value, score_mod, block_mask)

    bias = BIAS[0].clone().requires_grad_()
    # Before 2.14, Dynamo knows nothing of functions that are made inside, and breaks the graph.
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=torch.__version__ >= (2, 14))
    expected, _ = attend_naively(*inputs, lambda s, b, h, q, k: s + bias[h, q, k], packed_documents)
    actual = compiled(*inputs, bias)
    torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-5)
    (grad,) = torch.autograd.grad(actual.square().sum(), bias)
    (expected,) = torch.autograd.grad(expected.square().sum(), bias)
    torch.testing.assert_close(grad, expected, rtol=1e-4, atol=1e-4)


def test_errors(inputs):
    query, key, value = inputs
    block_mask = make_block_mask(causal)
    with pytest.raises(ValueError, match="query has 4 heads, key 2; that is possible with enable_gqa=True"):
        flash.flex_attention(query, key[:, :2], value[:, :2])
    with pytest.raises(ValueError, match="block_mask is for 64 queries and 64 keys, and there are 65 and 64"):
        flash.flex_attention(torch.randn(2, 4, 65, 16), key, value, block_mask=block_mask)
    with pytest.raises(ValueError, match="block_mask is for 2 batches, and query has 3"):
        flash.flex_attention(*[x.repeat(2, 1, 1, 1)[:3] for x in inputs], block_mask=block_mask)
    with pytest.raises(ValueError, match="query, key and value have 3, 4 and 4 dimensions; expected 4"):
        flash.flex_attention(query[0], key, value)
    with pytest.raises(TypeError, match="kernel_options is a int; expected a dict"):
        flash.flex_attention(*inputs, kernel_options=3)
    with pytest.raises(NotImplementedError, match="the greatest scores are not kept"):
        flash.flex_attention(*inputs, return_aux=flex.AuxRequest(max_scores=True))
    with pytest.raises(RuntimeError, match="sliced"):
        flash.flex_attention(query[:, :, :32], key, value, block_mask=block_mask[:, :, :2])
