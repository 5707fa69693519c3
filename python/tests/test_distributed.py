"""flash_mlir.distributed, with two and four processes (distributed_ranks.py) that exchange rows by gloo."""

import json
import pathlib
import random
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import distributed_ranks  # noqa: E402

import flash_mlir as flash  # noqa: E402
from flash_mlir import distributed  # noqa: E402
from flash_mlir.distributed.local import Functions, Part  # noqa: E402

SCRIPT = pathlib.Path(__file__).parent / "distributed_ranks.py"
# Kernels are compiled for where pieces lie, so that four ranks take other ones; they run what depends on their number.
OF_FOUR = (
    "masks[causal] masks[sinks] masks[array] uneven[causal] ring[causal] heads[causal] heads[heads] heads_again packed[function] "
    "dtensors bits not_sent"
).split()


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Runs all cases once for a number of ranks."""
    done = {}

    def run(ranks, names):
        if ranks not in done:
            done[ranks] = start(tmp_path_factory.mktemp(f"ranks{ranks}"), ranks, names)
        return done[ranks]

    return run


def start(folder, ranks, names):
    processes = []
    for rank in range(ranks):
        command = [sys.executable, SCRIPT, str(rank), str(ranks), str(folder / "address"), str(folder), ",".join(names)]
        with open(folder / f"log{rank}", "w") as log:
            processes.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log))
    for rank, process in enumerate(processes):
        assert process.wait(timeout=900) == 0, (folder / f"log{rank}").read_text()
    return json.loads((folder / "0").read_text())


@pytest.mark.parametrize("name", distributed_ranks.CASES)
def test_two(results, name):
    failure = results(2, distributed_ranks.CASES)[name]
    assert failure is None, failure


@pytest.mark.parametrize("name", OF_FOUR)
def test_four(results, name):
    failure = results(4, OF_FOUR)[name]
    assert failure is None, failure


def test_ranks_end_with_their_parent(tmp_path):
    """A rank that waits for another one ends when the pipe of its input has no writer any more, without an exception."""
    command = [sys.executable, SCRIPT, "0", "2", tmp_path / "address", tmp_path, "bits"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr


LOSS = """
import datetime, os, sys, time
import torch, torch.distributed as dist
from flash_mlir import Error, distributed
address, rank, how, exchange = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
dist.init_process_group("gloo", f"file://{address}", timeout=datetime.timedelta(seconds=4), rank=rank, world_size=2)
query = torch.randn(1, 1, 32, 8)
distributed.attention(query, query, query, exchange=exchange)
if rank == 1:
    if how == "sleeps":
        time.sleep(12)
    os._exit(0)
start = time.time()
try:
    distributed.attention(query, query, query, exchange=exchange)
except Error as error:
    print(error)
    print("after", time.time() - start)
os._exit(0)
"""


@pytest.mark.parametrize("how, exchange", [("ends", "messages"), ("sleeps", "messages"), ("sleeps", "copies")])
def test_lost_rank(tmp_path, how, exchange):
    """A rank that ends, or that takes no part, ends the others with a message within the group's timeout."""
    command = [sys.executable, "-c", LOSS, str(tmp_path / "address")]
    other = subprocess.Popen([*command, "1", how, exchange])
    done = subprocess.run([*command, "0", how, exchange], capture_output=True, text=True, timeout=300)
    other.wait()
    assert "rank 0 cannot exchange rows with the ranks 1 of its group: one of them has ended" in done.stdout, (
        done.stdout + done.stderr
    )
    assert float(done.stdout.split("after ")[1]) < 10


def test_no_group():
    with pytest.raises(RuntimeError, match="there is no process group"):
        distributed.attention(QUERY, KEY, KEY)


@pytest.fixture(scope="module")
def group(tmp_path_factory):
    """A group of this process."""
    torch.distributed.init_process_group(
        "gloo", f"file://{tmp_path_factory.mktemp('group') / 'address'}", rank=0, world_size=1
    )
    yield torch.distributed.group.WORLD
    torch.distributed.destroy_process_group()


