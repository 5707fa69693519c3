//===- RandomInputs.h - Numbers for a run without files ---------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUN_RANDOMINPUTS_H
#define FLASH_RUN_RANDOMINPUTS_H

#include "flash/Run/HostTensor.h"

namespace flash::run {

/// Fills a tensor with standard normal numbers, rounded to its type. The same
/// seed and stream give the same bits on every machine and with every C
/// library; different streams of one seed are independent.
void fillNormal(HostTensor &tensor, uint64_t seed, uint64_t stream);

/// Fills a tensor with integers from [lo, hi], all equally likely.
void fillUniform(HostTensor &tensor, int64_t lo, int64_t hi, uint64_t seed,
                 uint64_t stream);

/// Fills scales with numbers from `unit` / 2 to 1.5 times `unit`.
void fillScales(HostTensor &tensor, double unit, uint64_t seed,
                uint64_t stream);

/// Fills offsets that cut `rows` rows into sequences of random lengths, the
/// same ones for tensors of the same number of sequences and rows.
void fillOffsets(HostTensor &tensor, int64_t rows, uint64_t seed);

/// The numbers below `count` in any order.
std::vector<int64_t> permute(int64_t count, uint64_t seed, uint64_t stream);

/// Fills a list of blocks that an attention takes and its counts, `[b, h, m,
/// n]` and `[b, h, m, 2]`: of `numBlocks` blocks any number up to `n`, each
/// once and in any order; any number of them is partial. Entries behind these
/// are -1.
void fillBlocks(HostTensor &list, HostTensor &counts, int64_t numBlocks,
                uint64_t seed, uint64_t stream);

/// Fills another list and its counts, `[b, h, numBlocks, n']`, with the same
/// pairs of blocks from the other side. False where it has no room for them.
bool transposeBlocks(const HostTensor &list, const HostTensor &counts,
                     HostTensor &toList, HostTensor &toCounts);

} // namespace flash::run

#endif // FLASH_RUN_RANDOMINPUTS_H
