"""Draws random programs of linalg on tiles (level 1), each with its inputs and its meaning.

Products in all transpositions, elementwise arithmetic with and without positions, in f32 and in
16 bits, reductions of rows and of columns, broadcasts, slices, padding and inserts at any position and order of
dimensions, loops with several results and conditions: what is between attention and a block
program, without attention. `draw(rng)` gives a Program: MLIR text, arrays, and `expected`, which
runs the same steps in numpy. Every tile is a pair there: its values, and by how much what a
target computes may differ from them (arithmetic in f32, sums in any order).

    python3 linalg_tiles.py SEED/NUMBER    prints a program
"""
import itertools
import re

import numpy as np

from attentions import round_to

# Relative errors of one operation, and of a rounding to an element type.
UNIT = 1.2e-7
FUNCTION_UNIT = 2e-6
ROUNDING = {"f32": UNIT, "f16": 2.0**-10, "bf16": 2.0**-7}
LEAST = {"f32": 1e-30, "f16": 2.0**-23, "bf16": 1e-30}
LARGEST = 200.0  # of numbers that become 16 bits
LARGEST_SUM = 1e30  # of others; beyond it f32 may have an infinity


class Tile:
    """A value of the program: name, sizes, element type; `rows` is the dimension that
    follows the rows of the loop, or None."""

    def __init__(self, name, shape, element, rows=None):
        self.name, self.shape, self.element, self.rows = name, tuple(shape), element, rows

    @property
    def type(self):
        return tensor_type(self.shape, self.element)


class Memory:
    """A tensor that the function takes or gives. `sizes` are true, `shape` has None for `?`."""

    def __init__(self, name, sizes, shape, element):
        self.name, self.sizes, self.shape, self.element = name, list(sizes), list(shape), element

    @property
    def type(self):
        return tensor_type(self.shape, self.element)


class Program:
    """Text and arguments; `expected()` gives (values, errors, which are written) of each result."""

    def __init__(self):
        self.text, self.arguments, self.outputs, self.shapes = None, [], [], []
        self.expected = None
        self.targets = None  # None: all.

    def compare(self, results):
        """What is wrong with the results, or None, and the largest error as a part of what it may be."""
        worst = 0
        with np.errstate(all="ignore"):
            expected = self.expected()
        for (name, _), result, (values, errors, written) in zip(self.outputs, results, expected):
            # Where rounding alone may change a number entirely, there is nothing to compare.
            written = written & np.isfinite(values) & (errors < 0.05 * (1 + np.abs(values)))
            bound = errors + 1e-12
            with np.errstate(invalid="ignore"):
                error = np.where(written, np.abs(result - values), 0)
            error[np.isnan(error)] = np.inf
            if np.any(error > bound):
                at = tuple(np.argwhere(error > bound)[0])
                return f"{name}{list(map(int, at))} is {result[at]}, not {values[at]}; it may be off by {bound[at]:.2e}", worst
            worst = max(worst, (error / bound).max(initial=0))
        return None, worst


def tensor_type(shape, element):
    return f"tensor<{''.join(('?' if n is None else str(n)) + 'x' for n in shape)}{element}>"


def rounded(values, errors, element):
    return (round_to(values, element).astype(np.float64), errors + ROUNDING[element] * np.abs(values) + LEAST[element])


def affine_map(rank, results):
    dims = ", ".join(f"d{n}" for n in range(rank))
    return f"affine_map<({dims}) -> ({', '.join(f'd{n}' for n in results)})>"


# --- Arithmetic on pairs of values and errors ------------------------------------


def exact(values):
    values = np.asarray(values, np.float64)
    return values, np.zeros_like(values)


def add(x, y):
    v = x[0] + y[0]
    return v, x[1] + y[1] + UNIT * np.abs(v)


def subtract(x, y):
    return add(x, (-y[0], y[1]))


def multiply(x, y):
    v = x[0] * y[0]
    error = np.abs(x[0]) * y[1] + np.abs(y[0]) * x[1] + x[1] * y[1] + UNIT * np.abs(v)
    return v, np.where(np.abs(v) > LARGEST_SUM, np.inf, error)


def extremum(function):
    return lambda x, y: (function(x[0], y[0]), np.maximum(x[1], y[1]))


def exp2(x):
    v = np.exp2(x[0])
    return v, v * np.expm1(np.minimum(x[1], 50)) + FUNCTION_UNIT * v


def tanh(x):
    return np.tanh(x[0]), x[1] + FUNCTION_UNIT


def product(a, b, acc):
    """The sum of products over the last dimension of `a` and the first of `b`, added to `acc`."""
    v, magnitude = a[0] @ b[0] + acc[0], np.abs(a[0]) @ np.abs(b[0]) + np.abs(acc[0])
    error = np.abs(a[0]) @ b[1] + a[1] @ np.abs(b[0]) + a[1] @ b[1] + acc[1]
    return v, error + UNIT * (a[0].shape[1] + 2) * magnitude


BINARY = {"addf": add, "subf": subtract, "mulf": multiply, "maximumf": extremum(np.maximum), "maxnumf": extremum(np.maximum),
          "minimumf": extremum(np.minimum), "minnumf": extremum(np.minimum)}
# Of a reduction, what it starts from; the sum of the rest is in `total`.
STARTS = {"addf": [0.0, 1.0], "mulf": [1.0, 0.5], "maximumf": [0.0, -1e4], "maxnumf": [0.0, -1e4], "minimumf": [0.0, 1e4],
          "minnumf": [0.0, 1e4]}