def test_shards():
    shards = distributed.Shards(91, 4)
    assert sorted(position for rank in range(4) for position in shards.positions(rank).tolist()) == list(range(91))
    assert shards.pieces[3] == ((34, 56),) and len(shards.pieces[0]) == 2
    assert max(map(shards.count, range(4))) - min(map(shards.count, range(4))) <= 2
    assert distributed.Shards(91, 4, "contiguous").pieces == (((0, 22),), ((22, 45),), ((45, 68),), ((68, 91),))
    assert shards == distributed.Shards(91, 4, shards.pieces) and hash(shards) == hash(distributed.Shards(91, 4))
    assert distributed.Shards(0, 2).pieces == ((), ())


@pytest.mark.parametrize("length, ranks", [(32768, 2), (5000, 3), (16384, 8)])
@pytest.mark.parametrize("mask", [flash.causal(), flash.causal() & flash.window(left=700), flash.causal() | flash.prefix(900)])
def test_even_shards(length, ranks, mask):
    shards = distributed.Shards.even(length, ranks, mask)
    assert all(len(pieces) == 1 for pieces in shards.pieces)
    assert len({shards.count(rank) for rank in range(ranks)}) > 1
    pairs = distributed.explain(shards, 4, mask=mask).pairs
    assert max(pairs) < 1.05 * min(pairs)


def test_even_shards_of_unknown_masks():
    contiguous = distributed.Shards(99, 3, "contiguous")
    nothing = lambda b, h, q, k: q < 0
    for mask in (None, nothing, flash.documents(torch.zeros(99, dtype=torch.int32))):
        assert distributed.Shards.even(99, 3, mask) == contiguous
    assert distributed.Shards.even(0, 3, flash.causal()).pieces == ((), (), ())
    assert sum(map(distributed.Shards.even(1, 3, flash.causal()).count, range(3))) == 1


@pytest.mark.parametrize(
    "arguments, message",
    [
        ((-1, 2), "length is -1; it must not be negative"),
        ((8, 0), "ranks is 0; there must be at least one"),
        ((8, 2, "striped"), "layout is 'striped'; expected 'balanced', 'contiguous' or a list"),
        ((8, 2, [[(0, 8)]]), "layout has the pieces of 1 ranks; expected 2"),
        ((8, 2, [[(0, 4)], [(5, 8)]]), "position 4 belongs to no rank"),
        ((8, 2, [[(0, 4)], [(3, 8)]]), "position 3 belongs to two ranks"),
        ((8, 2, [[(0, 4)], [(4, 7)]]), "the pieces end at 7; expected 8, the length"),
        ((8, 1, [[(5, 4), (0, 8)]]), "layout has the piece (5, 4); expected 0 <= start <= stop"),
    ],
)
def test_shards_errors(arguments, message):
    with pytest.raises(ValueError) as caught:
        distributed.Shards(*arguments)
    assert message in str(caught.value)
    with pytest.raises(TypeError, match="expected for each rank a list of pieces"):
        distributed.Shards(8, 2, [1, 2])


