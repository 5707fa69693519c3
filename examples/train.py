"""Trains a small GPT on this project's pages, with flash_mlir's attention and with PyTorch's.

    python train.py                              on the GPU if there is one
    python train.py --device cpu --steps 20 --layers 1 --dim 64 --heads 2 --rows 512 --length 128
    python train.py --ranks 2 --rows 131072 --length 65536      on two GPUs, beside one

A batch is documents of different lengths, packed one behind the other without padding: all layers
compute rows, and attention takes the offsets of the documents (flash_attn_varlen_func), ALiBi's slopes
and a learned sink for each head. PyTorch's scaled_dot_product_attention takes documents that are padded,
and the rest as a matrix of the scores' size. The script trains twice with
the former and once with the latter, from the same start and with the same batches. It
fails if the first two differ in any bit of a loss or a parameter, or if the losses of the last two
do not agree.

With --ranks, as many processes share the rows of each batch (flash_mlir.distributed), each with its part of them
on a GPU of its own, or all on the CPU. Their losses are compared with those of one process that has all rows.
"""

import argparse
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

# What PyTorch asks for to be deterministic itself, before it starts CUDA.
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional

import flash_mlir as flash
from flash_mlir import distributed

CHARACTERS = 256  # Bytes are the tokens.


class Batch(NamedTuple):
    """Documents behind each other: their tokens, what follows each, and the offsets of documents in these rows."""

    tokens: torch.Tensor
    targets: torch.Tensor
    offsets: torch.Tensor
    lengths: list
    shards: distributed.Shards = None  # Of which rank which rows are, where each has some.

    def cut(self, rank, ranks):
        """The rows of a rank, with the offsets of all on the host, where it is known then which keys need not be sent."""
        shards = distributed.Shards(len(self.tokens), ranks)
        here = shards.positions(rank, self.tokens.device)
        return Batch(self.tokens[here], self.targets[here], self.offsets.cpu(), self.lengths, shards)


