"""Programs written in MLIR, compiled and called from Python."""

import functools
import hashlib
import html
import operator
import os
import warnings
from typing import NamedTuple

from . import _core, cache
from .errors import DeviceError

#: "cpu", the GPUs that are described (docs/machines.md), "emulate:" with each, and "reference".
TARGETS = tuple(_core.get_targets().split(","))

# Warnings of `get_machine`.
_said = set()


class Machine(NamedTuple):
    """What programs are compiled for, beside a target."""

    target: str
    #: Whose schedules in `tuning` to take, such as "NVIDIA H200"; "" for none.
    device: str = ""
    #: The multiprocessors that schedules count on; 0 for as many as the target has.
    multiprocessors: int = 0
    #: A file of measured schedules, and the hash of its content; "" for none.
    tuning: str = ""
    digest: str = ""


@functools.lru_cache(maxsize=64)
def get_machine(device):
    """The `Machine` of a CUDA device; that of -1 is the text "cpu". Says once if nobody has tried such a device."""
    if device < 0:
        return "cpu"
    target, name, multiprocessors, warning = _core.get_device(device)
    if warning and warning not in _said:
        _said.add(warning)
        warnings.warn(warning, stacklevel=2)
    return Machine(target, name, multiprocessors)


def get_device_target(device=0):
    """The target for a CUDA device of this machine, such as "sm_90a". Raises `DeviceError` without one."""
    return _core.get_device(device)[0]


def choose_target():
    """The target of the first CUDA device, or "cpu" if there is none."""
    try:
        return get_device_target()
    except DeviceError:
        return "cpu"


class Tiles(NamedTuple):
    """Tiles of queries and keys, in all batches and heads."""

    #: Of these nothing is computed.
    skipped: int
    #: In these the mask hides no key, and is not evaluated.
    unmasked: int
    #: In these the mask is evaluated for each query and key.
    masked: int
    #: The queries and the keys of a tile.
    query_tile: int
    key_tile: int


class Kernel:
    """A compiled function. Made by `compile`.

    Called with NumPy arrays or PyTorch tensors, one for each argument of the function, it
    returns the result, or a tuple of several. For "cpu" and "emulate" the arrays are on the
    host, and copied if they have gaps; results are arrays of the kind of the first argument.
    For GPUs they are CUDA tensors of one device, with any strides that the program takes;
    the kernel is queued on PyTorch's current stream, and nothing waits for it.

    Raises TypeError for other element types, ValueError for sizes, strides and devices that
    the program does not take, each with the number of the argument.
    """

    def __init__(self, kernel):
        self._kernel = kernel

    def __reduce__(self):
        return _deserialize, (self._kernel.serialize(),)

    def __call__(self, *arguments):
        results = self._kernel.call(list(arguments))
        return results[0] if len(results) == 1 else tuple(results)

    @property
    def target(self):
        """What the function was compiled for: one of `TARGETS`."""
        return self._kernel.target

    @property
    def arguments(self):
        """(dtype, sizes) of each argument; a size of None is open."""
        return self._kernel.arguments

    @property
    def results(self):
        """(dtype, sizes) of each result; a size of None is open."""
        return self._kernel.results

    def ir(self, level):
        """The program at a level, as text that flash-opt reads.

        "l0" and "l1" for every target, "l2" for GPUs and emulation, "l3" for GPUs, "linalg",
        "llvm" and "asm" for the CPU, "ptx" for GPUs; a number n is "ln". Raises ValueError
        with the levels there are for others.
        """
        return self._kernel.text(f"l{level}" if isinstance(level, int) else level)

    def tiles(self, *sizes):
        """The `Tiles` that a call with arguments of these sizes visits.

        Takes a tuple of sizes for each argument. Only masks count: `lengths` cut off nothing. Raises
        ValueError for sizes that the kernel does not take.
        """
        return Tiles(*self._kernel.count_tiles([tuple(each) for each in sizes]))

    @property
    def ptx(self):
        """The PTX of a kernel for GPUs; the same as `ir("ptx")`."""
        return self._kernel.text("ptx")

    def save(self, path):
        """Writes the kernel to a file, whose name says what: .ptx or .cubin (with a C header beside
        it, see docs/launch.md) for GPUs, .ll or .s for the CPU, .mlir for the program."""
        self._kernel.save(os.fspath(path))

    def _repr_html_(self):
        """For notebooks: with what the kernel takes, if it is for a GPU."""
        from .resources import resources

        picture = resources(self)._repr_svg_() if self.target.startswith("sm_") else ""
        return f"<code>{html.escape(repr(self))}</code>{picture}"

    def __repr__(self):
        def describe(types):
            return ", ".join(f"{dtype}{[size if size is not None else '?' for size in sizes]}" for dtype, sizes in types)

        return f"<flash_mlir.Kernel for {self.target}: ({describe(self.arguments)}) -> ({describe(self.results)})>"


