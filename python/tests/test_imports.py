"""Modules of the package import each other in one direction, inside of functions too."""

import ast
import graphlib
import pathlib

import flash_mlir
import pytest

ROOT = pathlib.Path(flash_mlir.__file__).parent
# The native module, of which the package's own folder is the place.
NATIVE = "_core"
# Imports that may close a circle: (importing module, imported module) and why. There is none.
EXCEPTIONS = {}


def list_imports(text, modules):
    """The modules of the package that a file imports, wherever it does."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.level == 1 or node.module.split(".")[0] == ROOT.name):
            names = (node.module or "").split(".") if node.level == 1 else node.module.split(".")[1:]
            found = [name for name in names if name]
            yield from found[:1] or [name if name in modules else "__init__" for name in (each.name for each in node.names)]
        elif isinstance(node, ast.Import):
            for name in (each.name.split(".") for each in node.names):
                if name[0] == ROOT.name:
                    yield (*name, "__init__")[1]


def find_circle(files):
    """Modules each of which imports the next, where the last is the first; None where there are none."""
    modules = {*files, NATIVE}
    graph = {name: {*list_imports(text, modules)} - {NATIVE} for name, text in files.items()}
    for importing, imported in EXCEPTIONS:
        graph[importing].remove(imported)
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return error.args[1]


def test_no_circle():
    assert find_circle({path.stem: path.read_text() for path in ROOT.glob("*.py")}) is None


@pytest.mark.parametrize(
    "text",
    ["from .b import x", "from . import b", "def f():\n  from .b import x", "import flash_mlir.b", "from flash_mlir import b"],
)
def test_circle_is_found(text):
    assert {*find_circle({"__init__": "from . import a", "a": text, "b": "from . import _core, a"})} == {"a", "b"}
