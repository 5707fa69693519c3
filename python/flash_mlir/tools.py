"""The command-line tools, which the library of a wheel has: `flash-opt` and `flash-run`."""

import ctypes
import os
import sys

from .library import get_library


def _run(name):
    library = ctypes.CDLL(get_library())
    if not hasattr(library, "flashRunTool"):
        return f"{name}: the package was installed with a library without tools; use the {name} built beside that library"
    arguments = [os.fsencode(argument) for argument in sys.argv[1:]]
    return library.flashRunTool(name.encode(), len(arguments), (ctypes.c_char_p * len(arguments))(*arguments))


def run_flash_opt():
    return _run("flash-opt")


def run_flash_run():
    return _run("flash-run")