QUERY = torch.zeros(1, 4, 32, 8)
KEY = torch.zeros(1, 2, 32, 8)
BAD = [
    ((np.zeros((1, 4, 32, 8)), KEY, KEY), {}, TypeError, "query is a ndarray; expected a tensor of PyTorch"),
    ((QUERY, KEY[0], KEY), {}, ValueError, "expected (batch, heads, rows, D), or all of them without the batch"),
    ((QUERY, KEY.half(), KEY), {}, TypeError, "key has the dtype torch.float16, and query torch.float32"),
    ((QUERY, KEY.to("meta"), KEY), {}, ValueError, "key is on meta, and query on cpu"),
    ((QUERY, KEY, KEY[:, :, 1:]), {}, ValueError, "all but the last dimension must agree"),
    ((QUERY, KEY[..., :4], KEY), {}, ValueError, "key has the head dimension 4; expected 8"),
    (
        (QUERY, KEY.expand(2, -1, -1, -1), KEY.expand(2, -1, -1, -1)),
        {},
        ValueError,
        "key has the batch size 2; expected 1",
    ),
    ((QUERY, QUERY[:, :3], QUERY[:, :3]), {}, ValueError, "query has 4 heads and key 3"),
    ((QUERY, KEY, KEY), {"mask": 3}, TypeError, "mask is a int; expected a Mask or a function"),
    ((QUERY, KEY, KEY), {"score": 3}, TypeError, "score is a int; expected a function"),
    ((QUERY, KEY, KEY), {"scale": "x"}, TypeError, "scale is a str"),
    ((QUERY, KEY, KEY), {"group": 3}, TypeError, "group is a int; expected a group of torch.distributed"),
    ((QUERY, KEY, KEY), {"shards": 3}, TypeError, "shards is a int; expected flash_mlir.distributed.Shards"),
    (
        (QUERY, KEY, KEY),
        {"shards": distributed.Shards(64, 2)},
        ValueError,
        "shards is for 2 ranks, and the group has 1",
    ),
    (
        (QUERY, KEY, KEY),
        {"shards": distributed.Shards(64, 1)},
        ValueError,
        "a tensor has 32 rows on rank 0, where shards has 64",
    ),
    (
        (QUERY, KEY, KEY),
        {"way": "star"},
        ValueError,
        "way is 'star'; expected one of 'gather', 'heads', 'ring', or None",
    ),
    (
        (QUERY, KEY, KEY),
        {"way": "ring", "same_bits": True},
        ValueError,
        "the same bits for any number of ranks have gathered keys alone",
    ),
    ((QUERY, KEY, KEY), {"head_groups": 0}, ValueError, "head_groups is 0; it must be at least 1"),
    (
        (QUERY, KEY, KEY),
        {"head_groups": (1, 2)},
        ValueError,
        "head_groups is (1, 2); expected positive sizes of groups of 2 heads",
    ),
    ((QUERY, KEY, KEY), {"exchange": "post"}, ValueError, "exchange is 'post'; expected one of 'copies', 'messages'"),
    (
        (QUERY, KEY, KEY),
        {"exchange": "copies", "way": "ring"},
        ValueError,
        "exchange is 'copies', and the way is 'ring', in which ranks send messages",
    ),
    ((QUERY, KEY, KEY), {"ahead": -1}, ValueError, "ahead is -1; it must be at least 0"),
    ((QUERY, KEY, KEY), {"schedule": "tile=3"}, ValueError, "tile"),
    ((QUERY, KEY, KEY), {"sink": torch.zeros(3)}, ValueError, "sink is (3,); expected a tensor of shape (4,)"),
    (
        (QUERY, KEY, KEY),
        {"lengths": torch.zeros(3)},
        ValueError,
        "lengths have the shape (3,); expected one for each batch",
    ),
    (
        (QUERY, KEY, KEY),
        {"lengths": torch.zeros(1)},
        TypeError,
        "lengths have the dtype torch.float32; expected integers",
    ),
    (
        (QUERY, KEY, KEY),
        {"lengths": torch.ones(1).long(), "mask": flash.key_lengths(np.array([3]))},
        ValueError,
        "lengths are given twice",
    ),
    (
        (QUERY, KEY, KEY),
        {"offsets": torch.tensor([0, 32])},
        ValueError,
        "expected (rows, heads, D), as offsets are given",
    ),
]
ROWS = QUERY[0].transpose(0, 1), KEY[0].transpose(0, 1), KEY[0].transpose(0, 1)
BAD += [
    (ROWS, {"offsets": torch.tensor([0, 40])}, ValueError, "offsets end at 40, and the ranks have 32 rows"),
    (ROWS, {"offsets": torch.tensor([0, 20, 10])}, ValueError, "offsets decrease, or are negative"),
    (ROWS, {"offsets": torch.tensor([0.0, 20])}, TypeError, "float32; expected int32 or int64"),
    (ROWS, {"offsets": torch.tensor([0, 20]), "way": "ring"}, ValueError, "packed rows are gathered"),
    (
        ROWS,
        {"offsets": torch.tensor([0, 20]), "lengths": torch.ones(1).long()},
        ValueError,
        "lengths and offsets are given",
    ),
    (
        ROWS,
        {"offsets": torch.tensor([0, 20]), "memory": 1},
        ValueError,
        "and packed rows and same_bits=True have no ring",
    ),
]


