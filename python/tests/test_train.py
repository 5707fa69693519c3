"""examples/train.py, with sizes that take seconds."""

import importlib.util
import pathlib
import subprocess
import sys
import types

import pytest

torch = pytest.importorskip("torch")
import flash_mlir as flash  # noqa: E402

SCRIPT = pathlib.Path(__file__).parents[2] / "examples" / "train.py"


def test_train():
    sizes = "--device cpu --steps 12 --layers 1 --dim 32 --heads 2 --rows 200 --length 100"
    done = subprocess.run([sys.executable, SCRIPT, *sizes.split()], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "two runs of flash_mlir have the same bits" in done.stdout


def test_ranks():
    """Two processes that share the rows of each batch have the losses of one."""
    sizes = "--device cpu --steps 8 --layers 1 --dim 32 --heads 2 --rows 200 --length 100 --ranks 2"
    done = subprocess.run([sys.executable, SCRIPT, *sizes.split()], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "loss of 2 processes" in done.stdout and "TOO MUCH" not in done.stdout


def attend_with_mask(query, key, value, offsets, _, causal, alibi_slopes, learnable_sink):
    """The same rows as one, with a mask of documents."""
    ids = torch.searchsorted(offsets[1:].contiguous(), torch.arange(len(query)), right=True)
    arrays = [array.transpose(0, 1)[None] for array in (query, key, value)]
    mask = flash.documents(ids) & flash.causal()
    score = lambda s, b, h, q, k: s - alibi_slopes[h] * (q - k)
    return flash.attention(*arrays, mask=mask, score=score, sink=learnable_sink)[0].transpose(0, 1)


def test_losses(monkeypatch):
    """A packed batch has the loss and the gradients of padded documents, and of one row with a mask of documents."""
    spec = importlib.util.spec_from_file_location("train", SCRIPT)
    train = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "train", train)
    spec.loader.exec_module(train)
    options = types.SimpleNamespace(device="cpu", layers=2, dim=32, heads=2, rows=300, length=100)
    batch = train.Batches(options).make(0)
    assert len(set(batch.lengths)) > 2 and batch.offsets[-1] == sum(batch.lengths) == len(batch.tokens) == options.rows
    found = []
    for with_flash, function in ((True, flash.flash_attn_varlen_func), (False, None), (True, attend_with_mask)):
        torch.manual_seed(0)
        model = train.Model(options, with_flash)
        for layer in model.layers:
            torch.nn.init.normal_(layer.attention.sink)
        monkeypatch.setattr(flash, "flash_attn_varlen_func", function)
        loss = model(batch)
        loss.backward()
        found.append([loss.detach(), *(parameter.grad for parameter in model.parameters())])
    for packed, *others in zip(*found):
        for other in others:
            torch.testing.assert_close(packed, other, rtol=1e-4, atol=1e-5)
