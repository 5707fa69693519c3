"""Compiled kernels, kept in memory and in files.

A file is found by a hash of all that a kernel is made from: the text, the options and
the library. It starts with a hash of the rest, so that a damaged one is compiled again.
"""

import hashlib
import os
import pathlib
import struct
import tempfile
import threading

from . import _core, compilation
from .library import get_library

_kernels = {}
#: Of kernels that a thread reads or compiles. A process that is forked has no such thread.
_locks = {}
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_locks.clear)
_MAX_KERNELS = 512
# Of all files together.
_MAX_BYTES = 2**30


def get_directory():
    """Where compiled kernels are kept: $FLASH_MLIR_CACHE_DIR, or flash-mlir in $XDG_CACHE_HOME or in ~/.cache.

    None where there is no home directory either: then they are kept in memory alone.
    """
    own = os.environ.get("FLASH_MLIR_CACHE_DIR")
    if own:
        return pathlib.Path(own).absolute()
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification has relative paths ignored.
    if os.path.isabs(base):
        return pathlib.Path(base) / "flash-mlir"
    try:
        return pathlib.Path.home() / ".cache" / "flash-mlir"
    except RuntimeError:
        return None


def clear():
    """Removes the files, and forgets the kernels in memory but for kernels of variants that were called, and kernels that were
    prepared (`serving.prepare`)."""
    _kernels.clear()
    for path, _ in _list_files(get_directory()):
        _remove(path)


def _list_files(directory):
    """The files of kernels, and what an end of a process left of one, with their status."""
    found = []
    if directory is None:
        return found
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                if entry.name.endswith((".kernel", ".tmp")) and entry.is_file(follow_symlinks=False):
                    found.append((entry.path, entry.stat(follow_symlinks=False)))
    except OSError:  # There is none, or another process removes files, too.
        pass
    return found


def _remove(path):
    try:
        os.unlink(path)
    except OSError:
        pass


def _find_build_id(library):
    """What the linker wrote of the library's content, in hexadecimal digits; None without."""
    try:
        with open(library, "rb") as file:
            header = file.read(64)
            if header[:6] != b"\x7fELF\x02\x01":  # 64 bits, little-endian.
                return None
            (table,) = struct.unpack_from("<Q", header, 32)
            size, count = struct.unpack_from("<HH", header, 54)
            file.seek(table)
            segments = file.read(size * count)
            for start in range(0, size * count, size):
                kind, _, offset, _, _, length = struct.unpack_from("<IIQQQQ", segments, start)
                if kind != 4:  # PT_NOTE
                    continue
                file.seek(offset)
                notes, at = file.read(length), 0
                while at + 12 <= len(notes):
                    name, content, number = struct.unpack_from("<III", notes, at)
                    at += 12 + (name + 3) // 4 * 4
                    if number == 3 and notes[at - 4 : at] == b"GNU\0":  # NT_GNU_BUILD_ID
                        return notes[at : at + content].hex()
                    at += (content + 3) // 4 * 4
    except (OSError, struct.error):
        pass
    return None


def _get_library_stamp():
    """Changes whenever the library is built again, and is the same in each folder where it is installed."""
    library = pathlib.Path(get_library())
    build = _find_build_id(library)
    if build is None:
        status = library.stat()
        build = f"{status.st_size} {status.st_mtime_ns}"
    return f"{_core.version} {build}"


_STAMP = _get_library_stamp()


def _read(path):
    """The kernel in a file, or None."""
    try:
        with open(path, "rb") as file:
            if not _is_private(os.fstat(file.fileno())):
                return None
            content = file.read()
        digest, payload = content[:32], content[32:]
        if hashlib.sha256(payload).digest() != digest:
            return None
        os.utime(path)  # When it was last used.
    except OSError:
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
    _trim(path.parent)


def _trim(directory):
    """Removes the files that were not used for longest, beyond the bytes that there may be."""
    room = _MAX_BYTES
    for path, status in sorted(_list_files(directory), key=lambda file: -file[1].st_mtime_ns):
        room -= status.st_size
        if room < 0:
            _remove(path)


def _is_private(status):
    """Whether nobody else can write to a file or a directory: the files hold code that will run."""
    return status.st_uid == os.getuid() and not status.st_mode & 0o022


def _is_usable(directory):
    if directory is None:
        return False
    try:
        return _is_private(os.stat(directory))
    except FileNotFoundError:
        return True  # It is made by `_write`.
    except OSError:
        return False


def is_in_memory(text, target, function="", schedule="", versions=""):
    """Whether `get_kernel` needs neither a file nor the compiler."""
    return (text, target, function, schedule, versions) in _kernels


def get_kernel(text, target, function="", schedule="", versions=""):
    """The kernel of a program, from memory, from a file, or from the compiler."""
    return find_kernel(text, target, function, schedule, versions)[0]


def find_kernel(text, target, function="", schedule="", versions=""):
    """The kernel of a program, and where it was found: in "memory", in a "file", or nowhere, so that it was "compiled"."""
    key = (text, target, function, schedule, versions)  # The target is one of TARGETS, or a compiler.Machine.
    kernel = _kernels.get(key)
    if kernel is not None:
        return kernel, "memory"
    with compilation.announced(lambda: f"a program is not in memory, and nothing was prepared for it: for {_name(target)},\n{text}"):
        return _find_outside(key)


def _name(target):
    return target if isinstance(target, str) else target.target


def _find_outside(key):
    """As `find_kernel`, of what was not in memory. A thread waits for another that is about the same kernel."""
    with _locks.setdefault(key, threading.Lock()):
        try:
            kernel = _kernels.get(key)
            return (kernel, "memory") if kernel is not None else _read_or_compile(key)
        finally:
            _locks.pop(key, None)


def _read_or_compile(key):
    """The kernel and where it was found, which is in memory then."""
    digest = hashlib.sha256("\0".join((_STAMP, *map(str, key))).encode()).hexdigest()
    directory = get_directory()
    path = directory / f"{digest}.kernel" if _is_usable(directory) else None
    kernel, origin = _read(path) if path else None, "file"
    if kernel is None:
        kernel, origin = _core.Kernel.compile(*key), "compiled"
        if path:
            _write(path, kernel)
    if len(_kernels) >= _MAX_KERNELS:
        _kernels.clear()
    _kernels[key] = kernel
    return kernel, origin
