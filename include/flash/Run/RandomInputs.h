//===- RandomInputs.h - Random numbers for inputs ---------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUN_RANDOMINPUTS_H
#define FLASH_RUN_RANDOMINPUTS_H

#include "flash/Run/HostTensor.h"

namespace flash::run {

/// Fills a tensor with numbers of a standard normal distribution, rounded to
/// its element type. Equal seeds and streams give the same bits on every
/// machine and with every C library. Different streams of one seed are
/// independent.
void fillNormal(HostTensor &tensor, uint64_t seed, uint64_t stream);

/// Fills a tensor with integers from `lo` to `hi`, which are equally likely.
void fillUniform(HostTensor &tensor, int64_t lo, int64_t hi, uint64_t seed,
                 uint64_t stream);

/// Fills a tensor of scales with numbers from 0.5 * `unit` to 1.5 * `unit`.
void fillScales(HostTensor &tensor, double unit, uint64_t seed,
                uint64_t stream);

/// Fills a vector of offsets that cut `rows` rows into sequences of random
/// lengths: it has one more element than there are sequences. Vectors of equal
/// size get the same offsets for the same `rows` and `seed`.
void fillOffsets(HostTensor &tensor, int64_t rows, uint64_t seed);

/// The numbers from 0 to below `count` in random order.
std::vector<int64_t> permute(int64_t count, uint64_t seed, uint64_t stream);

/// Fills lists of blocks that an attention takes, `[b, h, m, n]`, and their
/// counts, `[b, h, m, 2]`. Each list has up to `n` different blocks with
/// numbers from 0 to below `numBlocks`, in random order, and -1 behind them.
/// The counts are the number of its partial blocks, which come first, and the
/// number of all blocks.
void fillBlocks(HostTensor &list, HostTensor &counts, int64_t numBlocks,
                uint64_t seed, uint64_t stream);

/// Fills lists of blocks of queries, `[b, h, numBlocks, n']`, and their counts
/// with the pairs of blocks that `list` and `counts` have as lists of blocks of
/// keys. Returns false if batches or heads differ, or if a list has more than
/// n' blocks; the tensors then have some of the pairs.
bool transposeBlocks(const HostTensor &list, const HostTensor &counts,
                     HostTensor &toList, HostTensor &toCounts);

} // namespace flash::run

#endif // FLASH_RUN_RANDOMINPUTS_H
