"""The examples of the pages in PAGES run, each after those before it, and those of README.md, each by itself."""

import contextlib
import importlib.metadata
import importlib.util
import io
import pathlib
import re
import sys
import types

import numpy as np
import pytest
from conftest import assert_close, reference

ROOT = pathlib.Path(__file__).parents[2]
PAGE = ROOT / "docs" / "python.md"
@pytest.fixture
def scope(monkeypatch):
    """The globals of a module that can be imported: torch.compile looks up a function's globals by its module's name."""
    module = types.ModuleType("examples")
    monkeypatch.setitem(sys.modules, "examples", module)
    return vars(module)


def is_there(name, version):
    """Whether a module is here, in that version or a later one."""
    if importlib.util.find_spec(name) is None:
        return False
    numbers = [[int(x) for x in text.split(".")[:2]] for text in (importlib.metadata.version(name), version or "0.0")]
    return numbers[0] >= numbers[1]


PAGES = [PAGE, *map(PAGE.with_name, ("ragged-rows.md", "serving.md", "distributed.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples(scope, page):
    for number, match in enumerate(re.finditer(r"```python\n(.*?)```", page.read_text(), re.S)):
        text = match[1]
        needed = re.match(r"# (torch|transformers)( [0-9.]+)?\n", text)
        if needed and not is_there(*needed.groups()):
            continue
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(text, f"{page}, example {number}", "exec"), scope)


def test_readme(scope):
    for match in re.finditer(r"```python\n# (\w+)\n.*?```", (ROOT / "README.md").read_text(), re.S):
        if is_there(match[1], None):
            scope.clear()
            exec(match[0].removeprefix("```python\n").removesuffix("```"), scope)


def test_new_mask_and_score(scope):
    """The two functions that the page shows do what it says."""
    for match in re.finditer(r"```python\n(.*?)```", PAGE.read_text(), re.S):
        if "def blocks" in match[1] or "def capped_alibi" in match[1] or "import numpy" in match[1]:
            exec(match[1], scope)
            if "def blocks" in match[1]:
                expected = reference(scope["query"], scope["key"], scope["value"], scope["blocks"])[0]
                assert_close(scope["output"], expected, "float32")
    slopes = scope["slopes"]
    score = lambda s, b, h, q, k: 30 * np.tanh(s / 30) + slopes[h] * (k - q)
    expected = reference(scope["query"], scope["key"], scope["value"], score=score)[0]
    assert_close(scope["output"], expected, "float32")
