"""The command-line tools, which are part of the library: `flash-opt` and `flash-run` of the wheel."""

import sys

from . import _core


def run_flash_opt():
    return _core.run_tool("flash-opt", sys.argv[1:])


def run_flash_run():
    return _core.run_tool("flash-run", sys.argv[1:])
