"""A few of Transformers' model types that are known to be right, of a fresh seed; `make test-models` tries all."""

import random

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import models  # noqa: E402


def test_models():
    assert models.main(["--sample", "2", "--seed", str(random.randrange(10**6))]) == 0
