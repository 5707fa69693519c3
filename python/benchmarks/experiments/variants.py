"""Masks, score functions and grouped heads, beside FlexAttention."""
import numpy
import peers as peers_module
import plots
import programs
from flash import Case, milliseconds
from results import Result, Table, faults


def variants(window, prefix, document):
    """Name: mask in MLIR, mask for the oracle, score function."""
    return {
        "full": (None, "full", None),
        "causal": (programs.CAUSAL, "causal", None),
        f"window of {window}": (programs.window(window - 1), f"window:{window - 1}", None),
        "softcap": (None, "full", "softcap"),
        "ALiBi, causal": (programs.CAUSAL, "causal", "alibi"),
        f"prefix of {prefix}": (programs.prefix(prefix), f"prefix:{prefix}", None),
        f"documents of {document}": (programs.documents(document), f"documents:{document}", None),
    }


class Flex:
    """FlexAttention, compiled."""

    def __init__(self, bench):
        torch = peers_module.torch
        torch._dynamo.config.cache_size_limit = 10000
        if hasattr(torch._dynamo.config, "recompile_limit"):
            torch._dynamo.config.recompile_limit = 10000
        from torch.nn.attention import flex_attention
        self.module, self.bench = flex_attention, bench
        self.call = torch.compile(flex_attention.flex_attention, dynamic=False)

    def mask(self, kind):
        name, _, size = kind.partition(":")
        size = int(size or 0)
        return {
            "full": None,
            "causal": lambda b, h, i, j: i >= j,
            "window": lambda b, h, i, j: (i >= j) & (i - j <= size),
            "prefix": lambda b, h, i, j: (i >= j) | (j < size),
            "documents": lambda b, h, i, j: (i >= j) & (i // size == j // size),
        }[name]

    def time(self, name, tensors, kind, score, slopes):
        torch = peers_module.torch
        try:
            mask, block = self.mask(kind), None
            if mask:
                length = tensors[0].shape[2]
                block = self.module.create_block_mask(mask, None, None, length, length, device=tensors[0].device)
            modify = None
            if score == "softcap":
                def modify(s, b, h, i, j):
                    return 20 * torch.tanh(s / 20)
            elif score == "alibi":
                def modify(s, b, h, i, j):
                    return s + slopes[h] * (j - i)
            grouped = tensors[0].shape[1] != tensors[1].shape[1]
        except Exception as error:
            self.bench.say(f"  FlexAttention, {name}: {error}")
            return None
        return self.bench.peers.time("FlexAttention, " + name, lambda: self.call(
            *tensors, score_mod=modify, block_mask=block, enable_gqa=grouped))


def measure(bench, flex, dtype, shape, kinds, kv_heads=None):
    """A row for each kind."""
    arrays = bench.flash.arrays.qkv(shape, dtype, kv_heads)
    heads = shape[1]
    slopes = (2.0 ** (-8.0 * numpy.arange(1, heads + 1) / heads)).astype("float32")
    tag = f"{shape[3]}_{kv_heads or heads}"
    cases = {name: Case(f"variant_{tag}_{index}", programs.attention(shape, dtype, text, kv_heads, score), (),
                        arrays + ((slopes,) if score == "alibi" else ()), kind, score)
             for index, (name, (text, kind, score)) in enumerate(kinds.items())}
    reports = bench.flash.run(list(cases.values()))
    tensors = bench.peers.tensors(arrays) if bench.peers.here else None
    rows = []
    for name, (_, kind, score) in kinds.items():
        report = reports[cases[name].name]
        took, rate = milliseconds(report), bench.rate(report)
        others = []
        if tensors:
            flexible = flex and flex.time(name, tensors, kind, score, bench.peers.tensors([slopes])[0])
            others = [flexible]
            plain = kind in ("full", "causal") and not score
            options = {"enable_gqa": True} if kv_heads else {}
            for backend in ("FA2", "cuDNN") if bench.gpu else ():
                others.append(bench.peers.sdpa(backend, tensors, kind == "causal", **options) if plain else None)
        others += [None] * (3 - len(others))
        work = took and rate * took
        label = f"{heads} heads on {kv_heads}, {name}" if kv_heads else name
        rows.append([shape[3], label, took, rate, *[work / t if t and work else None for t in others],
                     others[0] / took if others[0] and took else None, report.get("deviation")])
    del tensors
    bench.peers.release()
    return rows, reports


def run(bench):
    if bench.gpu:
        dtype, length, kinds, dims, batch, hidden = "f16", 8192, variants(1024, 1024, 1024), (64, 128), 2, 2048
        grouped = (1, 64, 8192, 128)
    else:
        dtype, length, kinds, dims, batch, hidden = "f32", 1024, variants(256, 256, 256), (64,), 1, 256
        grouped = (1, 8, 512, 128)
    flex = None
    if bench.gpu and bench.peers.here:
        try:
            flex = Flex(bench)
        except Exception as error:
            bench.say(f"  no FlexAttention: {error}")
    result = Result(f"Variants, {dtype}, N = {length}, B = {batch}, {hidden} / D heads",
                    f"{bench.unit} of the products over unmasked pairs, equal for all; FlexAttention is compiled, its limit of "
                    "recompilations lifted, and gets a block mask.")
    rows = []
    for dim in dims:
        found, reports = measure(bench, flex, dtype, (batch, hidden // dim, length, dim), kinds)
        rows += found
        result.notes += faults(reports)
    simple = {name: kinds[name] for name in ("full", "causal")}
    found, reports = measure(bench, flex, dtype, grouped, simple, grouped[1] // 8)
    rows += found
    result.notes += faults(reports)
    result.tables.append(Table(["D", "variant", "ms", "flash-mlir", "FlexAttention", "FA2", "cuDNN", "times FlexAttention",
                                "deviation"], rows))
    result.plots.append(plots.grouped_bars(
        bench.folder / "variants.png", f"{bench.device}: {dtype}, N = {length}", bench.unit,
        [f"D={row[0]}\n{row[1]}" for row in rows],
        {name: [row[3 + index] for row in rows] for index, name in enumerate(("flash-mlir", "FlexAttention", "FA2", "cuDNN"))}))
    return result
