"""Decodes with multi-head latent attention (DeepSeek's MLA) over a paged cache, beside the expanded form in fp64.

    python mla_decode.py                         on the GPU if there is one
    python mla_decode.py --device cpu --heads 4 --latent 64 --rope 16 --dim 32 --sequences 3 --length 70

Of each token the cache has a latent vector and a key part with rotated positions, which all heads share. The
projections that would make keys and values of the latent vectors are absorbed into queries and outputs, so that
attention reads the cache as it is: its rows are the keys, and their first columns the values (docs/mla-decode.md).
The script fails if the two do not agree.
"""

import argparse
import sys

import torch

import flash_mlir as flash

PAGE = 64


def rotate(x, positions):
    """Rotary position embedding of (..., tokens, columns), pairs of neighbours."""
    half = x.shape[-1] // 2
    rates = 10000.0 ** -(torch.arange(half, dtype=torch.float64, device=x.device) / half)
    angles = positions.to(torch.float64)[:, None] * rates
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2)


class Projections:
    """What makes the keys and the values of a head from latent vectors: (heads, columns of a head, latent columns)."""

    def __init__(self, heads, dim, latent, rope, device, dtype):
        self.heads, self.dim, self.latent, self.rope = heads, dim, latent, rope
        shape = heads, dim, latent
        self.key, self.value = (torch.randn(shape, device=device, dtype=dtype) / latent**0.5 for _ in range(2))

    @property
    def scale(self):
        # Of the head dimension that expanded keys would have, not of the rows of the cache.
        return (self.dim + self.rope) ** -0.5


def decode(projections, query, query_rope, cache, page_table, lengths):
    """The outputs of heads, (sequences, heads, dim), of one token of each sequence.

    `query` is (sequences, heads, dim), `query_rope`, rotated, (sequences, heads, rope), and `cache` (pages, rows of a
    page, 1, latent + rope).
    """
    absorbed = torch.einsum("bhd,hdl->bhl", query, projections.key)
    rows = torch.cat([absorbed, query_rope], dim=-1)[:, :, None]
    options = dict(value_dim=projections.latent, scale=projections.scale)
    latent = flash.attention(rows, cache, page_table=page_table, key_lengths=lengths, **options)
    return torch.einsum("bhl,hdl->bhd", latent[:, :, 0], projections.value)


def decode_expanded(projections, query, query_rope, cache, page_table, lengths):
    """The same in fp64, with the keys and the values of each head."""
    query, query_rope, cache = (x.double() for x in (query, query_rope, cache))
    to_key, to_value = projections.key.double(), projections.value.double()
    outputs = []
    for b, length in enumerate(lengths.tolist()):
        rows = cache[page_table[b].long()].reshape(-1, cache.shape[-1])[:length]
        latent, key_rope = rows[:, : projections.latent], rows[:, projections.latent :]
        keys, values = (torch.einsum("nl,hdl->hnd", latent, to) for to in (to_key, to_value))
        scores = torch.einsum("hd,hnd->hn", query[b], keys) + torch.einsum("hr,nr->hn", query_rope[b], key_rope)
        outputs.append(torch.einsum("hn,hnd->hd", (scores * projections.scale).softmax(dim=-1), values))
    return torch.stack(outputs)


def make_inputs(projections, lengths, device, dtype):
    """The arguments of `decode` behind the projections: the cache has rotated key parts, in pages of a random order."""
    sequences, longest = len(lengths), max(lengths)
    columns = -(-longest // PAGE)
    pages = sequences * columns
    order = torch.randperm(pages, device=device).to(torch.int32)
    width = projections.latent + projections.rope
    cache = torch.randn(pages, PAGE, 1, width, device=device, dtype=dtype)
    table = order.reshape(sequences, columns)
    positions = torch.zeros(pages, PAGE, device=device)
    for row in table:
        positions[row.long()] = torch.arange(columns * PAGE, device=device).reshape(columns, PAGE).float()
    key_rope = cache[..., 0, projections.latent :].flatten(0, 1)
    cache[..., 0, projections.latent :] = rotate(key_rope, positions.flatten()).reshape(pages, PAGE, -1)
    query = torch.randn(sequences, projections.heads, projections.dim, device=device, dtype=dtype)
    query_rope = torch.randn(projections.heads, sequences, projections.rope, device=device, dtype=dtype)
    query_rope = rotate(query_rope, torch.tensor(lengths, device=device) - 1).transpose(0, 1)
    return query, query_rope, cache, table, torch.tensor(lengths, dtype=torch.int32, device=device)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--dtype", default="bfloat16", choices=["bfloat16", "float16", "float32"])
    parser.add_argument("--heads", type=int, default=16)
    parser.add_argument("--dim", type=int, default=128, help="of a head, without the rotated part of its keys")
    parser.add_argument("--latent", type=int, default=512, help="columns of a latent vector")
    parser.add_argument("--rope", type=int, default=64, help="columns of the rotated part")
    parser.add_argument("--sequences", type=int, default=4)
    parser.add_argument("--length", type=int, default=1000, help="of the longest sequence")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    device, dtype = arguments.device, getattr(torch, arguments.dtype)
    projections = Projections(arguments.heads, arguments.dim, arguments.latent, arguments.rope, device, dtype)
    lengths = [max(arguments.length // (b + 1), 1) for b in range(arguments.sequences)]
    inputs = make_inputs(projections, lengths, device, dtype)
    output, expected = decode(projections, *inputs), decode_expanded(projections, *inputs)
    error = (output.double() - expected).abs().max().item()
    allowed = {"bfloat16": 0.05, "float16": 0.01, "float32": 1e-4}[arguments.dtype]
    largest = expected.abs().max().item()
    sizes = f"{arguments.heads} heads, lengths {lengths}"
    print(f"{sizes}: the largest difference from fp64 is {error:.2g}, of {largest:.2g}")
    return error > allowed


if __name__ == "__main__":
    sys.exit(main())
