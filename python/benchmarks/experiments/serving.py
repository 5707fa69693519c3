"""What each trick of serving brings: a token for each sequence, keys in pages, and prompts beside tokens in one call."""
import plots
import programs
from flash import Case, milliseconds
from results import Result, Table, divide, faults

# Keys that query heads share are read once for all of them; few sequences are cut into parts.
TRICKS = [("a tile for each query head", "packed_heads=1,num_splits=1"),
          ("+ heads that share keys in one tile", "packed_heads={group},num_splits=1"),
          ("+ keys in four parts", "packed_heads={group},num_splits=4")]
PAGES = (128, 16)


def decode(bench, name, shape, kv_heads, dtype):
    """The label and the report of a token for each sequence: contiguous keys, pages of several sizes, packed tokens."""
    batch, heads, keys, dim = shape
    whole = programs.attention(shape, dtype, kv_heads=kv_heads, queries=1)
    cases = [("naive: all scores in memory", Case(f"{name}_naive", whole, ("--baseline",)))]
    if bench.gpu:
        cases += [(label, Case(f"{name}_{index}", whole, (f"--schedule={schedule.format(group=heads // kv_heads)}",)))
                  for index, (label, schedule) in enumerate(TRICKS)]
    cases.append(("the schedule that is proposed", Case(f"{name}_proposed", whole, ("--check",))))
    for page in PAGES:
        text = programs.paged(shape, dtype, kv_heads, [1] * batch, page)
        cases.append((f"+ keys in pages of {page}", Case(f"{name}_{page}", text, ("--check", f"--fill=4={keys}"))))
    offsets = [f"--fill=5={row}@{row}" for row in range(batch + 1)]
    text = programs.paged(shape, dtype, kv_heads, [1] * batch, PAGES[-1], is_packed=True)
    cases.append(("+ tokens packed behind each other", Case(f"{name}_packed", text, ("--check", f"--fill=4={keys}", *offsets))))
    reports = bench.flash.run([case for _, case in cases])
    return [(label, reports[case.name]) for label, case in cases], faults(reports)


def mixed(bench, prompts, tokens, keys, heads, kv_heads, dim, dtype):
    """Milliseconds of prompts alone, of tokens alone, and of both in one call; all have `keys` keys."""
    cases = {}
    for name, queries in (("prompts", [keys] * prompts), ("tokens", [1] * tokens), ("both", [keys] * prompts + [1] * tokens)):
        shape = (len(queries), heads, keys, dim)
        text = programs.paged(shape, dtype, kv_heads, queries, PAGES[0], is_packed=True, mask=programs.CAUSAL)
        rows = [sum(queries[:at]) for at in range(len(queries) + 1)]
        offsets = [f"--fill=5={row}@{at}" for at, row in enumerate(rows)]
        cases[name] = Case(f"mixed_{name}", text, (f"--fill=4={keys}", *offsets))
    reports = bench.flash.run(list(cases.values()))
    return {name: milliseconds(reports[case.name]) for name, case in cases.items()}, faults(reports)


def run(bench):
    problems = ((32, 32, 4096, 128), (1, 32, 16384, 128)) if bench.gpu else ((4, 8, 512, 64),)
    kv_heads, dtype = (8, "bf16") if bench.gpu else (2, "f32")
    result = Result(f"The ladder of serving, {dtype}",
                    "A token for each sequence: the same keys, read in other ways. GB/s are of what is read and written once.")
    for shape in problems:
        batch, heads, keys, dim = shape
        title = f"{batch} sequence{'s' * (batch > 1)} of {keys} keys, {heads} heads on {kv_heads}, D = {dim}"
        rungs, notes = decode(bench, f"serving_{batch}", shape, kv_heads, dtype)
        rows, before = [], None
        for label, report in rungs:
            bench_of = report.get("baseline" if label.startswith("naive") else "bench", {})
            took = bench_of.get("median_ms")
            rows.append([label, took and took * 1e3, bench_of.get("gbps"), (before / took - 1) * 100 if before and took else None])
            before = took or before
        result.tables.append(Table(["step", "us", "GB/s", "gain of the step in %"], rows, title))
        result.plots.append(plots.bars(bench.folder / f"serving-{batch}.png", f"{bench.device}: {title}", "GB/s",
                                       [row[0] for row in rows], [row[2] for row in rows]))
        result.notes += notes
    prompts, tokens, keys, dim = (2, 128, 2048, 128) if bench.gpu else (1, 8, 128, 64)
    heads = problems[0][1]
    times, notes = mixed(bench, prompts, tokens, keys, heads, kv_heads, dim, dtype)
    larger = max((times[name] or 0 for name in ("prompts", "tokens")), default=0)
    rows = [[name, took and took * 1e3, divide(took, larger)] for name, took in times.items()]
    result.tables.append(Table(["in the call", "us", "of the larger part"], rows,
                               f"{prompts} prompt{'s' * (prompts > 1)} of {keys} and {tokens} tokens with {keys} keys, pages of {PAGES[0]}"))
    result.plots.append(plots.bars(bench.folder / "serving-mixed.png", f"{bench.device}: prompts and tokens", "us",
                                   [row[0] for row in rows], [row[1] for row in rows]))
    result.notes += notes
    return result