@pytest.mark.parametrize("arguments, options, kind, message", BAD, ids=range(len(BAD)))
def test_errors(group, arguments, options, kind, message):
    with pytest.raises(kind) as caught:
        distributed.attention(*arguments, **options)
    assert message in str(caught.value)


def test_more_errors(group):
    with pytest.raises(ValueError, match="mask is a Plan, and no plan is of parts"):
        distributed.attention(QUERY, KEY, KEY, mask=flash.plan(flash.causal(), QUERY, KEY))
    with pytest.raises(ValueError, match="this process does not belong to the group"):
        distributed.attention(QUERY, KEY, KEY, group=torch.distributed.GroupMember.NON_GROUP_MEMBER)
    with flash.checks(), pytest.raises(ValueError, match="lengths has 33 for batch 0, and there are 32 keys"):
        distributed.decode(QUERY, KEY, KEY, torch.tensor([33]).int())
    with pytest.raises(NotImplementedError, match="unshard has no gradients"):
        distributed.unshard(QUERY.clone().requires_grad_())
    with pytest.raises(ValueError, match="x has size 32 in dimension -2, and shards are of 64 positions"):
        distributed.shard(QUERY, shards=distributed.Shards(64, 1))
    with pytest.raises(ValueError, match="shards is for 2 ranks, and the group has 1"):
        distributed.shard(QUERY, shards=distributed.Shards(32, 2))
    with pytest.raises(TypeError, match="shards is a list"):
        distributed.shard(QUERY, shards=[])
    query = QUERY.clone().requires_grad_()
    (grad,) = torch.autograd.grad(distributed.attention(query, KEY, KEY).sum(), query, retain_graph=True)
    with pytest.raises(NotImplementedError, match="attention has no second derivative"):
        torch.autograd.grad(distributed.attention(query, KEY, KEY).sum(), query, create_graph=True)
    with pytest.raises(TypeError, match="lengths is a int; expected an array of int32"):
        distributed.decode(QUERY, KEY, KEY, 3)
    with pytest.raises(ValueError, match="interleave is 0; it must be at least 1"):
        distributed.decode(QUERY, KEY, KEY, torch.ones(1).int(), interleave=0)
    with pytest.raises(ValueError, match="query and key have 3 and 4 dimensions; expected 4"):
        distributed.decode(QUERY[0], KEY, KEY, torch.ones(1).int())
    with pytest.raises(ValueError, match="mask is a Plan"):
        distributed.decode(QUERY, KEY, KEY, torch.ones(1).int(), mask=flash.plan(flash.causal(), QUERY, KEY))
    with pytest.raises(ValueError, match="lengths are given twice"):
        distributed.decode(QUERY, KEY, KEY, torch.ones(1).int(), mask=flash.key_lengths(np.array([3])))


def test_one_rank(group):
    """One rank computes what `attention` does."""
    query, key, value = (torch.randn(1, heads, 40, 16) for heads in (4, 2, 2))
    for mask in (None, flash.causal()):
        torch.testing.assert_close(
            distributed.attention(query, key, value, mask=mask), flash.attention(query, key, value, mask=mask)
        )


