"""Draws random programs that work along rows alone, without products (see linalg_tiles.py).

Any number of rows and columns: elementwise arithmetic, reductions of rows, conditions, and loops
over the columns of a longer row that carry values of rows, and write each tile into the slice of an
output that they carry.

    python3 row_tiles.py SEED/NUMBER    prints a program
"""
import numpy as np

from linalg_tiles import Memory, Tile, Writer, tensor_type


class RowWriter(Writer):
    def choose(self):
        rng = self.rng
        self.element = rng.choice(["f16", "f16", "bf16", "f32"])
        self.dynamic = rng.random() < 0.35
        self.pads, self.strides, self.transposes, self.positions = (rng.random() < p for p in (0.4, 0.1, 0.2, 0.5))
        self.widths = [rng.choice([1, 2, 5, 31, 32, 40, 64, 77, 100, 128, 200, 256, 300, 512, 1000, 2048])]
        self.tile_rows = rng.choice([1, 1, 2, 3, 4, 5, 6, 8, 8, 8, 8, 12, 16, 32])
        if self.tile_rows * self.widths[0] > 16384:
            self.tile_rows = 8
        self.tile_keys = rng.choice([16, 33, 64, 100, 128, 256, 512])
        self.rows = rng.choice([1, 2, 3]) * self.tile_rows + rng.choice([0, 0, rng.randrange(self.tile_rows)])
        self.keys = rng.choice([self.tile_keys, 3 * self.tile_keys, 2 * self.tile_keys, 40, 100, 777])
        self.outer = [(self.fresh(), rng.randint(1, 3)) for _ in range(rng.choice([0, 1, 1, 2]))]
        self.row = self.fresh()
        self.left = None
        self.schedule = ""
        if self.rows % self.tile_rows:
            self.left = self.emit(f"affine.min affine_map<(d0) -> ({self.rows} - d0, {self.tile_rows})>({self.row})",
                                  lambda env: min(self.rows - env[self.row], self.tile_rows))

    def matrix(self, element=None):
        return self.load((self.tile_rows, self.widths[0]), element or self.rng.choice(["f32", self.element]), 0)

    def walk(self):
        """A loop over the columns of a matrix, by tiles: values of rows are carried, tiles are stored."""
        rng = self.rng
        shape = (self.tile_rows, self.tile_keys)
        carried = [self.fill((self.tile_rows,), rng.choice([-1e4, 0.0]), 0) for _ in range(rng.choice([0, 1, 1, 2]))]
        result = part = None
        if not carried or rng.random() < 0.6:
            result, part = self.slice_of_output()
        key, arguments = self.fresh(), [Tile(self.fresh(), t.shape, t.element, t.rows) for t in carried]
        state, rows = self.fresh(), self.left or self.tile_rows

        def body():
            self.key = key
            self.tiles += arguments
            tile = self.load(shape, rng.choice(["f32", self.element]), 0, keys=1)
            values = self.cast(tile, "f32")
            for _ in range(rng.choice([0, 1, 1, 2])):
                values = self.elementwise(values)
            results = [self.reduce(values, 1, argument) if rng.random() < 0.8 else self.elementwise(argument)
                       for argument in arguments]
            if not result:
                self.key = None
                return results, None
            kept = self.cast(values, result.element)
            count = str(self.tile_keys)
            if self.keys % self.tile_keys:
                count = self.remainder(key, result, len(result.sizes) - 1, self.tile_keys)
            existing = [None if self.left else self.tile_rows, None if count[0] == "%" else self.tile_keys]
            taken, following = self.fresh(), self.fresh()
            self.lines.append(f"{taken} = tensor.extract_slice {kept.name}[0, 0] [{rows}, {count}] [1, 1] : {kept.type} to "
                              f"{tensor_type(existing, kept.element)}")
            self.lines.append(f"{following} = tensor.insert_slice {taken} into {state}[0, {key}] [{rows}, {count}] [1, 1] : "
                              f"{tensor_type(existing, kept.element)} into {self.part_type(result)}")
            self.key = None
            return results, (kept, following)
        lines, steps, (results, written) = self.region(body)
        types = [t.type for t in carried] + ([self.part_type(result)] if result else [])
        inits = [f"{argument.name} = {t.name}" for argument, t in zip(arguments, carried)]
        yields = [t.name for t in results]
        if result:
            inits.append(f"{state} = {part}")
            yields.append(written[1])
        name, count = self.fresh(), len(types)
        low, step, high = self.constant(0, "index"), self.constant(self.tile_keys, "index"), self.constant(self.keys, "index")
        inner = "\n".join(lines + [f"scf.yield {', '.join(yields)} : {', '.join(types)}"])
        self.lines.append(f"{name}{f':{count}' if count > 1 else ''} = scf.for {key} = {low} to {high} step {step} "
                          f"iter_args({', '.join(inits)}) -> ({', '.join(types)}) {{\n{inner}\n}}")
        names = [f"{name}#{n}" if count > 1 else name for n in range(count)]

        def run(env):
            values = [env[t.name] for t in carried]
            tiles = []
            for position in range(0, self.keys, self.tile_keys):
                inner = dict(env)
                inner[key] = position
                inner.update((argument.name, value) for argument, value in zip(arguments, values))
                for one in steps:
                    one(inner)
                values = [inner[t.name] for t in results]
                if written:
                    tiles.append(inner[written[0].name])
            env.update(zip(names, values))
            if written:
                env[names[-1]] = tuple(np.concatenate(parts, axis=1)[:, :self.keys] for parts in zip(*tiles))
        self.steps.append(run)
        self.tiles += [Tile(n, t.shape, "f32", t.rows) for n, t in zip(names, carried)]
        if result:
            self.store_part(result, names[-1])

    # Outputs that loops write to.

    def part_type(self, result):
        return tensor_type([None if self.left else self.tile_rows, self.keys], result.element)

    def place(self):
        offsets = [name for name, _ in self.outer] + [self.row, "0"]
        counts = ["1"] * len(self.outer) + [str(self.left or self.tile_rows), str(self.keys)]
        return f"[{', '.join(offsets)}] [{', '.join(counts)}] [{', '.join(['1'] * len(counts))}]"

    def slice_of_output(self):
        sizes = [n for _, n in self.outer] + [self.rows, self.keys]
        result = Memory(f"%r{len(self.results)}", sizes, sizes, self.rng.choice(["f32", self.element]))
        output = f"%o{len(self.results)}"
        self.results.append(result)
        self.writes.append(None)
        part = self.fresh()
        self.lines.append(f"{part} = tensor.extract_slice {output}{self.place()} : {result.type} to {self.part_type(result)}")
        return result, part

    def store_part(self, result, name):
        number = self.results.index(result)
        self.stores.append(f"tensor.parallel_insert_slice {name} into %o{number}{self.place()} : {self.part_type(result)} into "
                           f"{result.type}")

        def write(env, arrays):
            rows = env[self.left] if self.left else self.tile_rows
            index = tuple(env[n] for n, _ in self.outer) + (slice(env[self.row], env[self.row] + rows),)
            for array, values in zip(arrays, env[name]):
                array[index] = values[:rows]
            arrays[2][index] = True
        self.writes[number] = write

    def draw(self):
        rng = self.rng
        self.choose()
        self.stores, self.results, self.writes = [], [], []
        self.matrix()
        actions = [self.elementwise, lambda: self.reduce(dim=1), self.choice, self.walk,
                   lambda: self.cast(self.pick(), rng.choice(["f32", self.element])),
                   lambda: self.elementwise(element=self.element), self.matrix]
        for _ in range(rng.choice([1, 2, 3, 4, 5, 6])):
            rng.choices(actions, [4, 4, 1, 3, 1, 1, 1])[0]()
        text = "\n".join(self.lines + self.stores) + "\n"
        leaves = [tile for tile in self.tiles if text.count(tile.name + " ") + text.count(tile.name + ",") < 2 and
                  len(tile.shape) > 0 and f"{tile.name} = tensor." not in text]
        if not leaves and not self.results:
            leaves = [self.elementwise()]
        for tile in leaves[-6:]:
            self.writes.append(self.store(tile, self.stores, self.results))
        self.finish(self.stores, self.results, self.writes)
        return self.program


def draw(rng):
    return RowWriter(rng).draw()


if __name__ == "__main__":
    import random
    import sys
    print(draw(random.Random(sys.argv[1])).text)
