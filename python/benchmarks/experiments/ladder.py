"""What each trick brings: the same program with one more switched on at a time."""
import plots
import programs
from flash import Case, milliseconds
from results import Result, Table, divide, faults

ROLES = "query_tile=128,key_tile=128,stages=2,query_stages=1,features=specialize_warps"
EARLY = ROLES.replace("query_stages=1", "query_stages=2") + "|overlap|lazy_rescale|ping_pong|persistent"
HOPPER = [("TMA and wgmma, warps with roles", ROLES), ("+ products and softmax overlap", ROLES + "|overlap"),
          ("+ rescaling only where needed", ROLES + "|overlap|lazy_rescale"),
          ("+ ping-pong of warpgroups", ROLES + "|overlap|lazy_rescale|ping_pong"),
          ("+ persistent blocks", ROLES + "|overlap|lazy_rescale|ping_pong|persistent"),
          ("+ next queries early", EARLY), ("+ results by bulk copies", EARLY + "|bulk_store")]
AMPERE = [("fused, tensor cores (mma.sync)", "query_tile=64,key_tile=64,stages=1,num_splits=1"),
          ("+ more warps share the keys", "query_tile=128,key_tile=64,stages=1,num_splits=1"),
          ("+ two stages of copies (cp.async)", "query_tile=128,key_tile=64,stages=2,num_splits=1")]
CPU = [("fused, small tiles, one thread", "query_tile=16,key_tile=32"),
       ("+ tiles for the cache", "query_tile=64,key_tile=64"),
       ("+ larger key tiles", "query_tile=64,key_tile=128"),
       ("+ larger query tiles", "query_tile=128,key_tile=128")]


# Of gradients: seven products by two programs, or five by one.
GRADIENTS = "products=5,features=specialize_warps|bulk_store"
HOPPER_GRADIENTS = [("TMA and wgmma, warps with roles", "products=7,features=specialize_warps"),
                    ("+ results by bulk copies", "products=7,features=specialize_warps|bulk_store"),
                    ("five products, blocks add to dQ in order", GRADIENTS),
                    ("+ products of dQ a step later", GRADIENTS + "|defer_products"),
                    ("+ blocks claim their tiles", GRADIENTS + "|defer_products|persistent")]
AMPERE_GRADIENTS = [("seven products, tensor cores (mma.sync)", "query_tile=32,key_tile=64,products=7")]
CPU_GRADIENTS = [("seven products, one thread", "products=7"), ("five products, one thread", "products=5")]


def climb(bench, name, text, steps, arrays=(), mask=None):
    """The label, milliseconds and rate of a naive program, of one with each of the schedules `steps`, and of the proposed one."""
    threads = () if bench.gpu else ("--threads=1",)
    cases = [Case(f"{name}_{index}", text, (f"--schedule={schedule}", *threads), arrays, mask)
             for index, (_, schedule) in enumerate(steps)]
    cases.append(Case(f"{name}_proposed", text, ("--baseline",), arrays, mask))
    reports = bench.flash.run(cases)
    proposed = reports[f"{name}_proposed"]
    naive = proposed.get("baseline", {}).get("median_ms")
    work = bench.rate(proposed) * proposed["bench"]["median_ms"] if "error" not in proposed else None
    rungs = [("naive: all scores in memory", naive, naive and work / naive)]
    for index, (label, _) in enumerate(steps):
        report = reports[f"{name}_{index}"]
        rungs.append((label, milliseconds(report), bench.rate(report)))
    label = "the schedule that is proposed" + ("" if bench.gpu else ", all threads")
    rungs.append((label, milliseconds(proposed), bench.rate(proposed)))
    return rungs, reports


def choose(bench, ampere, hopper, cpu):
    """The steps for the machine; kernels of the sm_80 kind come first also where the target is sm_90a."""
    if not bench.gpu:
        return cpu
    none = ",features=none" if bench.hopper else ""
    return [(label, schedule + none) for label, schedule in ampere] + (hopper if bench.hopper else [])


def report(bench, name, result, program, shape, dtype, steps, arrays=()):
    """Adds what is found with each mask; `program` gives the text, and with `arrays` results are checked."""
    for mask, text in programs.MASKS.items():
        rungs, reports = climb(bench, f"{name}_{mask}", program(shape, dtype, text), steps, arrays, mask)
        naive, before, rows = rungs[0][1], None, []
        for label, took, rate in rungs:
            rows.append([label, took, rate, divide(naive, took), (before / took - 1) * 100 if before and took else None])
            before = took or before
        result.tables.append(Table(["step", "ms", bench.unit, "times naive", "gain of the step in %"], rows, f"{mask} mask"))
        result.plots.append(plots.bars(bench.folder / f"{name}-{mask}.png",
                                       f"{bench.device}: {dtype}, {'x'.join(map(str, shape))}, {mask} mask", bench.unit,
                                       [row[0] for row in rows], [row[2] for row in rows],
                                       [f"({row[3]:.1f} times naive)" if row[3] else "" for row in rows]))
        result.notes += faults(reports)
    return result


def run(bench):
    shape, dtype = ((4, 16, 4096, 128), "f16") if bench.gpu else ((1, 4, 1024, 64), "f32")
    result = Result(f"The ladder, {dtype}, shape {'x'.join(map(str, shape))}",
                    "The same program; each step has what the one before has and one thing more.")
    return report(bench, "ladder", result, programs.attention, shape, dtype, choose(bench, AMPERE, HOPPER, CPU),
                  bench.flash.arrays.qkv(shape, dtype))


def run_gradients(bench):
    shape, dtype = ((4, 32, 4096, 64), "bf16") if bench.gpu else ((1, 4, 1024, 64), "f32")
    result = Result(f"The ladder of gradients, {dtype}, shape {'x'.join(map(str, shape))}",
                    "As the ladder, of the gradients of queries, keys and values; rates are those of five products.")
    return report(bench, "gradient-ladder", result, programs.gradients, shape, dtype,
                  choose(bench, AMPERE_GRADIENTS, HOPPER_GRADIENTS, CPU_GRADIENTS))
