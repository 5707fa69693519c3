"""The mode in which reads out of range are errors."""

import numpy as np
import pytest

import flash_mlir as flash

rng = np.random.default_rng(0)
query, key = rng.standard_normal((2, 4, 20, 16), np.float32), rng.standard_normal((2, 2, 30, 16), np.float32)
pages = np.arange(30) % 10
short = pages.copy()
short[7] = 10
table = rng.standard_normal((10, 4)).astype(np.float32)


def paged(s, b, h, q, k):
    return s + table[short[k], h]


def guarded(s, b, h, q, k):
    return flash.where(short[k] < 10, s + table[short[k], h], -np.inf)


OUT = "table is read out of range: the index of dimension 0 is not below its size, 10, for an element that takes part"


def test_reads():
    negative = np.array(-3)
    with flash.checks():
        with pytest.raises(ValueError, match=OUT):
            flash.attention(query, key, key, score=paged)
        with pytest.raises(ValueError, match=OUT):
            flash.Attention(score=paged)(query, key, key)
        with pytest.raises(ValueError, match=OUT):
            flash.attention(query, key, key, mask=lambda b, h, q, k: table[short[k], 0] > 0)
        with pytest.raises(ValueError, match=OUT):
            flash.plan(lambda b, h, q, k: table[short[k], 0] > 0, query, key)
        with pytest.raises(ValueError, match="pages is read out of range: the index of dimension 0 is negative"):
            flash.attention(query, key, key, score=lambda s, b, h, q, k: s * pages[k + negative])
        with pytest.raises(ValueError, match="key has head dimension 8, query has 16"):
            flash.attention(query, key[..., :8], key, score=paged)
        # What is hidden may be anywhere.
        expected = flash.attention(query, key, key, score=guarded)
        flash.attention(query, key, key, mask=flash.causal(top_left=True), score=lambda s, b, h, q, k: s + pages[q - k])
        # Lengths of a batch hide the key that is out of range from both.
        flash.attention(query, key, key, lengths=np.array([7, 5]), score=paged)
        plan = flash.plan(lambda b, h, q, k: pages[k] < 9, query, key)
        with pytest.raises(ValueError, match=OUT):
            flash.attention(query, key, key, mask=plan, score=paged)
    np.testing.assert_array_equal(flash.attention(query, key, key, score=guarded), expected)


def test_lengths():
    message = "lengths has {} for batch 1, and there are 30 keys; from 0 to 30 are possible"
    for length in (31, -1):
        lengths = np.array([30, length], np.int32)
        flash.attention(query, key, key, lengths=lengths)
        with flash.checks(), pytest.raises(ValueError, match=message.format(length)):
            flash.attention(query, key, key, lengths=lengths)
        with flash.checks(), pytest.raises(ValueError, match=message.format(length)):
            flash.attention(query, key, key, mask=flash.key_lengths(lengths) & flash.causal())


def test_switch():
    flash.checks()
    with pytest.raises(ValueError, match=OUT):
        flash.attention(query, key, key, score=paged)
    with flash.checks(False):
        assert not flash.checking.is_on
    assert flash.checking.is_on
    flash.checks(False)
    assert not flash.checking.is_on


def test_gradients():
    output, lse = flash.attention(query, key, key, score=guarded, return_lse=True)
    with flash.checks():
        flash.attention_grad(query, key, key, output, lse, output, score=guarded)
        with pytest.raises(ValueError, match=OUT):
            flash.attention_grad(query, key, key, output, lse, output, score=paged)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_pytorch(device, dtype):
    torch = pytest.importorskip("torch")
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    q, k = (torch.tensor(x, device=device).to(getattr(torch, dtype)).requires_grad_() for x in (query, key))
    near, rows = torch.tensor(short, device=device), torch.tensor(table, device=device)

    def read(s, b, h, q, k):
        return s + rows[near[k], h]

    def attend(q, k):
        return flash.attention(q, k, k, score=read, return_lse=True)[0]

    with flash.checks():
        with pytest.raises(ValueError, match="rows is read out of range"):
            attend(q, k)
        with pytest.raises(ValueError, match="rows is read out of range"):
            torch.compile(attend, backend="aot_eager")(q, k)
        with pytest.raises(ValueError, match="rows is read out of range"):
            flash.flex_attention(q, k, k, score_mod=read, enable_gqa=True)
        near.clamp_(max=9)
        attend(q, k).sum().backward()
        checked = q.grad.clone()
        torch.compile(attend, backend="aot_eager")(q, k)
    q.grad = None
    attend(q, k).sum().backward()
    torch.testing.assert_close(q.grad, checked, rtol=0, atol=0)
