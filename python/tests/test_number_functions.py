"""Operators and functions of numbers beside PyTorch's, with their gradients."""

import numpy as np
import pytest

import flash_mlir as flash

torch = pytest.importorskip("torch")
F = torch.nn.functional

divisors = torch.tensor([3, -4, 5, -7, 1, 8, -1, 2])
signed = torch.arange(40) - 20
weights = torch.randn(40, generator=torch.Generator().manual_seed(0), requires_grad=True)

SCORES = {
    "// of integers": lambda s, b, h, q, k: s + 0.1 * ((q - k) // -4 + (q - k) // divisors[k % 8] + 30 // (k + 1)),
    "% of integers": lambda s, b, h, q, k: s + 0.1 * ((q - k) % -4 + (q - k) % divisors[k % 8] + 30 % (k + 1)),
    "fmod of integers": lambda s, b, h, q, k: s + 0.1 * torch.fmod(q - k, divisors[k % 8]),
    "truncated": lambda s, b, h, q, k: s + 0.1 * torch.div(q - k, divisors[k % 8], rounding_mode="trunc"),
    "// of numbers": lambda s, b, h, q, k: s + 0.1 * ((0.5 * (q - k)) // 1.5 + (0.5 * (q - k)) // -1.5),
    "% of numbers": lambda s, b, h, q, k: s + (0.5 * (q - k)) % 1.5 + (0.5 * (q - k)) % -1.5 + torch.remainder(s, 0.7),
    "fmod of numbers": lambda s, b, h, q, k: torch.fmod(s, weights[k]) + torch.remainder(s, weights[q]),
    "shifts": lambda s, b, h, q, k: s + 0.01 * ((q - k) >> (k % 4)) + 0.001 * ((q - 20) << (k % 5)) + 0.1 * (q >> 1 & 3),
    "far shifts": lambda s, b, h, q, k: s + 0.01 * ((q - k) >> (k + 50)) + (((q - k) << (k + 60)) == 0) * 0.1,
    "powers of integers": lambda s, b, h, q, k: s
    + 0.1 * ((q - k) ** 9 % 1003 + (q - k) ** 33 % 7 + (k > 3) ** 2 + (q - k) ** 0)
    + 0.1 * (3 ** (k % 32) % 10 + (q - k) ** (k % 13) % 5)
    + 0.1 * ((1 - k % 3) ** (k + 70) + 2 ** torch.clamp(q - k, min=0) % 9),
    "bits": lambda s, b, h, q, k: s
    + 0.01 * ((q ^ k) + (q | k) + (~q & k) + (signed[q] & signed[k]) + (signed[q] ^ 7) + (signed[q] | signed[k])),
    "truth values": lambda s, b, h, q, k: s
    + ((q > k) * (k > 3)).float() + ((q > k) + (k > 3)).float() + (q > k) * 2 + ((q > k) + 3) * 0.1,
    "truth of numbers": lambda s, b, h, q, k: s
    + torch.logical_and(q - 3, k & 6) * 1 + torch.logical_or(q & 2, signed[k] & 4) * 2
    + torch.logical_xor(q & 3, k & 5) * 3 + torch.logical_not(q - k) * 4 + torch.logical_and(s, weights[k]) * weights[q] + (q & 4).logical_not() * 6,
    "choice": lambda s, b, h, q, k: s + 0.3 * torch.where(q > k, k > 3, q % 3),
    "softplus": lambda s, b, h, q, k: F.softplus(s, 2.0) + F.softplus(10 * s),
    "units": lambda s, b, h, q, k: F.leaky_relu(s) + F.leaky_relu(s, 0.3) + F.elu(s, 0.5),
    "logaddexp": lambda s, b, h, q, k: torch.logaddexp(s, weights[k]),
    "lerp": lambda s, b, h, q, k: torch.lerp(s, weights[k], 0.3) + torch.lerp(s, weights[k], weights[q]),
    "angles": lambda s, b, h, q, k: torch.tan(0.3 * s) + torch.atan2(s, weights[k]) + torch.hypot(s, weights[q]),
    "dtype": lambda s, b, h, q, k: torch.where(q >= k, s, torch.finfo(s.dtype).min) + torch.tensor(1.0, dtype=s.dtype),
    "shape": lambda s, b, h, q, k: s + weights[q] * (s.new_ones(h.shape) if h.shape == () else 1),
}


def run(function, operands):
    """The output and the gradients of a loss."""
    output = function(*operands)
    inputs = [*operands, weights]
    output_grad = torch.cos(torch.arange(output.numel(), dtype=torch.float64)).reshape(output.shape)
    return output, *torch.autograd.grad(output, inputs, output_grad.to(output.dtype), allow_unused=True)


def make_reference(score):
    def attention(query, key, value):
        s = query @ key.mT / query.shape[-1] ** 0.5
        positions = torch.meshgrid(*map(torch.arange, s.shape), indexing="ij")
        return torch.softmax(score(s, *positions), -1) @ value

    return attention


@pytest.mark.parametrize("name", SCORES)
def test_beside_pytorch(name, rng, monkeypatch):
    score = SCORES[name]
    arrays = [rng.standard_normal((1, 2, 40, 16)) for _ in range(3)]
    results = []
    wide = weights.detach().double().requires_grad_()
    for dtype, function in (
        (torch.float32, lambda *operands: flash.attention(*operands, score=score)),
        (torch.float64, make_reference(score)),
    ):
        if dtype == torch.float64:
            monkeypatch.setitem(globals(), "weights", wide)
        results.append(run(function, [torch.tensor(array, dtype=torch.float32).to(dtype).requires_grad_() for array in arrays]))
    for actual, expected in zip(*results):
        assert (actual is None) == (expected is None)
        if actual is not None:
            scale = max(expected.abs().max().item(), 1)
            np.testing.assert_allclose(actual.detach().numpy(), expected.detach().numpy(), rtol=2e-5, atol=2e-5 * scale)


def test_division_by_zero():
    """As by 1; the least integer divided by -1 is itself."""
    numbers = torch.tensor([5, -(2**63), 2**40, -3])
    by = torch.tensor([0, -1])
    query = torch.randn(1, 1, 4, 8)
    for divisor, expected in ((0, numbers), (1, -numbers)):
        kept = flash.attention(
            query, query, torch.ones_like(query),
            mask=lambda b, h, q, k: (numbers[q] // by[divisor] == expected[q]) & (numbers[q] % by[divisor] == 0),
        )
        assert torch.allclose(kept, torch.ones(()))


@pytest.mark.parametrize(
    "score, message",
    [
        (lambda s, b, h, q, k: torch.div(s, 2, rounding_mode="up"), "no rounding mode 'up'; 'floor' and 'trunc' are possible"),
        (lambda s, b, h, q, k: F.gelu(s, approximate="erf"), "no approximation 'erf' of gelu; 'none' and 'tanh' are possible"),
    ],
)
def test_unknown_options(score, message):
    query = torch.randn(1, 1, 4, 8)
    with pytest.raises(flash.TraceError, match=message):
        flash.attention(query, query, query, score=score)
