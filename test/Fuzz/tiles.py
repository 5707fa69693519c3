"""Draws random programs on tiles (level 1): the forms that flash-tile prints, put together in other ways.

Key loops with gaps between them or none to visit, in any order, with bounds that depend
on the queries; last tiles of keys and queries that are padded; several steps in an iteration;
a mask of its own for each loop. `count` of the Program follows from the loops.
"""
import numpy as np

from attentions import HEAD_DIMS, LENGTHS, MaskMaker, Program, Score, draw_lengths, finish, round_to, spoil, tensor_type


class Writer:
    """Lines of MLIR with fresh names."""

    def __init__(self):
        self.lines, self.names = [], 0

    def fresh(self):
        self.names += 1
        return f"%t{self.names}"

    def add(self, line):
        self.lines.append(line)

    def emit(self, operation):
        name = self.fresh()
        self.add(f"{name} = {operation}")
        return name

    def constant(self, value, kind="index"):
        return self.emit(f"arith.constant {value} : {kind}")


class Loop:
    """A loop over tiles of keys; the bounds are functions of the first query of the tile."""

    def __init__(self, low, high, low_map, high_map, ragged, steps, keys, mask):
        self.low, self.high, self.low_map, self.high_map = low, high, low_map, high_map
        self.ragged, self.steps, self.keys, self.mask = ragged, steps, keys, mask


