"""The program that appends new keys and values to caches, on the CPU; test_launch.py and the calls of caches have the rest."""

import numpy as np
import pytest

import flash_mlir as flash
from flash_mlir.appending import print_program


@pytest.mark.parametrize("has_table", [False, True])
@pytest.mark.parametrize("dims", [(64, 48), (8, 8)])
def test_program(has_table, dims):
    rng = np.random.default_rng(0)
    kernel = flash.compile(print_program("f32", *dims, has_table), "cpu")
    batch, heads, rows, page, columns = 3, 9, 5, 4, 3
    pages = 11 if has_table else batch
    page = page if has_table else page * columns
    new = [rng.standard_normal((batch, heads, rows, dim), np.float32) for dim in dims]
    caches = [np.zeros((pages, heads, page, dim), np.float32) for dim in dims]
    table = np.array([[7, -1, 3], [10, 0, 2], [5, 11, 1]], np.int32)
    for lengths in ([0, 7, 3], [9, 12, -2], [2**31 - 9, -(2**31), 4]):
        lengths = np.array(lengths, np.int32)
        *results, sums = kernel(*new, *caches, *([table] if has_table else []), lengths)
        np.testing.assert_array_equal(sums, lengths + rows)
        for b in range(batch):
            for i in range(rows):
                at = int(lengths[b]) + i
                place = (int(table[b, at // page]), at % page) if has_table and 0 <= at < page * columns else (b, at)
                # There is no room, or no page.
                if not (0 <= at < page * (columns if has_table else 1) and 0 <= place[0] < pages):
                    continue
                for result, array in zip(results, new):
                    np.testing.assert_array_equal(result[place[0], :, place[1]], array[b, :, i])
