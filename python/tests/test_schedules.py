"""Schedules of variants, which the programs of calls and of gradients have."""

import copy
import pickle

import numpy as np
import pytest

import flash_mlir as flash
from flash_mlir.programs import print_gradient_program

FORWARD, BACKWARD = "key_tile=32,split_keys=128", "query_tile=64,key_tile=32"
attend = flash.Attention(flash.causal(), schedule=FORWARD, gradient_schedule=BACKWARD)


def make(rng, *sizes):
    return rng.standard_normal(sizes).astype(np.float32)


def test_programs(rng):
    query, key = make(rng, 1, 4, 8, 32), make(rng, 1, 2, 300, 32)
    text = attend.mlir(query, key, key)
    assert "schedule(<key_tile = 32, split_keys = 128>)" in text
    config = attend._training_configs[0]
    text_of_gradients = print_gradient_program(config, "f32", 4, 32, 32, False, ())
    assert "schedule(<query_tile = 64, key_tile = 32>)" in text_of_gradients
    flash.compile(text_of_gradients, target="sm_90a")
    assert "split_keys = 128" in flash.compile(text, target="sm_90a").ir("l1")
    for each in (attend, copy.deepcopy(attend), pickle.loads(pickle.dumps(attend))):
        assert each.mlir(query, key, key) == text
        np.testing.assert_allclose(each(query, key, key), flash.attention(query, key, key, flash.causal()), atol=1e-5)
    assert (flash.attention(query, key, key, flash.causal(), schedule=FORWARD) == attend(query, key, key)).all()
    assert attend.tiles(100, 300, target="sm_90a").key_tile == 32


def test_bits_of_a_row(rng):
    """Alone, a sequence has the bits that it has in a batch, also with other lengths beside it."""
    query, key = make(rng, 8, 4, 5, 32).astype(np.float16), make(rng, 8, 2, 700, 32).astype(np.float16)
    text = flash.Attention(schedule=FORWARD).mlir(query, key, key)
    kernel = flash.compile(text, target="emulate")
    np.testing.assert_array_equal(kernel(query, key, key)[3:4], kernel(query[3:4], key[3:4], key[3:4]))


def test_gradients(rng):
    torch = pytest.importorskip("torch")
    query, key = (torch.tensor(make(rng, 1, 4, n, 32), requires_grad=True) for n in (70, 300))
    score = lambda s, b, h, q, k: torch.tanh(s) - 0.1 * h
    functions = flash.Attention(flash.causal(), score, schedule=FORWARD, gradient_schedule=BACKWARD), flash.Attention(flash.causal(), score)
    outputs = [function(query, key, key) for function in functions]
    grads = [torch.autograd.grad(output.square().sum(), [query, key]) for output in outputs]
    torch.testing.assert_close(grads[0], grads[1], atol=1e-4, rtol=1e-4)
    with_lse = [flash.Attention(flash.causal(), score, return_lse=True, gradient_schedule=keys) for keys in (BACKWARD, None)]
    losses = [(output.sum() + lse.sum()) for output, lse in (function(query, key, key) for function in with_lse)]
    torch.testing.assert_close(*[torch.autograd.grad(loss, [query, key]) for loss in losses], atol=1e-4, rtol=1e-4)
    compiled = torch.compile(lambda *x: functions[0](*x), backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(query, key, key), outputs[0])
    compiled = torch.compile(lambda *x: flash.attention(*x, flash.causal(), score, schedule=FORWARD), backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(query, key, key), outputs[0])


@pytest.mark.parametrize(
    "keys, kind, message",
    [
        ("key_tle=32", ValueError, "schedule: a schedule has no key 'key_tle'; the keys are query_tile.*the nearest is key_tile"),
        ("key_tile", ValueError, "schedule: key_tile needs a number"),
        ("features=roles", ValueError, "schedule: 'roles' is no list of features"),
        ("key_tile=64,split_keys=96", ValueError, "schedule: split_keys must be a multiple of key_tile.*nearest is 128"),
        ("", ValueError, "schedule has no keys"),
        (64, TypeError, "schedule is a int; expected text, such as"),
    ],
)
def test_refused(keys, kind, message):
    with pytest.raises(kind, match=message):
        flash.Attention(schedule=keys)
    small = np.zeros((1, 1, 8, 8), np.float32)
    with pytest.raises(kind, match=message):
        flash.attention(small, small, small, schedule=keys)
    with pytest.raises(kind, match="gradient_" + message):
        flash.Attention(gradient_schedule=keys)


def test_beside_a_plan(rng):
    query = make(rng, 1, 2, 40, 32)
    with pytest.raises(ValueError, match="gradient_schedule is given beside a plan, whose tiles are a schedule; give the mask"):
        flash.Attention(flash.plan(flash.causal(), query, query), gradient_schedule="key_tile=32")
    with pytest.raises(ValueError, match="schedule is given beside a plan, whose tiles are a schedule; give the mask"):
        flash.attention(query, query, query, flash.plan(flash.causal(), query, query), schedule="key_tile=32")