def test_explain():
    """The way, the bytes and the work of a call, by arithmetic."""
    causal, shards = flash.causal(), distributed.Shards(1 << 15, 2)
    found = distributed.explain(shards, 64, mask=causal)
    row = 64 * 256 * 2
    # Rank 0 has the first and the last quarter, and needs the half between; rank 1 needs no key of the last quarter.
    assert found.way == "gather" and found.keys == (((0, 1 << 15),), ((0, 3 << 13),))
    assert found.forward_bytes == (1 << 14) * row
    # Gradients of the keys of rank 1 come from rank 0.
    assert found.backward_bytes == 2 * (1 << 14) * row
    assert found.pairs[0] == pytest.approx(found.pairs[1], rel=0.02) and sum(found.pairs) == pytest.approx(
        2.0**29 / 1e6, rel=0.03
    )
    assert found.head_groups == (8,) * 8
    four = distributed.explain(distributed.Shards(1 << 15, 4), 64, mask=causal)
    assert four.way == "heads" and four.forward_bytes < (3 << 13) * row
    assert distributed.explain(distributed.Shards(1 << 15, 4), 64, 8, mask=causal).way == "gather"
    many = distributed.explain(distributed.Shards(1 << 17, 16), 64, mask=causal)
    assert many.way == "heads" and "keys, values and their gradients alone would be" in many.why and "16" not in many.way
    grouped = distributed.explain(distributed.Shards(1 << 17, 16), 64, 8, mask=causal, head_groups=2)
    assert grouped.way == "gather"
    less = distributed.explain(distributed.Shards(1 << 17, 16), 64, 8, mask=causal, head_groups=2, memory=1 << 28)
    assert less.way == "gather" and len(less.head_groups) > len(grouped.head_groups) == 2 and less.memory <= 1 << 28
    ring = distributed.explain(distributed.Shards(1 << 17, 16), 64, 8, mask=causal, memory=1 << 26)
    assert ring.way == "ring" and "do not fit in memory=67108864" in ring.why and ring.memory <= 1 << 26
    with pytest.raises(ValueError, match="memory is 1024, and an exchange of heads needs"):
        distributed.explain(distributed.Shards(1 << 17, 8), 64, 8, way="heads", memory=1 << 10)
    with pytest.raises(ValueError, match="memory is 1024, and a ring of one head of keys at a time needs"):
        distributed.explain(distributed.Shards(1 << 17, 16), 64, 8, mask=causal, memory=1 << 10)
    window = distributed.explain(distributed.Shards(1 << 17, 64), 64, 8, mask=causal & flash.window(left=4095))
    assert window.way == "gather" and window.forward_bytes <= 2 * 4095 * 8 * 256 * 2
    text = str(window)
    assert "gather: a rank receives up to" in text and "rank 63: keys" in text
    copies = distributed.explain(shards, 64, mask=causal, way="gather", exchange="copies")
    # Each rank shares its own rows of 3/4 or all positions, and gradients of its own that the other sends.
    assert copies.exchange == "copies" and copies.head_groups == (8, 48, 8) and copies.ahead == 2
    assert copies.memory == (1 << 15) * row + (1 << 14) * row and found.exchange == "messages"
    assert (copies.forward_bytes, copies.backward_bytes) == (found.forward_bytes, found.backward_bytes)
    assert distributed.explain(shards, 64, 8, mask=causal, exchange="copies").head_groups == (8,)
    assert distributed.explain(shards, 64, 8, batch=2, mask=causal, exchange="copies").head_groups == (8,)
    exchanged = distributed.explain(shards, 64, mask=causal, exchange="copies")
    # By copies heads are exchanged where a rank receives no more than in a gather: a quarter of each array, four of them
    # in the forward pass and eight in the backward pass.
    quarter = (1 << 14) * 32 * 128 * 2
    assert exchanged.way == "heads" and exchanged.head_groups == (4, 24, 4) and exchanged.ahead == 2
    assert (exchanged.forward_bytes, exchanged.backward_bytes) == (4 * quarter, 8 * quarter)
    # Five arrays of a rank's heads, and their log-sum-exps.
    assert exchanged.exchange == "copies" and exchanged.memory == 10 * quarter + (1 << 15) * 32 * 4
    long = distributed.explain(distributed.Shards(1 << 17, 4), 64, mask=causal, exchange="copies")
    assert long.way == "gather" and distributed.explain(distributed.Shards(1 << 16, 4), 64, mask=causal, exchange="copies").way == "heads"
    kept = distributed.explain(shards, 64, mask=causal, way="heads")
    assert (kept.exchange, kept.head_groups, kept.backward_bytes) == ("messages", (32,), 4 * quarter)
    given = distributed.explain(shards, 64, mask=causal, way="heads", head_groups=(8, 24), exchange="copies")
    assert given.head_groups == (8, 24)
    with pytest.raises(ValueError, match="expected positive sizes of groups of 32 heads of keys"):
        distributed.explain(shards, 64, mask=causal, way="heads", head_groups=(8, 48, 8))
    assert distributed.explain(shards, 64, 8, mask=causal, exchange="copies").way == "gather"
    contiguous = distributed.Shards(1 << 15, 2, "contiguous")
    window = causal & flash.window(left=4095)
    copies = distributed.explain(contiguous, 64, mask=window, exchange="copies")
    # Rank 0 has all keys that it needs, and shares what the other needs alone.
    assert copies.memory < ((1 << 14) + 2 * 4096) * row
    with pytest.raises(ValueError, match="each rank would share .* bytes; they can share 268435456"):
        distributed.explain(shards, 64, mask=causal, exchange="copies", memory=1 << 28)
    with pytest.raises(ValueError, match="8 heads of keys are no multiple of 16 ranks"):
        distributed.explain(distributed.Shards(1 << 17, 16), 64, 8, way="heads")
    with pytest.raises(ValueError, match="is not of whole 16ths of the sequence"):
        distributed.explain(distributed.Shards(96, 3), 64, same_bits=True)


