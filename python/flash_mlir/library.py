"""Where the C library of the package and its headers are, for programs that use them, too."""

import pathlib

from . import _core

_FOLDER = pathlib.Path(_core.__file__).parent


def get_include():
    """The directory for a compiler's `-I` that holds `flash-c/Flash.h`, the interface of the C library."""
    return str(_FOLDER / "include")


def get_library():
    """The file of the C library that the package uses."""
    return str(_FOLDER / f"libflash.so.{_core.version.split('.')[0]}")