def total(operation, x, start, dim):
    """The values of `x` along a dimension, and the values of `start`, combined in any order."""
    (v, e), (sv, se) = x, start
    count = v.shape[dim] + 1
    if operation == "addf":
        return v.sum(axis=dim) + sv, e.sum(axis=dim) + se + UNIT * count * (np.abs(v).sum(axis=dim) + np.abs(sv))
    if operation == "mulf":
        magnitude = np.abs(v).prod(axis=dim) * np.abs(sv)
        largest = (np.abs(v) + e).prod(axis=dim) * (np.abs(sv) + se)
        # A part of the product may be too large or too small for f32.
        most = np.maximum(np.abs(v), 1).prod(axis=dim) * np.maximum(np.abs(sv), 1)
        largest = np.where(most > LARGEST_SUM, np.inf, largest)
        return v.prod(axis=dim) * sv, largest * (1 + UNIT * count) - magnitude + LEAST["f32"] * most
    extreme = np.maximum if operation.startswith("max") else np.minimum
    reduced = extreme.reduce(v, axis=dim)
    return extreme(reduced, sv), np.maximum(e.max(axis=dim), se)


PREDICATES = {"slt": np.less, "sle": np.less_equal, "sgt": np.greater, "eq": np.equal, "ne": np.not_equal}


def spread(x, map_, shape):
    """An operand of an operation over `shape` that it reads by the map."""
    if map_ == (1, 0):
        x = x.T
    elif len(map_) < len(shape):
        x = x.reshape([-1 if k == map_[0] else 1 for k in range(len(shape))])
    return np.broadcast_to(x, shape)


# --- Programs ----------------------------------------------------------------------


