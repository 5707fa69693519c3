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


def find_module(names, modules):
    """The module of the package that these names lead to; one that is none of them is a name in it."""
    while names and ".".join(names) not in modules and ".".join([*names, "__init__"]) not in modules:
        names = names[:-1]
    path = ".".join(names)
    return path if path in modules else ".".join([*names, "__init__"])


def list_imports(text, modules, folder=()):
    """The modules of the package that a file in a folder of it imports, wherever it does."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            names = (node.module or "").split(".") if node.module else []
            if node.level:
                names = [*folder[: len(folder) + 1 - node.level], *names]
            elif names[0] == ROOT.name:
                names = names[1:]
            else:
                continue
            yield from (find_module([*names, each.name], modules) for each in node.names)
        elif isinstance(node, ast.Import):
            for name in (each.name.split(".") for each in node.names):
                if name[0] == ROOT.name:
                    yield find_module(name[1:], modules)


def find_circle(files):
    """Modules each of which imports the next, where the last is the first; None where there are none."""
    modules = {*files, NATIVE}
    graph = {name: {*list_imports(text, modules, name.split(".")[:-1])} - {NATIVE} for name, text in files.items()}
    for importing, imported in EXCEPTIONS:
        graph[importing].remove(imported)
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return error.args[1]


def test_no_circle():
    files = {".".join(path.relative_to(ROOT).with_suffix("").parts): path.read_text() for path in ROOT.rglob("*.py")}
    assert {"attention", "vllm.__init__", "vllm.backend"} < {*files}
    assert find_circle(files) is None


@pytest.mark.parametrize(
    "text",
    ["from .b import x", "from . import b", "def f():\n  from .b import x", "import flash_mlir.b", "from flash_mlir import b"],
)
def test_circle_is_found(text):
    assert {*find_circle({"__init__": "from . import a", "a": text, "b": "from . import _core, a"})} == {"a", "b"}


@pytest.mark.parametrize(
    "text",
    ["from ..b import x", "from .. import b", "def f():\n  from ..b import x", "import flash_mlir.b", "from flash_mlir.b import x"],
)
def test_circle_with_a_folder_is_found(text):
    assert {*find_circle({"__init__": "", "b": "from .folder.c import x", "folder.__init__": "", "folder.c": text})} == {"b", "folder.c"}
    assert {*find_circle({"__init__": "", "folder.__init__": "from . import c", "folder.c": "from . import x"})} == {"folder.__init__", "folder.c"}
    assert find_circle({"__init__": "", "b": "", "folder.__init__": "", "folder.c": f"{text}\nfrom vllm import envs\nimport vllm.v1"}) is None