def _deserialize(content):
    return Kernel(_core.Kernel.deserialize(content))


def compile(text, target=None, function=None, schedule=None, sizes=None, versions=None, device=None, tuning=None):
    """Compiles a program (docs/language.md), or finds it in the cache.

    Args:
      text: The program, in MLIR.
      target: One of `TARGETS`; by default the target of the first CUDA device, or "cpu" if there is none. "reference" is for
        checks: it runs on the CPU, stores all scores, computes in float64, and has float64 instead of every
        floating-point type of the arguments and results.
      function: The function to compile, if there are several public ones.
      schedule: Tile sizes and the like, as flash-run takes them with --schedule, such as
        "query_tile=128,key_tile=64".
      sizes: The sizes of the first arguments in the calls that are to be fast, a tuple for each with None
        for what is not known. Sizes that the program leaves open stay open but where the number of heads
        or the length decides how queries are laid out: the kernel's `arguments` say which are taken.
      versions: Several such sizes, each a list of tuples, in which a range stands for all of its sizes:
        the kernel has a version for each, takes any sizes, and chooses at the call.
      device: The number of a CUDA device, whose target, multiprocessors and schedules in `tuning` are taken (the first
        one, if neither target nor device are given), or the name of a device, as flash-run takes it with --device,
        whose schedules in `tuning` are taken.
      tuning: A file of measured schedules, which `flash-run --tune` writes (docs/tuning.md); it must have some for
        the device, or on the CPU for this processor.

    Returns:
      A `Kernel`.

    Raises:
      CompileError: The program is malformed or cannot be compiled; the text has the compiler's diagnostics.
      ValueError: There is no such target, or the schedule or the sizes are malformed, or there are sizes
        and versions.
    """
    if not isinstance(text, str):
        raise TypeError(f"the program is a {type(text).__name__}; expected its text")
    if target is not None and not isinstance(target, str):
        raise TypeError(f"target is a {type(target).__name__}; expected one of {', '.join(TARGETS)}")
    for name, given in (("function", function), ("schedule", schedule)):
        if given is not None and not isinstance(given, str):
            raise TypeError(f"{name} is a {type(given).__name__}; expected text")
    machine, function, schedule = _choose_machine(target, device, tuning), function or "", schedule or ""
    if sizes is not None and versions is not None:
        raise ValueError("sizes make one version, and versions several; give one of them")
    calls = ";".join(_write_call(call) for call in versions) if versions is not None else ""
    if versions is not None and not calls:
        raise ValueError("versions names no call; leave it out, or give the sizes of one")
    if sizes is not None:
        text = _core.Kernel.specialize(text, machine, function, schedule, [_read_sizes(each) for each in sizes])
    return Kernel(cache.get_kernel(text, machine, function, schedule, calls))


def _choose_machine(target, device, tuning):
    """What `compile` compiles for: a `Machine`, or the text of a target."""
    if device is not None and not isinstance(device, str):
        if isinstance(device, bool):
            raise TypeError("device is a bool; expected the number of a CUDA device, or the name of one")
        machine = get_machine(operator.index(device))
        if machine == "cpu":
            raise ValueError(f"device is {device}; CUDA devices are counted from 0")
        if target is not None and target != machine.target:
            # Older kernels run on it, too.
            machine = machine._replace(target=target)
    elif target is None and choose_target() != "cpu":
        machine = get_machine(0)
        if device is not None:
            machine = machine._replace(device=device)
    else:
        machine = Machine(target or "cpu", device or "")
    if tuning is not None:
        path = os.path.abspath(os.fspath(tuning))
        with open(path, "rb") as file:
            machine = machine._replace(tuning=path, digest=hashlib.sha256(file.read()).hexdigest())
    # Calls then have the same kernels, which the cache has once.
    return machine if machine != Machine(machine.target) else machine.target


def _write_call(call):
    """A call as flash-run takes it with --versions."""

    def write(size):
        if size is None:
            return "?"
        if not isinstance(size, range):
            return str(operator.index(size))
        if size.step != 1 or not size:
            raise ValueError(f"{size!r} is among the sizes of a call; expected a range of step 1 with a number in it")
        return f"{size[0]}..{size[-1]}"

    try:
        return ",".join("x".join(write(size) for size in sizes) for sizes in call)
    except TypeError:
        raise TypeError(
            f"a call of versions is {call!r}; expected a tuple of numbers, ranges and None for each argument"
        ) from None


def _read_sizes(sizes):
    try:
        read = [_core.open_size if size is None else operator.index(size) for size in sizes]
    except TypeError:
        raise TypeError(f"the sizes of an argument are {sizes!r}; expected a tuple of numbers and None") from None
    if any(size < 0 and size != _core.open_size for size in read):
        raise ValueError(f"the sizes of an argument are {sizes!r}; expected numbers that are not negative, and None")
    return read
