"""What context parallel attention takes on many ranks, by arithmetic from measured rates.

    python context_parallel_model.py --tflops 640 520 --host-gb-per-s 250 --network-gb-per-s 45 [--ranks 8 64 512]

`--tflops` are the rates of the forward and of the backward kernel on one GPU, `--host-gb-per-s` what a GPU receives
from others of its host, `--network-gb-per-s` what it receives from other hosts, each as measured; there are no others.
The bytes, the pairs of queries and keys and the groups of heads are what `flash_mlir.distributed.explain` says, for
copies where all ranks are on one host. A rank computes a group of heads while the next one is sent; the slowest rank
counts, as if it had all bytes of the one that receives most. What is left out: launches, the ends of kernels on few tiles, the share of the memory's rate that
transfers take, and waiting for ranks that are late. Lines of JSON.
"""

import argparse
import json
import sys

import flash_mlir as flash
from flash_mlir import distributed

MASKS = {
    "causal": flash.causal,
    "full": flash.full,
    "window": lambda: flash.causal() & flash.window(left=4095),
}


def count_pairs(name, tokens):
    """How many pairs of a query and a key a mask keeps."""
    if name == "window":
        width = min(4096, tokens)
        return width * (width + 1) // 2 + (tokens - width) * width
    return tokens * (tokens + 1) // 2 if name == "causal" else tokens * tokens


def run_pipeline(shares, transfer, compute, leaves):
    """Seconds of groups of heads of these shares: each is received, computed, and where `leaves` says so sent back,
    one after the other in each of three lines.
    """
    received = computed = sent = 0.0
    for share in shares:
        received += share * transfer
        computed = max(received, computed) + share * compute
        sent = max(computed, sent) + share * leaves
    return max(computed, sent)


def model(options, ranks, tokens, name):
    mask, (heads, key_heads) = MASKS[name](), map(int, options.heads.split("/"))
    shards = distributed.Shards(tokens, ranks)
    given = dict(mask=mask, way=options.way, memory=options.memory)
    found = distributed.explain(shards, heads, key_heads, options.dim, **given)
    if ranks <= options.host and found.way != "ring":
        given.update(exchange="copies")
        found = distributed.explain(shards, heads, key_heads, options.dim, **given)
    pairs = count_pairs(name, tokens)
    # A rank computes what its pairs are of all, which balanced shards have the same number of but for the edges of
    # ranges.
    share = max(found.pairs) / sum(found.pairs) * pairs
    rates = [rate * 1e12 for rate in options.tflops]
    compute = [flops * heads * options.dim * share / rate for flops, rate in zip((4, 10), rates)]
    one = sum(flops * heads * options.dim * pairs / rate for flops, rate in zip((4, 10), rates))
    # Of others' rows, so many come from the same host.
    inside = min(options.host, ranks) - 1
    outside = max(ranks - 1 - inside, 0)
    if found.way == "gather" and name == "window":
        # Neighbours have what a window needs; between hosts the edge crosses the network.
        inside, outside = (1, 0) if ranks <= options.host else (0, 1)

    def get_seconds(count):
        total = max(inside + outside, 1)
        return max(count * inside / total / options.host_rate, count * outside / total / options.network_rate) * 1e-9

    forward, backward = get_seconds(found.forward_bytes), get_seconds(found.backward_bytes - found.forward_bytes)
    shares = [group / sum(found.head_groups) for group in found.head_groups]
    if found.way == "heads" and found.exchange == "messages":
        seconds = sum(compute) + forward + get_seconds(found.backward_bytes)
    elif found.way == "heads":
        # The last quarter of the forward pass, and three eighths of the backward pass, are results.
        passes = zip(compute, (forward, get_seconds(found.backward_bytes)), (1 / 4, 3 / 8))
        seconds = sum(run_pipeline(shares, moved * (1 - out), each, moved * out) for each, moved, out in passes)
    else:
        seconds = run_pipeline(shares, forward, compute[0], 0.0) + run_pipeline(shares, forward, compute[1], backward)
    return dict(
        ranks=ranks,
        tokens=tokens,
        mask=name,
        way=found.way,
        exchange=found.exchange,
        head_groups=list(found.head_groups),
        received_mib=round((found.forward_bytes + found.backward_bytes) / 2**20, 1),
        memory_mib=round(found.memory / 2**20, 1),
        uneven=round(max(found.pairs) * ranks / sum(found.pairs), 3),
        ms=round(seconds * 1e3, 3),
        times_one=round(one / seconds, 2),
        of_ranks=round(one / seconds / ranks, 3),
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tflops", type=float, nargs=2, required=True, metavar=("FORWARD", "BACKWARD"))
    parser.add_argument("--host-gb-per-s", dest="host_rate", type=float, required=True)
    parser.add_argument("--network-gb-per-s", dest="network_rate", type=float, required=True)
    parser.add_argument("--host", type=int, default=8, help="how many GPUs a host has")
    parser.add_argument("--ranks", type=int, nargs="+", default=[8, 64, 512])
    parser.add_argument("--tokens", type=int, nargs="+", default=[1 << 17, 1 << 19, 1 << 20])
    parser.add_argument("--heads", default="64/8", help="heads of queries and of keys")
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--masks", nargs="+", default=["causal", "window"], choices=[*MASKS])
    parser.add_argument("--way", choices=["gather", "heads", "ring"])
    parser.add_argument("--memory", type=int, help="bytes that a rank may hold of others' rows")
    options = parser.parse_args()
    for name in options.masks:
        for tokens in options.tokens:
            for ranks in options.ranks:
                print(json.dumps(model(options, ranks, tokens, name)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