def draw_loops(rng, masks, nk, least, tile):
    """`least` is the smallest number of keys of a batch: only padded steps may reach beyond."""
    loops = []
    for _ in range(rng.choice([1, 1, 2, 2, 3])):
        ragged = rng.random() < 0.5
        end = -(-least // tile) if ragged else least // tile
        steps = rng.choice([1, 1, 1, 2]) if not ragged else 1
        low, high = sorted([rng.choice([0, 0, rng.randint(0, end)]), rng.choice([end, end, rng.randint(0, end)])])
        if rng.random() < 0.1:
            low, high = high, low  # nothing to visit
        high -= (high - low) % steps if high > low else 0
        mask = masks.mask(rng.choice([0, 0, 1])) if rng.random() < 0.6 else None
        keys = rng.choice([1, 5, tile - 1]) if not ragged and rng.random() < 0.1 else None
        bounds = [low * tile, high * tile]
        lower, upper = (lambda i, x=bounds[0]: x), (lambda i, x=bounds[1]: x)
        lower_map = upper_map = None
        kind = rng.randrange(5)
        if kind == 0 and steps == 1:
            # Up to the diagonal.
            shift = rng.choice([0, 1, tile, 3 * tile])
            upper = lambda i, x=bounds[1], shift=shift: min((i + shift + tile - 1) // tile * tile, x)
            upper_map = f"affine.min affine_map<(d0) -> ((d0 + {shift}) ceildiv {tile} * {tile}, {bounds[1]})>(%ii)"
        elif kind == 1 and steps == 1:
            shift = rng.choice([0, tile, 3 * tile])
            lower = lambda i, x=bounds[0], shift=shift: max((i - shift) // tile * tile, x)
            lower_map = f"affine.max affine_map<(d0) -> ((d0 - {shift}) floordiv {tile} * {tile}, {bounds[0]})>(%ii)"
        loops.append(Loop(lower, upper, lower_map, upper_map, ragged, steps, keys, mask))
    return loops


def draw_schedule(rng, element):
    """The keys of a schedule, and the targets on which it may run."""
    keys = {"query_tile": rng.choice([16, 32, 64]), "key_tile": rng.choice([16, 16, 32])}
    targets = ["cpu", "emulate", "emulate:sm_90a"]
    if element != "f32" and rng.random() < 0.4:
        keys["query_tile"] = rng.choice([64, 64, 128])
        features = ["specialize_warps"] + [feature for feature in ("overlap", "lazy_rescale", "persistent", "bulk_store")
                                           if rng.random() < 0.6]
        if keys["query_tile"] > 64 and rng.random() < 0.5:
            features.append("ping_pong")
        keys["features"] = "|".join(features)
        targets = ["emulate:sm_90a"]
    keys["stages"] = rng.randint(2 if "features" in keys else 1, 4)
    if "features" not in keys:
        keys["warps"] = rng.choice([n for n in (1, 2, 4) if keys["query_tile"] // 16 % n == 0])
    else:
        keys["warps"] = keys["query_tile"] // 16
    return keys, targets


def print_schedule(keys):
    return f"<{', '.join(f'{key} = {value}' for key, value in keys.items())}>"


def draw(rng):
    program = Program()
    generator = np.random.default_rng(rng.getrandbits(64))
    program.element = element = rng.choice(["f32", "f16", "f16", "bf16"])
    batches, kv_heads, group = rng.choice([1, 1, 2]), rng.choice([1, 2]), rng.choice([1, 1, 2, 3])
    heads = kv_heads * group
    nq, nk = rng.choice(LENGTHS), rng.choice(LENGTHS)
    d, dv = rng.choice(HEAD_DIMS), rng.choice(HEAD_DIMS)
    if rng.random() < 0.5:
        dv = d
    dynamic = rng.random() < 0.4
    schedule, program.targets = draw_schedule(rng, element)
    query_tile, tile = schedule["query_tile"], schedule["key_tile"]

    def make(*shape):
        return round_to(generator.standard_normal(shape), element)
    program.q, program.k, program.v = q, k, v = make(batches, heads, nq, d), make(batches, kv_heads, nk, d), \
        make(batches, kv_heads, nk, dv)
    lengths = draw_lengths(rng, batches, nk) if rng.random() < 0.25 else None
    ends = np.clip(lengths.astype(np.int64), 0, nk) if lengths is not None else np.full([batches], nk)
    masks = MaskMaker(rng, nq, nk)
    loops = draw_loops(rng, masks, nk, int(ends.min(initial=nk)), tile)
    score = Score(rng, {"b": batches, "h": heads, "i": nq, "j": nk}, dynamic) if rng.random() < 0.2 else None
    program.score = score.modify if score else None
    program.sinks = round_to(generator.standard_normal(heads) * 2, "f32") if rng.random() < 0.25 else None
    program.scale = rng.choice([0.25, 0.125, 1.0])
    program.lse = True

    b, h, i, j = np.ogrid[:batches, :heads, :nq, :nk]
    program.count = count = np.zeros((batches, heads, nq, nk), np.int64)
    for loop in loops:
        kept = np.ones((1, 1, 1, 1), bool) if loop.mask is None else loop.mask.keep(b=b, h=h, i=i, j=j, nq=nq, nk=nk)
        kept = np.broadcast_to(kept, count.shape)
        for batch in range(batches):
            for first in range(0, nq, query_tile):
                rows = slice(first, first + query_tile)
                for key in range(loop.low(first), loop.high(first), tile):
                    last = min(key + (loop.keys or tile), int(ends[batch]))
                    count[batch, :, rows, key:last] += kept[batch, :, rows, key:last]
    # Padding is finite; there are no whole tiles with keys that are said to be padding.
    if not any(loop.keys for loop in loops) and not (score and score.masks) and rng.random() < 0.4:
        spoil(rng, program, q, k, v, count, "")

    arguments = [("q", q, element), ("k", k, element), ("v", v, element)]
    types = {name: tensor_type(rng, array.shape, element, dynamic, fixed=1) for name, array, _ in arguments}
    if lengths is not None:
        arguments.append(("n", lengths, "i32"))
        types["n"] = f"tensor<{batches}xi32>"
    if program.sinks is not None:
        arguments.append(("sink", program.sinks, "f32"))
        types["sink"] = f"tensor<{heads}xf32>"
    if score:
        for name, array, kind, text in score.captured:
            arguments.append((name, array, kind))
            types[name] = text
    results = [f"tensor<{'x'.join(map(str, q.shape[:-1]))}x{dv}x{element}>", f"tensor<{'x'.join(map(str, q.shape[:-1]))}xf32>"]
    program.shapes = [list(q.shape[:-1]) + [dv], list(q.shape[:-1])]
    body = write(program, loops, schedule, query_tile, tile, types, results, lengths is not None, score, (d, dv, group))
    finish(program, masks, arguments, types, results, body)
    return program


def write(program, loops, schedule, query_tile, tile, types, results, has_lengths, score, dims):
    d, dv, group = dims
    batches, heads, nq, nk = program.count.shape
    element = program.element
    # Of the maximum: as flash-online-softmax chooses it, or another.
    unit = 0.5 if score else program.scale
    w = Writer()
    w.add(f"%zero = arith.constant 0.0 : {element}")
    w.add("%zero32 = arith.constant 0.0 : f32")
    w.add("%one32 = arith.constant 1.0 : f32")
    w.add("%none32 = arith.constant 0xFF800000 : f32")
    two = w.constant(2)
    sizes = {}
    for name, size in (("q", nq), ("k", nk)):
        is_static = types[name].split("x")[2] != "?"
        sizes[name] = str(size) if is_static else w.emit(f"tensor.dim %{name}, {two} : {types[name]}")
    w.add(f"%tile = arith.constant {tile} : index")
    for name, kind in zip("ol", results):
        w.add(f"%{name}0 = tensor.empty() : {kind}")
    w.add(f"%o, %l = scf.forall (%bb, %hh, %ii) = (0, 0, 0) to ({batches}, {heads}, {nq}) step (1, 1, {query_tile}) "
          f"shared_outs(%oo = %o0, %ll = %l0) -> ({', '.join(results)}) {{")

    def padded(name, source, offsets, sizes_before, count, rows, width, kind, what, static):
        """A slice of `count` rows, padded to `rows`."""
        inner = f", {width}" if width else ""
        ones = ", ".join(["1"] * (sizes_before + 1 + (1 if width else 0)))
        lead = "".join("1, " for _ in range(sizes_before))
        tail = f"x{width}" if width else ""
        if static:
            w.add(f"%{name} = tensor.extract_slice {source}[{offsets}] [{lead}{rows}{inner}] [{ones}] : {kind} to "
                  f"tensor<{rows}{tail}x{what}>")
            return
        high = w.emit(f"affine.apply affine_map<(d0) -> (-d0 + {rows})>({count})")
        part = w.emit(f"tensor.extract_slice {source}[{offsets}] [{lead}{count}{inner}] [{ones}] : {kind} to tensor<?{tail}x{what}>")
        zero = "%zero32" if what == "f32" else "%zero"
        block = f"%p{w.names}: index" + (f", %r{w.names}: index" if width else "")
        zeros = ", 0" if width else ""
        w.add(f"%{name} = tensor.pad {part} low[0{zeros}] high[{high}{zeros}] {{\n^bb0({block}):\n"
              f"tensor.yield {zero} : {what}\n}} : tensor<?{tail}x{what}> to tensor<{rows}{tail}x{what}>")

    whole = nq % query_tile == 0
    w.add(f"%nrows = affine.min affine_map<(d0) -> (-d0 + {nq}, {query_tile})>(%ii)")
    padded("qt", "%q", "%bb, %hh, %ii, 0", 2, "%nrows", query_tile, d, types["q"], element, whole)
    acc, row = f"tensor<{query_tile}x{dv}xf32>", f"tensor<{query_tile}xf32>"
    w.add(f"%ae = tensor.empty() : {acc}\n%re = tensor.empty() : {row}")
    w.add(f"%a0 = linalg.fill ins(%zero32 : f32) outs(%ae : {acc}) -> {acc}")
    if program.sinks is not None:
        # As flash-tile starts from a sink: the same for all rows of a head.
        w.add(f"%unit = arith.constant {unit} : f32\n%x = tensor.extract %sink[%hh] : {types['sink']}")
        w.add(f"%z = arith.divf %x, %unit : f32\n%m0 = linalg.fill ins(%z : f32) outs(%re : {row}) -> {row}")
    else:
        w.add(f"%m0 = linalg.fill ins(%none32 : f32) outs(%re : {row}) -> {row}")
    w.add(f"%s0 = linalg.fill ins(%{'one32' if program.sinks is not None else 'zero32'} : f32) outs(%re : {row}) -> {row}")
    w.add(f"%g = affine.apply affine_map<(d0) -> (d0 floordiv {group})>(%hh)")
    last = sizes["k"]
    if has_lengths:
        length = w.emit(f"tensor.extract %n[%bb] : {types['n']}")
        length = w.emit(f"arith.index_cast {length} : i32 to index")
        nothing, end = w.constant(0), sizes["k"] if sizes["k"][0] == "%" else w.constant(nk)
        last = w.emit(f"arith.minsi {w.emit(f'arith.maxsi {length}, {nothing} : index')}, {end} : index")
    state = ("%a0", "%m0", "%s0")
    for number, loop in enumerate(loops):
        low = w.emit(loop.low_map) if loop.low_map else w.constant(loop.low(0))
        high = w.emit(loop.high_map) if loop.high_map else w.constant(loop.high(0))
        step = w.constant(tile * loop.steps)
        w.add(f"%u{number}:3 = scf.for %j{number} = {low} to {high} step {step} iter_args(%a_{number} = {state[0]}, "
              f"%m_{number} = {state[1]}, %s_{number} = {state[2]}) -> ({acc}, {row}, {row}) {{")
        inner = (f"%a_{number}", f"%m_{number}", f"%s_{number}")
        for part in range(loop.steps):
            key = f"%j{number}" if part == 0 else w.emit(f"affine.apply affine_map<(d0) -> (d0 + {part * tile})>(%j{number})")
            keys = ""
            count = None
            if loop.ragged:
                count = w.emit(f"affine.min affine_map<(d0) -> (-d0 + {last}, {tile})>({key})" if last[0] != "%" else
                               f"affine.min affine_map<(d0)[s0] -> (-d0 + s0, {tile})>({key})[{last}]")
                keys = f" keys({count})"
            elif loop.keys:
                keys = f" keys({w.constant(loop.keys)})"
            name = f"{number}_{part}"
            padded(f"kt{name}", "%k", f"%bb, %g, {key}, 0", 2, count, tile, d, types["k"], element, not loop.ragged)
            padded(f"vt{name}", "%v", f"%bb, %g, {key}, 0", 2, count, tile, dv, types["v"], element, not loop.ragged)
            mask = f" mask({loop.mask.text})" if loop.mask else ""
            w.add(f"%y{name}:3 = flash.online_attention ins(%qt, %kt{name}, %vt{name} : tensor<{query_tile}x{d}x{element}>, "
                  f"tensor<{tile}x{d}x{element}>, tensor<{tile}x{dv}x{element}>) outs({', '.join(inner)} : {acc}, {row}, {row}) "
                  f"at[%bb, %hh, %ii, {key}] of[{sizes['q']}, {sizes['k']}]{keys} scale({program.scale}) unit({unit}){mask} "
                  f"schedule({print_schedule(schedule)})"
                  + (f" {score.text()}" if score else ""))
            inner = tuple(f"%y{name}#{n}" for n in range(3))
        w.add(f"scf.yield {', '.join(inner)} : {acc}, {row}, {row}\n}}")
        state = tuple(f"%u{number}#{n}" for n in range(3))
    out = f"tensor<{query_tile}x{dv}x{element}>"
    w.add(f"%oe = tensor.empty() : {out}")
    w.add(f"%ot, %lt = flash.finalize ins({', '.join(state)} : {acc}, {row}, {row}) outs(%oe, %re : {out}, {row}) unit({unit}) -> ({out}, {row})")
    if whole:
        rows, oname, lname, otype, ltype = str(query_tile), "%ot", "%lt", out, row
    else:
        rows, oname, lname, otype, ltype = "%nrows", "%os", "%ls", f"tensor<?x{dv}x{element}>", "tensor<?xf32>"
        w.add(f"%os = tensor.extract_slice %ot[0, 0] [%nrows, {dv}] [1, 1] : {out} to {otype}")
        w.add(f"%ls = tensor.extract_slice %lt[0] [%nrows] [1] : {row} to {ltype}")
    of_kernel = {key: value for key, value in schedule.items() if key not in ("query_tile", "key_tile")}
    w.add(f"scf.forall.in_parallel {{\ntensor.parallel_insert_slice {oname} into %oo[%bb, %hh, %ii, 0] [1, 1, {rows}, {dv}] "
          f"[1, 1, 1, 1] : {otype} into {results[0]}\ntensor.parallel_insert_slice {lname} into %ll[%bb, %hh, %ii] [1, 1, {rows}] "
          f"[1, 1, 1] : {ltype} into {results[1]}\n}}\n}} {{flash.schedule = #flash.schedule{print_schedule(of_kernel)}}}")
    return "\n".join(w.lines) + "\n"
