"""Trains a small GPT on this project's pages, with flash_mlir's attention and with PyTorch's.

    python train.py                              on the GPU if there is one
    python train.py --device cpu --steps 20 --layers 1 --dim 64 --heads 2 --length 128

A sequence is several documents one behind the other, which do not see each other, and each layer
learns a bias for each head and distance. flash_mlir reads both in its kernel; PyTorch's
scaled_dot_product_attention takes them as a matrix of the scores' size. The script trains twice with
the former and once with the latter, from the same start and with the same batches. It
fails if the first two differ in any bit of a loss or a parameter, or if the losses of the last two
do not agree.
"""

import argparse
import math
import os
import pathlib
import sys
import time

# What PyTorch asks for to be deterministic itself, before it starts CUDA.
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import torch
from torch import nn
from torch.nn import functional

import flash_mlir as flash

CHARACTERS = 256  # Bytes are the tokens.


class Batches:
    """Batches of documents, as bytes, from the pages of this project."""

    def __init__(self, options):
        root = pathlib.Path(__file__).resolve().parents[1]
        pages = sorted(root.glob("docs/**/*.md")) + [root / "README.md"]
        self.pages = [torch.frombuffer(bytearray(page.read_bytes()), dtype=torch.uint8) for page in pages]
        self.options = options

    def make(self, step):
        """The tokens (batch, length + 1) of a step and the number of the document of each (batch, length)."""
        generator = torch.Generator().manual_seed(step)
        batch, length = self.options.batch, self.options.length
        tokens = torch.zeros(batch, length + 1, dtype=torch.int64)
        documents = torch.zeros(batch, length, dtype=torch.int32)

        def draw(end):
            return int(torch.randint(end, (), generator=generator))

        for row in range(batch):
            start, number = 0, 0
            while start <= length:
                page = self.pages[draw(len(self.pages))]
                count = min(length // 8 + draw(length), len(page), length + 1 - start)
                first = draw(len(page) - count + 1)
                tokens[row, start : start + count] = page[first : first + count]
                documents[row, start : start + count] = number
                start, number = start + count, number + 1
        return tokens.to(self.options.device), documents.to(self.options.device)


class Attention(nn.Module):
    """Attention to the bytes before in the same document, with a learned bias of the distance."""

    def __init__(self, options, documents, with_flash):
        super().__init__()
        self.heads, self.with_flash, self.documents = options.heads, with_flash, documents
        self.project = nn.Linear(options.dim, 3 * options.dim)
        self.out = nn.Linear(options.dim, options.dim)
        self.bias = nn.Parameter(torch.zeros(options.heads, options.distances, device=options.device))
        far = options.distances - 1
        if with_flash:
            bias = self.bias

            def score(s, b, h, q, k):
                return s + bias[h, flash.clip(q - k, 0, far)]

            self.attend = flash.Attention(flash.documents(documents) & flash.causal(), score)
        else:
            position = torch.arange(options.length, device=options.device)
            distance = position[:, None] - position[None]
            self.register_buffer("bucket", distance.clamp(0, far), persistent=False)
            self.register_buffer("future", distance < 0, persistent=False)

    def forward(self, x):
        batch, length, dim = x.shape
        packed = self.project(x).view(batch, length, 3, self.heads, dim // self.heads)
        query, key, value = (part.transpose(1, 2) for part in packed.unbind(2))
        if self.with_flash:
            result = self.attend(query, key, value)
        else:
            apart = self.documents[:, None, :, None] != self.documents[:, None, None, :]
            mask = self.bias[:, self.bucket].masked_fill(apart | self.future, -math.inf)
            result = functional.scaled_dot_product_attention(query, key, value, mask.to(query.dtype))
        return self.out(result.transpose(1, 2).reshape(batch, length, dim))


class Layer(nn.Module):
    def __init__(self, *arguments):
        super().__init__()
        dim = arguments[0].dim
        self.before_attention, self.before_network = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attention = Attention(*arguments)
        self.network = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        x = x + self.attention(self.before_attention(x))
        return x + self.network(self.before_network(x))


class Model(nn.Module):
    def __init__(self, options, documents, with_flash):
        super().__init__()
        self.embedding = nn.Embedding(CHARACTERS, options.dim)
        self.layers = nn.Sequential(*(Layer(options, documents, with_flash) for _ in range(options.layers)))
        self.norm = nn.LayerNorm(options.dim)
        self.head = nn.Linear(options.dim, CHARACTERS)

    def forward(self, tokens):
        return self.head(self.norm(self.layers(self.embedding(tokens))))


def train(options, with_flash):
    """Returns the losses, the parameters and the tokens of a second."""
    # PyTorch's attention with a matrix of biases has no deterministic gradients on every device.
    torch.use_deterministic_algorithms(with_flash)
    torch.manual_seed(0)
    documents = torch.zeros(options.batch, options.length, dtype=torch.int32, device=options.device)
    model = Model(options, documents, with_flash).to(options.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.rate)
    batches, losses, warm_up, start = Batches(options), [], min(3, options.steps // 2), 0.0
    made = [batches.make(step) for step in range(options.steps)]
    for step, (tokens, of_documents) in enumerate(made):
        if step == warm_up:
            if options.device == "cuda":
                torch.cuda.synchronize()
            start = time.perf_counter()
        # The kernels read these where they lie.
        documents.copy_(of_documents)
        with torch.autocast(options.device, dtype=torch.bfloat16, enabled=options.bf16):
            predicted = model(tokens[:, :-1])
        loss = functional.cross_entropy(predicted.float().flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    losses = torch.stack(losses).cpu()
    seconds = time.perf_counter() - start
    rate = (options.steps - warm_up) * options.batch * options.length / seconds
    return losses, [parameter.detach().cpu() for parameter in model.parameters()], rate


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", choices=["cpu", "cuda"])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--length", type=int, default=2048)
    parser.add_argument("--distances", type=int, default=256, help="those farther apart share a bias")
    parser.add_argument("--rate", type=float, default=1e-3, help="of learning")
    parser.add_argument("--f32", dest="bf16", action="store_false", help="no autocast to bfloat16")
    options = parser.parse_args()
    if options.device == "cpu":
        options.bf16 = False

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
