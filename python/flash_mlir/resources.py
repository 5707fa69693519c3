"""Pictures of what a compiled kernel takes of a multiprocessor."""

import collections
import re

from . import _core
from .plot import escape, make_svg
from .timelines import name_argument

_BITS = re.compile(r"[a-z]+(\d+)")
_RING = re.compile(r"%(\w+) = tile\.ring [^:\n]*: <(\d+), <(\d+)x(\d+)x(\w+)")
_COPY = re.compile(r"tile\.copy_async %arg(\d+)\[[^\]]*\] to %(\w+)\[")
_ROLE = re.compile(r"@(\w+)\(warps = (\d+)(?: from \d+)?, registers = (\d+)\)")
_SHARED = re.compile(r"gpu\.launch_func\s+@\w+::@(\w+).*? dynamic_shared_memory_size %c(\d+)_i32")
_LAUNCH = re.compile(r"gpu\.launch_func\s+@\w+::@(\w+).*? args\((.*)\)")
_VIEW = re.compile(r"(%\w+) = (?:memref\.cast|bufferization\.to_buffer) (%\w+)")

#: What a block of a kernel takes: bytes of shared memory and registers, by what they are for.
Block = collections.namedtuple("Block", "name shared registers")


class Resources:
    """What a block of each kernel takes, beside what a block may have.

    Shows itself in notebooks; `save` writes it as SVG.

    Attributes:
      blocks: For each kernel its name, a dictionary of bytes of shared memory, and one of registers, which is empty
        where warps have no roles.
      shared_bytes, registers: What a block may have.
    """

    def __init__(self, target, level2, level3, names):
        self.shared_bytes = _core.get_target_number(target, "shared_bytes_per_block")
        self.registers = _core.get_target_number(target, "registers")
        totals, views = dict(_SHARED.findall(level3)), dict(_VIEW.findall(level2))
        # What each argument of a kernel is to the program.
        passed = {name: [views.get(views.get(value, value), value) for value in re.findall(r"(%\w+) : ", values)]
                  for name, values in _LAUNCH.findall(level2)}
        self.blocks = []
        for text in re.split(r"gpu\.func @", level2)[1:]:
            name = re.match(r"\w+", text)[0]
            sources = {}
            for argument, ring in _COPY.findall(text):
                if match := re.fullmatch(r"%arg(\d+)", passed[name][int(argument)]):
                    sources[ring] = int(match[1])
            shared = {}
            for ring, stages, rows, columns, element in _RING.findall(text):
                what = name_argument(sources[ring], names) if ring in sources else f"ring {ring}"
                size = int(stages) * int(rows) * int(columns) * int(_BITS.match(element)[1]) // 8
                shared[what] = shared.get(what, 0) + size
            rest = int(totals.get(name, 0)) - sum(shared.values())
            if rest > 0:
                shared["results and barriers"] = rest
            registers, others = {}, {}
            for role, warps, count in _ROLE.findall(text):
                (registers if int(warps) >= 4 else others)[role] = 32 * int(warps) * int(count)
                if int(warps) < 4:
                    # They share a warpgroup, whose other warps have registers, too.
                    others[role] = 128 * int(count)
            if others:
                registers[", ".join(others)] = max(others.values())
            self.blocks.append(Block(name, shared, registers))

    def _repr_svg_(self):
        colors = "#c9b458", "#2f6f9f", "#d98c3f", "#8d6ab8", "#b85c6e", "#5fa59a", "#9a9a9a"
        left, width, right, y, parts = 130, 480, 740, 2, []
        for block in self.blocks:
            parts.append(f'<text x="1" y="{y + 11}" font-weight="bold">{escape(block.name)}</text>')
            y += 16
            bars = [("shared memory", block.shared, self.shared_bytes, lambda size: f"{size / 1024:.1f} KiB"),
                    ("registers", block.registers, self.registers, str)]
            for title, items, most, describe in bars:
                if not items:
                    continue
                of = f"{describe(sum(items.values()))} of {describe(most)}"
                parts.append(f'<text x="1" y="{y + 12}">{title}</text>')
                parts.append(f'<rect x="{left}" y="{y}" width="{width}" height="15" fill="#f2f2f2" stroke="#888"/>')
                parts.append(f'<text x="{left + width + 6}" y="{y + 12}">{of}</text>')
                x, at = left, left
                for number, (what, size) in enumerate(items.items()):
                    color, length = colors[number % len(colors)], width * size / most
                    parts.append(f'<rect x="{at:.1f}" y="{y}" width="{length:.1f}" height="15" fill="{color}"/>')
                    label = f"{what} {describe(size)}"
                    parts.append(f'<rect x="{x}" y="{y + 20}" width="9" height="9" fill="{color}"/>')
                    parts.append(f'<text x="{x + 12}" y="{y + 28}">{escape(label)}</text>')
                    x, at = x + 26 + 6 * len(label), at + length
                    right = max(right, x)
                y += 36
        return make_svg(right, y + 4, parts)

    def save(self, path):
        """Writes the picture to a file, as SVG."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self._repr_svg_())


def resources(kernel, names=()):
    """The shared memory and the registers that a kernel takes, beside what its target has.

    Args:
      kernel: A `Kernel` for a GPU; none need be there.
      names: Names of the arguments of the program, such as ("queries", "keys", "values").

    Returns:
      `Resources`, which has an SVG.

    Raises:
      ValueError: The kernel is for the CPU.
    """
    if not kernel.target.startswith("sm_"):
        raise ValueError(f"the kernel is for {kernel.target}; only kernels for GPUs have shared memory and registers")
    return Resources(kernel.target, kernel.ir("l2"), kernel.ir("l3"), tuple(names))
