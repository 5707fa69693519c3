"""Writes programs for `flash-run --tune`, one for each class of lengths.

    python3 python/benchmarks/tuning_suite.py DIR
    flash-run --suite DIR/suite.txt --target=sm_90a --tune --tune-seconds=30 --timeout=5 --tuning-file=tuned.jsonl

The first are the attentions of the table of 16k tokens, the others single heads.
"""
import argparse
import pathlib

import programs

MASKS = {"full": None, "causal": programs.CAUSAL}
TOKENS, HIDDEN = 16384, 2048


def shapes(dims, lengths):
    for dim in dims:
        for length in lengths:
            yield (TOKENS // length, HIDDEN // dim, length, dim)
    for length in lengths:
        if 64 in dims and length < TOKENS:
            yield (1, 1, length, 64)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--dtype", default="f16", choices=programs.ELEMENTS)
    parser.add_argument("--dims", type=int, nargs="+", default=[64, 128, 256])
    parser.add_argument("--lengths", type=int, nargs="+", default=[512, 1024, 2048, 4096, 8192, 16384])
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for shape in shapes(arguments.dims, arguments.lengths):
        for mask, text in MASKS.items():
            name = f"{mask}_{'x'.join(map(str, shape))}.mlir"
            (arguments.folder / name).write_text(programs.attention(shape, arguments.dtype, text))
            lines.append(name)
    (arguments.folder / "suite.txt").write_text("\n".join(lines) + "\n")
    print(f"{arguments.folder / 'suite.txt'}: {len(lines)} programs")


if __name__ == "__main__":
    main()