@pytest.mark.parametrize("name", distributed_ranks.MASKS)
def test_ranges(name):
    """No key that a mask shows is left out, and what is computed is not much more."""
    make, keep = distributed_ranks.MASKS[name]
    if keep is None:
        return
    size, ranks = 96, 4
    shards = distributed.Shards(size, ranks)
    found = distributed.explain(shards, 4, mask=make())
    kept = (
        keep(0, torch.arange(4)[:, None, None], torch.arange(size)[:, None], torch.arange(size))
        .expand(4, size, size)
        .any(0)
    )
    for rank, ranges in enumerate(found.keys):
        seen = torch.zeros(size, dtype=torch.bool)
        for start, stop in ranges:
            seen[start:stop] = True
        assert not (kept[shards.positions(rank)].any(0) & ~seen).any()
    assert name not in ("causal", "window") or sum(found.pairs) * 1e6 < 2.2 * kept.sum()


def test_kernels_do_not_depend_on_places(group):
    """Pieces of a causal mask and of a window anywhere have one program, and so have functions of distances."""
    slopes = torch.ones(4)
    for mask, score in (
        (flash.causal() & flash.window(left=20), None),
        (lambda b, h, q, k: (k <= q) & (q - k < 30) & ((q - k) % 2 == 0), None),
        (flash.causal(), lambda s, b, h, q, k: s - slopes[h] * (q - k)),
    ):
        functions, configs = Functions(mask, score), set()
        for start in (64, 128, 192):
            part = Part((start, start + 64), (start - 32, start + 64), (1, 4, 256, 256))
            program = functions.get_program(part, None, False, False, (None, None), None)
            configs.add(program.config)
            assert all(isinstance(source, int) for source in program.sources)
        assert len(configs) == 1
    # Elsewhere what reads arrays reads the place, too.
    functions = Functions(None, lambda s, b, h, q, k: s + slopes[h] * (q % 7))
    programs = [
        functions.get_program(
            Part((start, start + 64), (0, 256), (1, 4, 256, 256)), None, False, False, (None, None), None
        )
        for start in (64, 128)
    ]
    assert programs[0].config == programs[1].config and "q" in programs[0].sources


