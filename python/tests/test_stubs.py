"""The stubs have what the package has, with the same parameters."""

import ast
import inspect
import pathlib

import pytest

import flash_mlir as flash
from flash_mlir import _core

FOLDER = pathlib.Path(flash.__file__).parent


def read(name):
    """The definitions of a stub, and those of its classes as "Class.name"."""
    definitions = {}
    for node in ast.parse((FOLDER / name).read_text()).body:
        if isinstance(node, ast.AnnAssign):
            definitions[node.target.id] = node
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            definitions[node.name] = node
            for inner in node.body if isinstance(node, ast.ClassDef) else ():
                if isinstance(inner, ast.FunctionDef):
                    definitions[f"{node.name}.{inner.name}"] = inner
    return definitions


def test_names():
    definitions = read("__init__.pyi")
    assert set(flash.__all__) - {"cache", "serving"} <= set(definitions)
    for name in flash.__all__:
        assert hasattr(flash, name)
        assert not callable(getattr(flash, name)) or getattr(flash, name).__doc__, f"{name} has no docstring"


@pytest.mark.parametrize("name", [n for n, node in read("__init__.pyi").items() if isinstance(node, ast.FunctionDef)])
def test_parameters(name):
    node = read("__init__.pyi")[name]
    function = flash
    for part in name.split("."):
        function = getattr(function, part)
    if isinstance(function, property) or name == "set_thread_count" or name.startswith("Mask.__r"):
        return
    arguments = node.args
    expected = [a.arg for a in arguments.posonlyargs + arguments.args + arguments.kwonlyargs]
    expected += [arguments.vararg.arg] if arguments.vararg else []
    assert expected == list(inspect.signature(function).parameters)


def test_native():
    for name in read("_core.pyi"):
        owner = _core
        for part in name.split("."):
            owner = getattr(owner, part)
