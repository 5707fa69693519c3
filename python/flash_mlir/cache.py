"""Compiled kernels, kept in memory and in files.

A file is found by a hash of all that a kernel is made from: the text, the options and
the library. It starts with a hash of the rest, so that a damaged one is compiled again.
"""

import hashlib
import os
import pathlib
import tempfile

from . import _core

_kernels = {}
_MAX_KERNELS = 512


def get_directory():
    """Where compiled kernels are kept: flash-mlir in $XDG_CACHE_HOME or else in ~/.cache."""
    base = os.environ.get("XDG_CACHE_HOME")
    return pathlib.Path(base or pathlib.Path.home() / ".cache") / "flash-mlir"


def clear():
    """Removes the files, and forgets the kernels in memory but for those of variants that were called."""
    _kernels.clear()
    for path in get_directory().glob("*.kernel"):
        path.unlink(missing_ok=True)


def _get_library_stamp():
    """Changes whenever the library is built again."""
    library = pathlib.Path(_core.__file__).with_name("libflash.so")
    status = library.stat()
    return f"{_core.version} {status.st_size} {status.st_mtime_ns}"


_STAMP = _get_library_stamp()


def _read(path):
    """The kernel in a file, or None."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    digest, payload = content[:32], content[32:]
    if hashlib.sha256(payload).digest() != digest:
        return None
    try:
        return _core.Kernel.deserialize(payload)
    except (ValueError, RuntimeError):  # Of another processor.
        return None


def _write(path, kernel):
    """Keeps a kernel. A directory that cannot be written to is no failure of a compilation."""
    payload = kernel.serialize()
    try:
        # Files hold code that will run: they are the user's alone.
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(payload).digest() + payload)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError:
        pass


def _is_private(directory):
    """Whether nobody else can write to the directory: its files hold code that will run."""
    try:
        status = directory.stat()
    except OSError:
        return True  # It is made by `_write`.
    return status.st_uid == os.getuid() and not status.st_mode & 0o022


def get_kernel(text, target, function="", schedule="", versions=""):
    """The kernel of a program, from memory, from a file, or from the compiler."""
    key = (text, target, function, schedule, versions)  # The target is one of TARGETS, or a compiler.Machine.
    kernel = _kernels.get(key)
    if kernel is not None:
        return kernel
    digest = hashlib.sha256("\0".join((_STAMP, *map(str, key))).encode()).hexdigest()
    directory = get_directory()
    usable = _is_private(directory)
    path = directory / f"{digest}.kernel"
    kernel = _read(path) if usable else None
    if kernel is None:
        kernel = _core.Kernel.compile(text, target, function, schedule, versions)
        if usable:
            _write(path, kernel)
    if len(_kernels) >= _MAX_KERNELS:
        _kernels.clear()
    _kernels[key] = kernel
    return kernel