class Draw:
    """Random masks and score functions, as text in which positions are q, k, h and b, and lengths nq and nk."""

    def __init__(self, seed):
        self._random = random.Random(seed)
        self.choose, self.draw = self._random.choice, self._random.randint

    def number(self, depth=2):
        if depth == 0 or self._random.random() < 0.25:
            return self.choose(
                ["q", "k", "q", "k", "h", "b", "nq", "nk", str(self.draw(-3, 40)), "array[q]", "array[k]"]
            )
        operation, left = self.choose("+ - - * // % minimum maximum abs".split()), self.number(depth - 1)
        if operation in ("*", "//", "%"):
            return f"({left} {operation} {self.draw(-3, 3) if operation == '*' else self.draw(1, 9)})"
        if operation == "abs":
            return f"abs({left})"
        right = self.number(depth - 1)
        return f"{operation}({left}, {right})" if operation[0] == "m" else f"({left} {operation} {right})"

    def condition(self, depth=2):
        if depth and self._random.random() < 0.7:
            return f"({self.condition(depth - 1)} {self.choose('&|^')} {self.condition(depth - 1)})"
        if self._random.random() < 0.35:
            return self.choose(["(k <= q)", "(k <= q + nk - nq)", "~(k < q - 13)", "(k < 7)", "(q - k < 20)"])
        return f"(q * 0 + {self.number()} {self.choose(['<', '<=', '>', '==', '!='])} {self.number()})"


@pytest.mark.parametrize("number", range(6))
def test_random_parts(number):
    """Random masks and scores, for pieces of queries and ranges of keys anywhere, are those of the whole."""
    seed = random.randrange(1 << 30)
    draw = Draw(seed)
    mask, score = draw.condition(), f"s + weights[h] * {draw.number()} * 0.05"
    array, weights = torch.randint(0, 5, (200,)), torch.rand(4)
    print(seed, mask, score)
    queries, keys = draw.choose([(64, 64), (97, 97), (40, 110)])
    names = dict(array=array, weights=weights)
    traced = dict(names, nq=flash.query_length, nk=flash.key_length, minimum=flash.minimum, maximum=flash.maximum)
    computed = dict(names, nq=torch.tensor(queries), nk=torch.tensor(keys))
    computed["minimum"], computed["maximum"] = (
        lambda x, y, f=f: f(torch.as_tensor(x), torch.as_tensor(y)) for f in (torch.minimum, torch.maximum)
    )
    keep, add = (eval(text, computed) for text in (f"lambda b, h, q, k: {mask}", f"lambda s, b, h, q, k: {score}"))
    functions = Functions(eval(f"lambda b, h, q, k: {mask}", traced), eval(f"lambda s, b, h, q, k: {score}", traced))
    b, h = torch.arange(2)[:, None, None, None], torch.arange(4)[:, None, None]
    q, k = torch.arange(queries)[:, None], torch.arange(keys)
    kept = keep(b, h, q, k).expand(2, 4, queries, keys)
    start = draw.draw(0, queries - 1)
    stop, first = draw.draw(start + 1, queries), draw.choose([0, 2])
    sizes = (2, 4, queries, keys)
    ranges = functions.find_keys((start, stop), sizes)
    seen = torch.zeros(keys, dtype=torch.bool)
    for low, high in ranges:
        seen[low:high] = True
    assert not (kept[:, :, start:stop].flatten(0, 2).any(0) & ~seen).any()
    for low, high in {*ranges[:1], (draw.draw(0, keys // 2), keys)}:
        part = Part((start, stop), (low, high), sizes, first, 2)
        program = functions.get_program(part, None, False, False, (None, None), None)
        query, key, value = (torch.randn(2, 2, count, 16) for count in (stop - start, high - low, high - low))
        captured = functions.get_captured(program, part, functions.arrays, query.device)
        output, lse = program.function.run(query, key, value, None, None, captured)
        places = b, h[first : first + 2], q[start:stop], k[low:high]
        expected, expected_lse = distributed_ranks.reference(
            *(each.double() for each in (query, key, value)),
            lambda *_: kept[:, first : first + 2, start:stop, low:high],
            lambda s, *_: add(s, *places),
        )
        torch.testing.assert_close(output.double(), expected, rtol=1e-3, atol=1e-3)
        torch.testing.assert_close(lse.double(), expected_lse, rtol=1e-3, atol=1e-3)
