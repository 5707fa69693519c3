"""What happens where a call needs the compiler: it compiles, as usual, and says so where that takes long; or it says so at once, or
raises an error; and what was prepared for calls, so that they need none."""

import contextlib
import contextvars
import logging
import os
import threading
import warnings

from .errors import UnpreparedError

ACTIONS = "allow", "warn", "raise"

#: Its messages are on stderr where the program sets up no logging.
LOGGER = logging.getLogger("flash_mlir")
#: A call that takes no longer to compile says nothing.
SECONDS = 1.0

#: Of all threads, where the context has none of its own.
_default = "allow"
_action = contextvars.ContextVar("flash_mlir.compilation", default=None)
#: The kernels that were prepared, by program, target, device and the class of sizes: they are kept as long as the process.
kernels = {}
#: Of each time that something was prepared, its properties and the largest sizes, which messages compare with a call's.
records = []


class UnpreparedWarning(UserWarning):
    """A call compiles a kernel that was not prepared."""


def check_action(action):
    if action not in ACTIONS:
        raise ValueError(f"action is {action!r}; expected one of {', '.join(ACTIONS)}")
    return action


def set_default(action):
    """Sets what calls do in contexts that have nothing of their own, and returns what it was."""
    global _default
    before, _default = _default, check_action(action)
    return before


@contextlib.contextmanager
def act(action):
    token = _action.set(check_action(action))
    try:
        yield
    finally:
        _action.reset(token)


def get_action():
    return _action.get() or _default


@contextlib.contextmanager
def announced(describe):
    """A scope that needs the compiler, and `describe()` says why; what is inside has been said once."""
    action = get_action()
    if action == "allow":
        yield
        return
    message = describe()
    if action == "raise":
        raise UnpreparedError(message)
    warnings.warn(message, UnpreparedWarning, stacklevel=2)
    with act("allow"):
        yield


@contextlib.contextmanager
def said_if_slow(describe):
    """A scope in which a call compiles and loads `describe()`, which it says once that takes more than a second, unless
    FLASH_MLIR_QUIET is set to something."""
    if os.environ.get("FLASH_MLIR_QUIET"):
        yield
        return
    timer = threading.Timer(SECONDS, lambda: LOGGER.warning("%s", describe()))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _count_differences(record, properties):
    return sum(record["properties"].get(name) != value for name, value in properties.items())


def explain(properties, sizes):
    """What a call of these properties and sizes needs, and what of it was not prepared."""
    what = ", ".join([f"{name} {value}" for name, value in {**properties, **sizes}.items() if value != "no"])
    head = f"the call needs a kernel that was not prepared: {what}"
    if not records:
        return f"{head}; nothing was prepared, which flash_mlir.serving.prepare does"
    nearest = min(records, key=lambda record: _count_differences(record, properties))
    if _count_differences(nearest, properties):
        known = nearest["properties"]
        lacks = [f"{name} {known[name]}" for name in properties if known.get(name) != properties[name]]
        return f"{head}; the nearest of what flash_mlir.serving.prepare was called for has {', '.join(lacks)}"
    alike = [record for record in records if not _count_differences(record, properties)]
    found = []
    for name, size in sizes.items():
        covered = [record["sizes"].get(name) for record in alike]
        if size is not None and None not in covered and not any([size in each for each in covered]):
            found.append(f"{name} {' or '.join(dict.fromkeys(map(_describe, covered)))}")
    lacks = ", ".join(found) if found else "fewer rows, or other combinations of these sizes"
    return f"{head}; flash_mlir.serving.prepare was called for {lacks}"


def _describe(sizes):
    first, last = min(sizes), max(sizes)
    if first == last:
        return str(first)
    return f"from {first} to {last}" if len(sizes) == last - first + 1 else f"{', '.join(map(str, sorted(sizes)))}"