class Writer:
    def __init__(self, rng):
        self.rng = rng
        self.generator = np.random.default_rng(rng.getrandbits(64))
        self.program = Program()
        self.names = itertools.count()
        self.entry = []  # Lines before the loop over tiles.
        self.lines, self.steps = [], []  # Of the region that is being written.
        self.tiles = []  # What may be used there.
        self.memories, self.arrays, self.dims = [], {}, {}
        self.key = None  # The position of a loop over keys.
        self.depth = 0

    # Lines.

    def fresh(self):
        return f"%v{next(self.names)}"

    def emit(self, text, function):
        name = self.fresh()
        self.lines.append(f"{name} = {text}")
        self.steps.append(lambda env: env.__setitem__(name, function(env)))
        return name

    def tile(self, text, shape, element, function, rows=None):
        tile = Tile(self.emit(text, function), shape, element, rows)
        self.tiles.append(tile)
        return tile

    def constant(self, value, kind):
        name = self.fresh()
        text = str(value) if kind in ("index", "i32") else f"{value:e}"
        self.entry.append(f"{name} = arith.constant {text} : {kind}")
        return name

    def size(self, memory, dim):
        """The text of a size: a number, or what tensor.dim says."""
        if memory.shape[dim] is not None:
            return str(memory.shape[dim])
        if (memory.name, dim) not in self.dims:
            index, name = self.constant(dim, "index"), self.fresh()
            self.entry.append(f"{name} = tensor.dim {memory.name}, {index} : {memory.type}")
            self.dims[memory.name, dim] = name
        return self.dims[memory.name, dim]

    def remainder(self, position, memory, dim, tile):
        """How many of `tile` rows exist from the position on."""
        size, end = self.size(memory, dim), memory.sizes[dim]
        symbol = size[0] == "%"
        map_ = f"affine_map<(d0){'[s0]' if symbol else ''} -> ({'s0' if symbol else size} - d0, {tile})>"
        return self.emit(f"affine.min {map_}({position}){f'[{size}]' if symbol else ''}",
                         lambda env: min(end - env[position], tile))

    # Memory.

    def argument(self, sizes, element):
        name = f"%a{len(self.memories)}"
        shape = [None if self.dynamic and self.rng.random() < 0.5 else n for n in sizes]
        memory = Memory(name, sizes, shape, element)
        self.memories.append(memory)
        self.arrays[name] = round_to(self.generator.standard_normal(sizes), element)
        return memory

    def load(self, shape, element, rows=None, keys=None):
        """A tile of an argument of its own; `rows` and `keys` are the dimensions of the tile that
        follow the rows and the loop over keys."""
        rng = self.rng
        parts = [["tile", n] for n in range(len(shape))]
        parts += [["outer", n] for n in range(len(self.outer)) if rng.random() < 0.8]
        # Six dimensions are more than tensor maps have.
        parts += [["one", 0]] * rng.choice([0] * 17 + [1, 2, 2])
        # The usual order is outer dimensions, then the tile.
        if rng.random() < 0.5:
            parts = parts[len(shape):] + parts[:len(shape)]
        else:
            order = parts[len(shape):]
            for n, part in enumerate(parts[:len(shape)]):
                order.insert(rng.randint(0 if n == 0 else order.index(parts[n - 1]) + 1, len(order)), part)
            parts = order
        sizes, offsets, counts, strides, low, high = [], [], [], [], [0] * len(shape), [0] * len(shape)
        pending = []  # Dimensions whose last tile is not whole.
        starts = []
        for kind, n in parts:
            stride = 1
            if kind == "outer":
                sizes.append(self.outer[n][1])
                offset, count = self.outer[n][0], 1
            elif kind == "one":
                sizes.append(rng.randint(1, 3))
                offset, count = rng.randrange(sizes[-1]), 1
            elif n == rows:
                sizes.append(self.rows)
                offset, count = self.row, shape[n]
                pending.append((n, len(sizes) - 1)) if self.rows % shape[n] else None
            elif n == keys:
                sizes.append(self.keys)
                offset, count = self.key, shape[n]
                pending.append((n, len(sizes) - 1)) if self.keys % shape[n] else None
            else:
                count = shape[n]
                if self.pads and rng.random() < 0.15 and count > 4:
                    low[n], high[n] = rng.choice([(0, 3), (2, 0), (1, 2)])
                    count -= low[n] + high[n]
                stride = 2 if self.strides and rng.random() < 0.2 else 1
                slack = rng.choice([0, 0, 0, 1, 8, 16])
                sizes.append(count * stride + slack)
                offset = rng.randint(0, slack)
            offsets.append(offset)
            counts.append(count)
            strides.append(stride)
        memory = self.argument(sizes, element)
        existing = list(shape)
        for n in range(len(shape)):
            existing[n] -= low[n] + high[n]
        high = list(map(str, high))
        for n, dim in pending:
            count = self.remainder(offsets[dim], memory, dim, shape[n])
            counts[dim], existing[n] = count, None
            high[n] = self.emit(f"affine.apply affine_map<(d0) -> ({shape[n]} - d0)>({count})",
                                lambda env, count=count, n=n: shape[n] - env[count])
        array = self.arrays[memory.name].astype(np.float64)
        get = lambda env, x: env[x] if isinstance(x, str) else x
        text = lambda values: ", ".join(map(str, values))
        dropped = [k for k, (kind, _) in enumerate(parts) if kind != "tile"]

        def read(env):
            index = []
            for offset, count, stride in zip(offsets, counts, strides):
                start = get(env, offset)
                index.append(slice(start, start + get(env, count) * stride, stride))
            return exact(np.squeeze(array[tuple(index)], axis=tuple(dropped)))
        source = f"tensor.extract_slice {memory.name}[{text(offsets)}] [{text(counts)}] [{text(strides)}] : {memory.type} to " \
            f"{tensor_type(existing, element)}"
        if not any(low) and all(n == "0" for n in high):
            return self.tile(source, shape, element, read, rows)
        part = self.emit(source, read)
        fill = float(rng.choice([0, 0, 0, 1, -2.5] if self.pads else [0]))
        value = self.constant(fill, element)
        block = ", ".join(f"{self.fresh()}: index" for _ in shape)

        def pad(env):
            widths = [(before, get(env, after) if after[0] == "%" else int(after)) for before, after in zip(low, high)]
            return exact(np.pad(env[part][0], widths, constant_values=fill))
        return self.tile(f"tensor.pad {part} low[{text(low)}] high[{text(high)}] {{\n^bb0({block}):\ntensor.yield {value} : "
                         f"{element}\n}} : {tensor_type(existing, element)} to {tensor_type(shape, element)}",
                         shape, element, pad, rows)

    def fill(self, shape, value, rows=None):
        scalar = self.constant(value, "f32")
        empty = self.emit(f"tensor.empty() : {tensor_type(shape, 'f32')}", lambda env: None)
        kind = tensor_type(shape, "f32")
        return self.tile(f"linalg.fill ins({scalar} : f32) outs({empty} : {kind}) -> {kind}", shape, "f32",
                         lambda env: exact(np.full(shape, float(np.float32(value)))), rows)

    # Operations on tiles.

    def pick(self, condition=lambda tile: True):
        found = [tile for tile in self.tiles if condition(tile)]
        return self.rng.choice(found[-6:]) if found else None

    def product(self, acc=None, a=None, keys=None):
        """A product in one of the four transpositions; with `keys` the second operand follows the loop."""
        rng = self.rng
        if a is None:
            a = self.pick(lambda tile: len(tile.shape) == 2 and tile.element == self.element) if rng.random() < 0.6 else None
        if a is None:
            inner = rng.choice(self.widths)
            shape, rows = rng.choice([((self.tile_rows, inner), 0), ((self.tile_rows, inner), 0), ((inner, self.tile_rows), 1)])
            a = self.load(shape, self.element, rows)
        row = a.rows if a.rows is not None else rng.randrange(2)
        if acc is None and keys is None and rng.random() < 0.15:
            row = 1 - row
        inner = a.shape[1 - row]
        b = None
        if keys is None and acc is None and rng.random() < 0.25:
            b = self.pick(lambda tile: len(tile.shape) == 2 and tile.element == a.element and inner in tile.shape)
        if b is not None:
            place = b.shape.index(inner)
        else:
            place = rng.randrange(2)
            columns = acc.shape[1] if acc else rng.choice(self.widths)
            shape, along = ([inner, columns], 0) if place == 0 else ([columns, inner], 1)
            if keys == "columns":
                along = 1 - along
                shape[along] = self.tile_keys
            b = self.load(shape, a.element, keys=along if keys else None)
        columns = b.shape[1 - place]
        shape = (a.shape[row], columns)
        rows = 0 if a.rows == row else (1 if b.rows == 1 - place else None)
        if acc is None:
            acc = self.fill(shape, rng.choice([0.0, 0.0, 0.0, 1.0]), rows)
        # Any order of the loops says the same.
        m, n, k = rng.choice([(0, 1, 2), (0, 1, 2), (1, 2, 0), (2, 0, 1)])
        maps = [affine_map(3, (m, k) if row == 0 else (k, m)), affine_map(3, (k, n) if place == 0 else (n, k)),
                affine_map(3, (m, n))]

        def run(env):
            x, y = env[a.name], env[b.name]
            return product(tuple(p if row == 0 else p.T for p in x), tuple(p if place == 0 else p.T for p in y), env[acc.name])
        kind = tensor_type(shape, "f32")
        return self.tile(f"linalg.contract indexing_maps = [{', '.join(maps)}] ins({a.name}, {b.name} : {a.type}, {b.type}) "
                         f"outs({acc.name} : {kind}) -> {kind}", shape, "f32", run, rows)

    def cast(self, tile, element):
        """With arith on the whole tile; numbers that become 16 bits are clamped first."""
        if tile.element == element:
            return tile
        if tile.element != "f32":
            tile = self.tile(f"arith.extf {tile.name} : {tile.type} to {tensor_type(tile.shape, 'f32')}", tile.shape, "f32",
                             lambda env, source=tile.name: env[source], tile.rows)
            return self.cast(tile, element)
        for operation, bound in (("minimumf", LARGEST), ("maximumf", -LARGEST)):
            value, kind, source = self.fresh(), tile.type, tile.name
            self.lines.append(f"{value} = arith.constant dense<{bound:e}> : {kind}")
            tile = self.tile(f"arith.{operation} {source}, {value} : {kind}", tile.shape, "f32",
                             lambda env, source=source, operation=operation, bound=bound: BINARY[operation](
                                 env[source], exact(bound)), tile.rows)
        return self.tile(f"arith.truncf {tile.name} : {tile.type} to {tensor_type(tile.shape, element)}", tile.shape, element,
                         lambda env, source=tile.name: rounded(*env[source], element), tile.rows)

    def all_related(self, base):
        """The tiles that spread over the base, with their maps: the same shape, transposed, or a vector."""
        rank = len(base.shape)
        options = [(t, tuple(range(rank))) for t in self.tiles if t.shape == base.shape]
        if rank == 2:
            options += [(t, (1, 0)) for t in self.tiles if self.transposes and len(t.shape) == 2 and t.shape == base.shape[::-1]]
            for t in self.tiles:
                if len(t.shape) == 1:
                    options += [(t, (d,)) for d in (0, 1) if t.shape[0] == base.shape[d]]
        return options

    def related(self, base, single):
        """One of them."""
        rank = len(base.shape)
        options = self.all_related(base)
        vectors = [option for option in options if len(option[1]) < rank]
        if not single and vectors and self.rng.random() < 0.5:
            return self.rng.choice(vectors)
        return self.rng.choice(options)

    def elementwise(self, base=None, element="f32", inputs=None):
        """A linalg.generic over the shape of `base`."""
        rng = self.rng
        base = base or self.pick()
        rank = len(base.shape)
        uses = [(base, tuple(range(rank)))] + [self.related(base, False) for _ in range(rng.choice([0, 1, 1, 2]))]
        uses += [(tile, tuple(range(rank))) for tile in inputs or []]
        if inputs is None and rank == 2 and rng.random() < 0.12:
            n = rng.randrange(2)
            uses.append((self.load((base.shape[n],), rng.choice(["f32", self.element]), 0 if base.rows == n else None), (n,)))
        in_place = base if base.element == "f32" and element == "f32" and rng.random() < 0.3 else None
        if in_place:
            uses = uses[1:]
        body, steps = [], []  # Steps are of an environment of their own.
        names = [f"%e{n}" for n in range(len(uses))]
        block = [f"{name}: {tile.element}" for name, (tile, _) in zip(names, uses)]

        def emit(text, function):
            name = self.fresh()
            body.append(f"{name} = {text}")
            steps.append((name, function))
            return name
        values = []
        for name, (tile, _) in zip(names, uses):
            if tile.element != "f32":
                name = emit(f"arith.extf {name} : {tile.element} to f32", lambda e, name=name: e[name])
            values.append(name)
        if in_place:
            values.append("%out")
        # All inputs take part.
        value = values[0]
        for other in values[1:]:
            operation = rng.choice(["addf", "subf", "mulf", "maximumf", "maxnumf", "minimumf"])
            value = emit(f"arith.{operation} {value}, {other} : f32",
                         lambda e, x=value, y=other, operation=operation: BINARY[operation](e[x], e[y]))
        for _ in range(rng.choice([0, 1, 1, 2, 3])):
            value = self.scalar(emit, value, rank)
        if element != "f32":
            for operation, bound in (("minimumf", LARGEST), ("maximumf", -LARGEST)):
                constant = self.constant(bound, "f32")
                value = emit(f"arith.{operation} {value}, {constant} : f32",
                             lambda e, x=value, operation=operation, bound=bound: BINARY[operation](e[x], exact(bound)))
            value = emit(f"arith.truncf {value} : f32 to {element}", lambda e, x=value: rounded(*e[x], element))
        kind = tensor_type(base.shape, element)
        init = in_place.name if in_place else self.emit(f"tensor.empty() : {kind}", lambda env: None)
        maps = ", ".join(affine_map(rank, map_) for _, map_ in uses) + (", " if uses else "") + affine_map(rank, range(rank))
        ins = f"ins({', '.join(t.name for t, _ in uses)} : {', '.join(t.type for t, _ in uses)}) " if uses else ""
        shape = base.shape

        def run(env):
            e = dict(env)
            for n in range(rank):
                e["index", n] = np.arange(shape[n]).reshape([-1 if k == n else 1 for k in range(rank)])
            for name, (tile, map_) in zip(names, uses):
                e[name] = tuple(spread(x, map_, shape) for x in env[tile.name])
            if in_place:
                e["%out"] = env[in_place.name]
            for name, function in steps:
                e[name] = function(e)
            return tuple(np.array(np.broadcast_to(x, shape)) for x in e[value])
        iterators = ", ".join(['"parallel"'] * rank)
        block = ", ".join(block + [f"%out: {element}"])
        inner = "\n".join(body)
        return self.tile(f"linalg.generic {{indexing_maps = [{maps}], iterator_types = [{iterators}]}} {ins}outs({init} : {kind}) "
                         f"{{\n^bb0({block}):\n{inner}\nlinalg.yield {value} : {element}\n}} -> {kind}", shape, element, run,
                         base.rows)

    def scalar(self, emit, value, rank):
        """One more step of the body of a linalg.generic."""
        rng = self.rng
        kind = rng.randrange(8)
        number = float(np.float32(rng.choice([0.5, -0.5, 2.0, 0.125, 1.0, -3.0])))
        if kind <= 1:
            operation, constant = rng.choice(["addf", "mulf", "mulf"]), self.constant(number, "f32")
            return emit(f"arith.{operation} {value}, {constant} : f32", lambda e: BINARY[operation](e[value], exact(number)))
        if kind == 2:
            return emit(f"math.absf {value} : f32", lambda e: (np.abs(e[value][0]), e[value][1]))
        if kind == 3:
            constant = self.constant(3.0, "f32")
            value = emit(f"arith.minimumf {value}, {constant} : f32", lambda e, x=value: BINARY["minimumf"](e[x], exact(3.0)))
            return emit(f"math.exp2 {value} : f32", lambda e, x=value: exp2(e[x]))
        if kind == 4:
            return emit(f"math.tanh {value} : f32", lambda e: tanh(e[value]))
        if not self.positions:
            return emit(f"arith.negf {value} : f32", lambda e: (-e[value][0], e[value][1]))
        # Of positions: in the tile, and from the start of what the loops are at.
        index = emit_index = lambda text, function: emit(text, function)
        n = rng.randrange(rank)
        position = index(f"linalg.index {n} : index", lambda e: e["index", n])
        if rng.random() < 0.5:
            other = rng.choice([name for name in (self.row, self.key) if name])
            position = emit_index(f"arith.addi {position}, {other} : index", lambda e, x=position: e[x] + e[other])
        if kind == 5 and rank == 2:
            last = index(f"linalg.index {1 - n} : index", lambda e: e["index", 1 - n])
            position = emit_index(f"arith.subi {position}, {last} : index", lambda e, x=position: e[x] - e[last])
        if kind == 7:
            integer = emit(f"arith.index_cast {position} : index to i32", lambda e, x=position: e[x])
            real = emit(f"arith.sitofp {integer} : i32 to f32", lambda e: exact(e[integer]))
            return emit(f"arith.addf {value}, {real} : f32", lambda e: add(e[value], e[real]))
        predicate, bound = rng.choice(list(PREDICATES)), rng.choice([0, 3, 8, 17, 40])
        constant = self.constant(bound, "index")
        holds = emit(f"arith.cmpi {predicate}, {position}, {constant} : index",
                     lambda e: PREDICATES[predicate](e[position], bound))
        otherwise = self.constant(number, "f32")
        return emit(f"arith.select {holds}, {value}, {otherwise} : f32",
                    lambda e: (np.where(e[holds], e[value][0], number), np.where(e[holds], e[value][1], 0)))

    def reduce(self, tile=None, dim=None, init=None):
        """All of each row or column, combined in one way or, at times, in two."""
        rng = self.rng
        tile = tile or self.pick(lambda t: len(t.shape) == 2 and t.element == "f32")
        if tile is None:
            return None
        dim = dim if dim is not None else rng.choice([1, 1, 0])  # that vanishes
        shape = (tile.shape[1 - dim],)
        rows = 0 if tile.rows == 1 - dim else None
        operations = [rng.choice(["addf", "addf", "maximumf", "maxnumf", "minimumf", "minnumf", "mulf"])]
        inits = [init or self.fill(shape, rng.choice(STARTS[operations[0]]), rows)]
        if init is None and rng.random() < 0.2:
            operations.append(rng.choice(["addf", "maxnumf", "minimumf"]))
            inits.append(self.fill(shape, rng.choice(STARTS[operations[1]]), rows))
        left, right, out = self.fresh(), [self.fresh() for _ in inits], [self.fresh() for _ in inits]
        iterators = ['"reduction"' if d == dim else '"parallel"' for d in range(2)]
        kind = tensor_type(shape, "f32")
        types = ", ".join([kind] * len(inits))
        maps = ", ".join([affine_map(2, (0, 1))] + [affine_map(2, (1 - dim,))] * len(inits))
        arguments = ", ".join(f"{name}: f32" for name in [left] + right)
        body = "\n".join(f"{o} = arith.{operation} {left}, {r} : f32" for o, r, operation in zip(out, right, operations))
        name = self.fresh()
        many = len(inits) > 1
        self.lines.append(f"{name}{':2' if many else ''} = linalg.generic {{indexing_maps = [{maps}], iterator_types = "
                          f"[{', '.join(iterators)}]}} ins({tile.name} : {tile.type}) outs({', '.join(t.name for t in inits)} : "
                          f"{types}) {{\n^bb0({arguments}):\n{body}\nlinalg.yield {', '.join(out)} : "
                          f"{', '.join(['f32'] * len(out))}\n}} -> {f'({types})' if many else types}")
        names = [f"{name}#{n}" if many else name for n in range(len(inits))]

        def run(env):
            for result, start, operation in zip(names, inits, operations):
                env[result] = total(operation, env[tile.name], env[start.name], dim)
        self.steps.append(run)
        results = [Tile(result, shape, "f32", rows) for result in names]
        self.tiles += results
        return results[0]

    def narrow(self):
        """Arithmetic on elements of 16 bits, as it is: of a whole tile, or in a linalg.generic."""
        rng = self.rng
        base = self.pick(lambda t: t.element == self.element != "f32")
        if base is None:
            return None
        others = [(t, map_) for t, map_ in self.all_related(base) if t.element == base.element]
        other, map_ = rng.choice(others)
        operation = rng.choice(["addf", "subf", "mulf", "maxnumf", "minimumf"])
        rank, kind = len(base.shape), base.type
        identity = tuple(range(rank))
        bounds = [("minimumf", LARGEST), ("maximumf", -LARGEST)]
        names = [self.fresh() for _ in range(3)]
        compares = rng.random() < 0.3
        if map_ == identity and rng.random() < 0.5:
            lines = [f"{names[0]} = arith.{operation} {base.name}, {other.name} : {kind}"]
            for n, (clamp, bound) in enumerate(bounds):
                limit = self.fresh()
                lines += [f"{limit} = arith.constant dense<{bound:e}> : {kind}",
                          f"{names[n + 1]} = arith.{clamp} {names[n]}, {limit} : {kind}"]
            self.lines += lines
            result, compares = names[2], False
        else:
            limits = [self.constant(bound, base.element) for _, bound in bounds]
            body = [f"{names[0]} = arith.{operation} %x, %y : {base.element}"]
            body += [f"{names[n + 1]} = arith.{clamp} {names[n]}, {limits[n]} : {base.element}"
                     for n, (clamp, _) in enumerate(bounds)]
            value = names[2]
            if compares:
                holds, value = self.fresh(), self.fresh()
                body += [f"{holds} = arith.cmpf ogt, %x, %y : {base.element}",
                         f"{value} = arith.select {holds}, {names[2]}, %x : {base.element}"]
            init, result = self.emit(f"tensor.empty() : {kind}", lambda env: None), self.fresh()
            inner = "\n".join(body)
            iterators = ", ".join(['"parallel"'] * rank)
            self.lines.append(
                f"{result} = linalg.generic {{indexing_maps = [{affine_map(rank, identity)}, {affine_map(rank, map_)}, "
                f"{affine_map(rank, identity)}], iterator_types = [{iterators}]}} ins({base.name}, {other.name} : {base.type}, "
                f"{other.type}) outs({init} : {kind}) {{\n^bb0(%x: {base.element}, %y: {base.element}, %z: {base.element}):\n"
                f"{inner}\nlinalg.yield {value} : {base.element}\n}} -> {kind}")

        def run(env):
            x, y = env[base.name], tuple(spread(part, map_, base.shape) for part in env[other.name])
            value = rounded(*BINARY[operation](x, y), base.element)
            for clamp, bound in bounds:
                value = BINARY[clamp](value, exact(bound))
            if compares:
                # Where errors may invert the comparison, either may come.
                holds, close = x[0] > y[0], np.abs(x[0] - y[0]) <= x[1] + y[1]
                error = np.where(holds, value[1], x[1]) + np.where(close, np.abs(value[0] - x[0]) + value[1] + x[1], 0)
                value = np.where(holds, value[0], x[0]), error
            env[result] = value
        self.steps.append(run)
        self.tiles.append(Tile(result, base.shape, base.element, base.rows))
        return self.tiles[-1]

    def slice_tile(self):
        """A part of a tile that was computed."""
        tile = self.pick(lambda t: len(t.shape) == 2)
        n = self.rng.randrange(2)
        if tile is None or tile.shape[n] % 16 or n == tile.rows:
            return None
        sizes, offsets = list(tile.shape), [0, 0]
        sizes[n] //= 2
        offsets[n] = self.rng.choice([0, sizes[n]])
        index = tuple(slice(o, o + s) for o, s in zip(offsets, sizes))
        return self.tile(f"tensor.extract_slice {tile.name}{offsets} {sizes} [1, 1] : {tile.type} to "
                         f"{tensor_type(sizes, tile.element)}", sizes, tile.element,
                         lambda env: tuple(x[index] for x in env[tile.name]), tile.rows)

    # Regions.

    def region(self, write):
        """What `write` writes, apart: its lines, its steps, and what it returns."""
        outside = self.lines, self.steps, self.tiles
        self.lines, self.steps, self.tiles = [], [], list(self.tiles)
        self.depth += 1
        result = write()
        self.depth -= 1
        inside = self.lines, self.steps
        self.lines, self.steps, self.tiles = outside
        return *inside, result

    def choice(self):
        """A condition with one or two results."""
        rng = self.rng
        bases = [tile for tile in self.tiles if tile.element == "f32"][-3:]
        if not bases:
            return
        bases = rng.sample(bases, min(len(bases), rng.choice([1, 1, 2])))
        position = rng.choice([name for name in (self.row, self.key, *[name for name, _ in self.outer]) if name])
        bound = rng.choice([0, 1, 16, 40])
        constant = self.constant(bound, "index")
        condition = self.emit(f"arith.cmpi sle, {position}, {constant} : index", lambda env: env[position] <= bound)

        def branch():
            return [rng.choice([lambda: base, lambda: self.elementwise(base), lambda: self.elementwise(base)])() for base in bases]
        branches = [self.region(branch) for _ in range(2)]
        types = ", ".join(base.type for base in bases)
        name = self.fresh()
        text = []
        for lines, _, results in branches:
            text.append("\n".join(lines + [f"scf.yield {', '.join(t.name for t in results)} : {types}"]))
        self.lines.append(f"{name}{f':{len(bases)}' if len(bases) > 1 else ''} = scf.if {condition} -> ({types}) {{\n{text[0]}\n}} "
                          f"else {{\n{text[1]}\n}}")
        names = [f"{name}#{n}" if len(bases) > 1 else name for n in range(len(bases))]

        def run(env):
            _, steps, results = branches[0 if env[condition] else 1]
            inner = dict(env)
            for step in steps:
                step(inner)
            for n, result in zip(names, results):
                env[n] = inner[result.name]
        self.steps.append(run)
        self.tiles += [Tile(n, base.shape, "f32", base.rows) for n, base in zip(names, bases)]

    def loop(self):
        """A loop over tiles of keys: sums of products, running maxima and sums of rows, anything else."""
        rng = self.rng
        kind = rng.choice(["columns", "columns", "inner"])
        columns = rng.choice(self.widths)
        carried = []
        query = None
        if kind == "columns":
            query = self.pick(lambda t: len(t.shape) == 2 and t.element == self.element and t.rows is not None)
            query = query or self.load((self.tile_rows, rng.choice(self.widths)), self.element, 0)
            rows = query.shape[query.rows]
            with_product = rng.random() < 0.7
            if with_product:
                carried.append(self.fill((rows, columns), 0.0, 0))
            if not with_product or rng.random() < 0.6:
                carried.append(self.fill((rows,), rng.choice([-1e4, 0.0]), 0))
            if rng.random() < 0.2:
                carried.append(self.pick(lambda t: t.element == "f32"))
        else:
            carried.append(self.fill((self.tile_rows, columns), 0.0, 0))
        key, arguments = self.fresh(), [Tile(self.fresh(), t.shape, t.element, t.rows) for t in carried]

        def body():
            self.key = key
            self.tiles += arguments
            results, rest = [], list(arguments)
            if kind == "inner":
                shape = [self.tile_rows, self.tile_keys]
                along = 1
                if rng.random() < 0.3:
                    shape, along = shape[::-1], 0
                a = self.load(shape, self.element, rows=1 - along, keys=along)
                results.append(self.product(acc=rest.pop(0), a=a, keys="inner"))
            else:
                scores = self.product(a=query, keys="columns")
                for _ in range(rng.choice([0, 1, 1])):
                    scores = self.elementwise(scores)
                if with_product:
                    acc = rest.pop(0)
                    p = self.elementwise(scores, self.element) if rng.random() < 0.5 else self.cast(scores, self.element)
                    if rng.random() < 0.3:
                        acc = self.elementwise(acc)
                    results.append(self.product(acc=acc, a=p, keys="inner"))
                for argument in rest[:]:
                    if argument.shape == (rows,) and len(results) < len(arguments):
                        results.append(self.reduce(scores, 1, argument))
                        rest.remove(argument)
                        break
            for argument in rest:
                results.append(self.elementwise(argument))
            self.key = None
            return results
        lines, steps, results = self.region(body)
        types = ", ".join(t.type for t in carried)
        ends = [self.keys, self.keys, self.keys, max(self.keys - self.tile_keys, 0), 0]
        low, high = rng.choice([0, 0, 0, self.tile_keys]), rng.choice(ends)
        step = self.constant(self.tile_keys, "index")
        bounds = [self.constant(low, "index"), self.constant(high, "index")]
        if self.dynamic and rng.random() < 0.5:
            # A bound that the program does not know.
            memory = self.argument([max(high, 1)], "f32")
            memory.shape = [None]
            if high:
                bounds[1] = self.size(memory, 0)
        name = self.fresh()
        inits = ", ".join(f"{argument.name} = {t.name}" for argument, t in zip(arguments, carried))
        inner = "\n".join(lines + [f"scf.yield {', '.join(t.name for t in results)} : {types}"])
        self.lines.append(f"{name}{f':{len(carried)}' if len(carried) > 1 else ''} = scf.for {key} = {bounds[0]} to {bounds[1]} step "
                          f"{step} iter_args({inits}) -> ({types}) {{\n{inner}\n}}")
        names = [f"{name}#{n}" if len(carried) > 1 else name for n in range(len(carried))]

        def run(env):
            state = [env[t.name] for t in carried]
            for position in range(low, high, self.tile_keys):
                inner = dict(env)
                inner[key] = position
                inner.update((argument.name, value) for argument, value in zip(arguments, state))
                for one in steps:
                    one(inner)
                state = [inner[t.name] for t in results]
            env.update(zip(names, state))
        self.steps.append(run)
        self.tiles += [Tile(n, t.shape, "f32", t.rows) for n, t in zip(names, carried)]

    # The whole.

    def store(self, tile, stores, results):
        """Where the tile goes: a result of its own, of any order of dimensions around the tile's dimensions."""
        rng = self.rng
        parts = [("outer", n) for n in range(len(self.outer))]
        if tile.rows is None:
            parts.append(("number", 0))
        if rng.random() < 0.15:
            parts.append(("one", 0))
        tile_parts = [("tile", n) for n in range(len(tile.shape))]
        if rng.random() < 0.6:
            parts += tile_parts
        else:
            place = 0
            for part in tile_parts:
                place = rng.randint(place, len(parts))
                parts.insert(place, part)
                place += 1
        sizes, offsets, counts = [], [], []
        source, existing = tile.name, list(tile.shape)
        partial, taken = None, list(tile.shape)
        for kind, n in parts:
            if kind == "outer":
                sizes.append(self.outer[n][1])
                offsets.append(self.outer[n][0])
                counts.append(1)
            elif kind == "number":
                name = self.emit(f"affine.apply affine_map<(d0) -> (d0 floordiv {self.tile_rows})>({self.row})",
                                 lambda env: env[self.row] // self.tile_rows)
                sizes.append(-(-self.rows // self.tile_rows))
                offsets.append(name)
                counts.append(1)
            elif kind == "one":
                sizes.append(2)
                offsets.append(1)
                counts.append(1)
            elif n == tile.rows:
                sizes.append(self.rows)
                offsets.append(self.row)
                counts.append(self.left if self.left else tile.shape[n])
                if self.left:
                    partial, existing[n] = n, None
            else:
                if rng.random() < 0.15:
                    taken[n] = existing[n] = rng.randint(1, tile.shape[n])
                slack = rng.choice([0, 0, 0, 1, 8])
                sizes.append(taken[n] + slack)
                offsets.append(rng.choice([0, slack]))
                counts.append(taken[n])
        if partial is not None:
            taken[partial] = self.left
        if taken != list(tile.shape):
            source = self.fresh()
            self.lines.append(f"{source} = tensor.extract_slice {tile.name}[{', '.join(['0'] * len(taken))}] "
                              f"[{', '.join(map(str, taken))}] [{', '.join(['1'] * len(taken))}] : {tile.type} to "
                              f"{tensor_type(existing, tile.element)}")
        result = Memory(f"%r{len(results)}", sizes, sizes, tile.element)
        results.append(result)
        out = f"%o{len(results) - 1}"
        ones = ", ".join(["1"] * len(sizes))
        text = lambda values: ", ".join(map(str, values))
        stores.append(f"tensor.parallel_insert_slice {source} into {out}[{text(offsets)}] [{text(counts)}] [{ones}] : "
                      f"{tensor_type(existing, tile.element)} into {result.type}")
        get = lambda env, x: env[x] if isinstance(x, str) else x

        def write(env, arrays):
            index = tuple(slice(get(env, o), get(env, o) + get(env, c)) for o, c in zip(offsets, counts))
            shape = arrays[0][index].shape
            piece = tuple(slice(0, get(env, n)) for n in taken)
            for array, part in zip(arrays, env[tile.name]):
                array[index] = part[piece].reshape(shape)
            arrays[2][index] = True
        return write

    def draw(self):
        rng, program = self.rng, self.program
        self.element = rng.choice(["f16", "f16", "bf16", "f32"])
        self.dynamic = rng.random() < 0.35
        # Traits that half of the programs do without.
        self.pads, self.strides, self.transposes, self.positions = (rng.random() < p for p in (0.3, 0.15, 0.4, 0.6))
        self.widths = rng.choice([[16, 32, 64], [16, 32, 64], [16, 32], [64, 128], [8, 24, 40, 48]])
        self.tile_rows = rng.choice([16, 32, 64, 64])
        self.schedule = ""
        # Some for warps with roles.
        if self.element != "f32" and rng.random() < 0.25:
            self.tile_rows = rng.choice([64, 128])
            features = ["specialize_warps"] + [name for name in ("overlap", "bulk_store", "persistent") if rng.random() < 0.4]
            if self.tile_rows > 64 and rng.random() < 0.5:
                features.append("ping_pong")
            self.schedule = f" {{flash.schedule = #flash.schedule<features = {'|'.join(features)}, warps = {self.tile_rows // 16}, " \
                f"stages = {rng.randint(1, 3)}>}}"
            program.targets = ["cpu", "emulate:sm_90a"]
        self.tile_keys = rng.choice([16, 32, 64])
        self.rows = rng.choice([self.tile_rows, 2 * self.tile_rows, 3 * self.tile_rows, 1, 17, 50, 100, 130])
        self.keys = rng.choice([self.tile_keys, 3 * self.tile_keys, 2 * self.tile_keys, 40, 100])
        self.outer = [(self.fresh(), rng.randint(1, 3)) for _ in range(rng.choice([0, 1, 1, 2]))]
        self.row = self.fresh()
        self.left = None
        if self.rows % self.tile_rows:
            self.left = self.emit(f"affine.min affine_map<(d0) -> ({self.rows} - d0, {self.tile_rows})>({self.row})",
                                  lambda env: min(self.rows - env[self.row], self.tile_rows))
        self.load((self.tile_rows, rng.choice(self.widths)), self.element, 0)
        actions = [self.product, self.elementwise, self.reduce, self.choice, self.loop, self.slice_tile,
                   lambda: self.cast(self.pick(), rng.choice(["f32", self.element])),
                   lambda: self.elementwise(element=self.element),
                   lambda: self.load((self.tile_rows, rng.choice(self.widths)), rng.choice(["f32", self.element]), 0), self.narrow]
        weights = [5, 4, 3, 1, 3, 0.5, 2, 1, 1, 1]
        for _ in range(rng.choice([1, 2, 3, 4, 5, 6])):
            rng.choices(actions, weights)[0]()
        # One that has a product at least, as flash-run knows programs on tiles.
        if not any("linalg.contract" in line for line in self.lines):
            self.product()
        stores, results, writes = [], [], []
        # What nothing else reads is stored, so that all of the program counts; at times more.
        text = "\n".join(self.lines) + "\n"
        leaves = [tile for tile in self.tiles if len(re.findall(re.escape(tile.name) + r"(?![\d#])", text)) < 2 and
                  (tile.name[-2:-1] == "#" or f"{tile.name} = tensor.extract_slice %a" not in text)]
        others = [tile for tile in self.tiles if tile not in leaves]
        for tile in leaves[-6:] + rng.sample(others, min(len(others), rng.choice([0, 0, 1]))):
            writes.append(self.store(tile, stores, results))
        self.finish(stores, results, writes)
        return program

    def finish(self, stores, results, writes):
        rng, program = self.rng, self.program
        fills = []
        lines = []
        for n, result in enumerate(results):
            lines.append(f"%b{n} = tensor.empty() : {result.type}")
            fills.append(2.0 if rng.random() < 0.03 else None)
            if fills[-1] is not None:
                value = self.constant(fills[-1], result.element)
                lines.append(f"%c{n} = linalg.fill ins({value} : {result.element}) outs(%b{n} : {result.type}) -> {result.type}")
        upper = [str(n) for _, n in self.outer] + [str(self.rows)]
        steps = ["1"] * len(self.outer) + [str(self.tile_rows)]
        names = [name for name, _ in self.outer] + [self.row]
        types = ", ".join(result.type for result in results)
        outs = ", ".join(f"%o{n} = %{'b' if fills[n] is None else 'c'}{n}" for n in range(len(results)))
        count = f":{len(results)}" if len(results) > 1 else ""
        signature = ", ".join(f"{memory.name}: {memory.type}" for memory in self.memories)
        given = ", ".join(f"%all#{n}" if count else "%all" for n in range(len(results)))
        program.text = "\n".join(
            [f"func.func @tiles({signature}) -> ({types}) {{"] + self.entry + lines +
            [f"%all{count} = scf.forall ({', '.join(names)}) = ({', '.join(['0'] * len(names))}) to ({', '.join(upper)}) step "
             f"({', '.join(steps)}) shared_outs({outs}) -> ({types}) {{"] + self.lines +
            ["scf.forall.in_parallel {"] + stores + ["}", f"}}{self.schedule}", f"return {given} : {types}", "}", ""])
        program.arguments = [(memory.name[1:], self.arrays[memory.name], memory.element) for memory in self.memories]
        program.outputs = [(f"o{n}", result.element) for n, result in enumerate(results)]
        program.shapes = [result.sizes for result in results]

        def expected():
            arrays = [(np.full(result.sizes, 0.0 if fill is None else fill), np.zeros(result.sizes),
                       np.full(result.sizes, fill is not None)) for result, fill in zip(results, fills)]
            for position in itertools.product(*[range(n) for _, n in self.outer], range(0, self.rows, self.tile_rows)):
                env = dict(zip(names, position))
                for step in self.steps:
                    step(env)
                for write, array in zip(writes, arrays):
                    write(env, array)
            return arrays
        program.expected = expected


def draw(rng):
    return Writer(rng).draw()


if __name__ == "__main__":
    import random
    import sys
    print(draw(random.Random(sys.argv[1])).text)