class Batches:
    """Batches of documents, as bytes, from the pages of this project."""

    def __init__(self, options):
        root = pathlib.Path(__file__).resolve().parents[1]
        pages = sorted(root.glob("docs/**/*.md")) + [root / "README.md"]
        self.pages = [torch.frombuffer(bytearray(page.read_bytes()), dtype=torch.uint8) for page in pages]
        self.options = options

    def make(self, step):
        """The `Batch` of a step: as many documents as fill its rows, nothing in between, and the last one is cut."""
        generator = torch.Generator().manual_seed(step)
        rows, length, device = self.options.rows, self.options.length, self.options.device
        parts, lengths = [], []

        def draw(end):
            return int(torch.randint(end, (), generator=generator))

        while sum(lengths) < rows:
            page = self.pages[draw(len(self.pages))]
            count = min(length // 8 + draw(length), len(page) - 1, rows - sum(lengths))
            first = draw(len(page) - count)
            parts.append(page[first : first + count + 1].long())
            lengths.append(count)
        offsets = functional.pad(torch.tensor(lengths).cumsum(0), (1, 0)).int()
        tokens, targets = (torch.cat([part[place] for part in parts]) for place in (slice(-1), slice(1, None)))
        return Batch(tokens.to(device), targets.to(device), offsets.to(device), lengths)


def attend_to_padded(query, key, value, lengths, slopes, sink):
    """What PyTorch's attention makes of the same rows: documents are padded to the longest one, and the mask is a matrix."""
    parts = [nn.utils.rnn.pad_sequence(array.split(lengths), batch_first=True).transpose(1, 2) for array in (query, key, value)]
    position = torch.arange(parts[0].shape[2], device=query.device)
    distance = position[:, None] - position
    mask = (-slopes[:, None, None] * distance).masked_fill(distance < 0, -math.inf)
    # The sink is a key of zeros, before the others, with a value of zeros.
    mask = torch.cat([sink[:, None, None].expand(-1, len(position), 1), mask], -1)
    key, value = (functional.pad(array, (0, 0, 1, 0)) for array in parts[1:])
    result = functional.scaled_dot_product_attention(parts[0], key, value, mask.to(query.dtype)).transpose(1, 2)
    return torch.cat([rows[:length] for rows, length in zip(result, lengths)])


class Attention(nn.Module):
    """Attention to the bytes before in the same document, with ALiBi and a learned sink for each head."""

    def __init__(self, options, with_flash):
        super().__init__()
        self.heads, self.with_flash = options.heads, with_flash
        self.project = nn.Linear(options.dim, 3 * options.dim)
        self.out = nn.Linear(options.dim, options.dim)
        self.sink = nn.Parameter(torch.zeros(options.heads))
        slopes = torch.exp2(-8 * torch.arange(1.0, options.heads + 1) / options.heads)
        self.register_buffer("slopes", slopes, persistent=False)

    def forward(self, x, batch):
        rows, dim = x.shape
        query, key, value = self.project(x).view(rows, 3, self.heads, dim // self.heads).unbind(1)
        if batch.shards is not None:
            slopes = self.slopes
            result = distributed.attention(
                *(query, key, value),
                mask=flash.causal(),
                score=lambda s, b, h, q, k: s - slopes[h] * (q - k),
                sink=self.sink,
                offsets=batch.offsets,
                shards=batch.shards,
            )
        elif self.with_flash:
            result = flash.flash_attn_varlen_func(
                *(query, key, value, batch.offsets, batch.offsets),
                causal=True,
                alibi_slopes=self.slopes,
                learnable_sink=self.sink,
            )
        else:
            result = attend_to_padded(query, key, value, batch.lengths, self.slopes, self.sink)
        return self.out(result.reshape(rows, dim))


class Layer(nn.Module):
    def __init__(self, *arguments):
        super().__init__()
        dim = arguments[0].dim
        self.before_attention, self.before_network = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attention = Attention(*arguments)
        self.network = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x, batch):
        x = x + self.attention(self.before_attention(x), batch)
        return x + self.network(self.before_network(x))


class Model(nn.Module):
    def __init__(self, options, with_flash):
        super().__init__()
        self.embedding = nn.Embedding(CHARACTERS, options.dim)
        self.layers = nn.ModuleList([Layer(options, with_flash) for _ in range(options.layers)])
        self.norm = nn.LayerNorm(options.dim)
        self.head = nn.Linear(options.dim, CHARACTERS)

    def forward(self, batch):
        """The loss."""
        x = self.embedding(batch.tokens)
        for layer in self.layers:
            x = layer(x, batch)
        losses = functional.cross_entropy(self.head(self.norm(x)).float(), batch.targets, reduction="sum")
        # A rank's losses are a part of the mean.
        return losses / sum(batch.lengths)


def train(options, with_flash, ranks=1):
    """Returns the losses, the parameters and the tokens of a second; `ranks` processes share each batch."""
    # PyTorch's attention with a matrix of biases has no deterministic gradients on every device.
    torch.use_deterministic_algorithms(with_flash)
    torch.manual_seed(0)
    model = Model(options, with_flash).to(options.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.rate)
    batches, losses, warm_up, start = Batches(options), [], min(3, options.steps // 2), 0.0
    made = [batches.make(step) for step in range(options.steps)]
    if ranks > 1:
        made = [batch.cut(dist.get_rank(), ranks) for batch in made]
    for step, batch in enumerate(made):
        if step == warm_up:
            if options.device == "cuda":
                torch.cuda.synchronize()
            start = time.perf_counter()
        with torch.autocast(options.device, dtype=torch.bfloat16, enabled=options.bf16):
            loss = model(batch)
        optimizer.zero_grad()
        loss.backward()
        loss = loss.detach()
        if ranks > 1:
            # Each rank has the gradients of its own rows' losses.
            for part in (loss, *(parameter.grad for parameter in model.parameters())):
                dist.all_reduce(part)
        optimizer.step()
        losses.append(loss)
    losses = torch.stack(losses).cpu()
    seconds = time.perf_counter() - start
    rate = (options.steps - warm_up) * options.rows / seconds
    return losses, [parameter.detach().cpu() for parameter in model.parameters()], rate


def work(options):
    """One process of several, of which the first one leaves the losses in a file."""
    if options.device == "cuda":
        torch.cuda.set_device(options.rank)
    backend = "nccl" if options.device == "cuda" else "gloo"
    dist.init_process_group(backend, f"file://{options.folder}/address", rank=options.rank, world_size=options.ranks)
    losses, _, rate = train(options, True, options.ranks)
    if options.rank == 0:
        torch.save((losses, rate), f"{options.folder}/losses")
    dist.destroy_process_group()
    return 0


def compare_ranks(options):
    """Trains with several processes, and with one."""
    one, _, one_rate = train(options, with_flash=True)
    if options.device == "cuda":
        torch.cuda.empty_cache()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, os.path.abspath(__file__), *sys.argv[1:], "--folder", folder]
        processes = [subprocess.Popen([*command, "--rank", str(rank)]) for rank in range(options.ranks)]
        if any([process.wait() for process in processes]):
            return 1
        losses, rate = torch.load(f"{folder}/losses")
    for step in sorted({*range(0, options.steps, max(options.steps // 8, 1)), options.steps - 1}):
        print(f"step {step:4}  loss of {options.ranks} processes {losses[step]:.4f}, of one {one[step]:.4f}")
    print(f"{options.ranks} processes {rate:,.0f} tokens/s, one {one_rate:,.0f} tokens/s")
    difference = abs(float(losses.mean() - one.mean()) / float(one.mean()))
    agree = difference <= (1e-2 if options.bf16 else 1e-3)
    print(f"the mean losses differ by {difference:.1e}", "" if agree else ": TOO MUCH")
    return 0 if agree and losses[-1] < losses[0] else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", choices=["cpu", "cuda"])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--rows", type=int, default=8192, help="the tokens of a batch, in all documents together")
    parser.add_argument("--length", type=int, default=2048, help="of documents; they have from 1/8 to 9/8 of it, or less at the end")
    parser.add_argument("--rate", type=float, default=1e-3, help="of learning")
    parser.add_argument("--f32", dest="bf16", action="store_false", help="no autocast to bfloat16")
    parser.add_argument("--ranks", type=int, default=1, help="processes that share the rows of a batch")
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.device == "cpu":
        options.bf16 = False
    if options.rank is not None:
        return work(options)
    if options.ranks > 1:
        return compare_ranks(options)

    first, parameters, rate = train(options, with_flash=True)
    again, same_parameters, _ = train(options, with_flash=True)
    theirs, _, their_rate = train(options, with_flash=False)
    for step in sorted({*range(0, options.steps, max(options.steps // 8, 1)), options.steps - 1}):
        print(f"step {step:4}  loss {first[step]:.4f}  with PyTorch's attention {theirs[step]:.4f}")
    print(f"flash_mlir {rate:,.0f} tokens/s, PyTorch {their_rate:,.0f} tokens/s")

    is_same = torch.equal(first, again) and all(map(torch.equal, parameters, same_parameters))
    print("two runs of flash_mlir have", "the same bits" if is_same else "DIFFERENT BITS")
    # What is rounded otherwise at one step is far apart after hundreds: their means are compared.
    difference = abs(float(first.mean() - theirs.mean()) / float(theirs.mean()))
    agree = difference <= (1e-2 if options.bf16 else 1e-3)
    print(f"the mean losses differ by {difference:.1e}", "" if agree else ": TOO MUCH")
    return 0 if is_same and agree and first[-1] < first[0] else 1


if __name__ == "__main__":
    sys.exit(main())
