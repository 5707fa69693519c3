"""How benchmarks compare gradients with those of others."""
import pathlib
import sys

import pytest

torch = pytest.importorskip("torch")

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "benchmarks"))
import peers  # noqa: E402


@pytest.mark.parametrize("causal", [False, True])
def test_gradients(causal):
    said = []
    here = peers.Peers(False, 0.001, said.append)
    tensors = [here.normal((2, 2, 70, 32), "f32") for _ in range(4)]
    for name in ("Python", "SDPA"):
        call = here.backward(name, tensors, causal)
        deviation, allowed = here.gradient_deviation(tensors, causal, call())
        assert deviation <= allowed, name
        # Gradients are there for as many calls as are timed.
        assert here.time(name, call) > 0
        wrong = [gradient * 1.01 for gradient in call()]
        deviation, allowed = here.gradient_deviation(tensors, causal, wrong)
        assert deviation > allowed, name
    assert here.backward("FA4", tensors, causal) is None
    assert here.backward(peers.DETERMINISTIC, tensors, causal) is None
    assert here.checked_backward(tensors, causal) > 0
    assert not said


def test_wrong_gradients(monkeypatch):
    here = peers.Peers(False, 0.001, print)
    tensors = [here.normal((1, 1, 16, 8), "f32") for _ in range(4)]
    wrong = [tensor * 2 for tensor in tensors[:3]]
    monkeypatch.setattr(here, "backward", lambda *_: lambda: wrong)
    with pytest.raises(RuntimeError, match="gradients are off by .*, and 1e-05 is allowed"):
        here.checked_backward(tensors, False)


def test_refused_gradients():
    said = []
    here = peers.Peers(False, 0.001, said.append)
    tensors = [here.normal((1, 1, 8, 8), "f32") for _ in range(3)]
    assert here.backward("SDPA", tensors, False) is None
    assert len(said) == 1 and said[0].startswith("  SDPA: ")
