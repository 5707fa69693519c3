//===- ScoreBody.h - Masking and modifying one score ------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Code that masks and modifies one score, which all lowerings of attention
// share. It is scalar code for the body of a loop or of a linalg.generic, and
// is vectorized with the surrounding op. Functions insert at the builder's
// insertion point.
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_DIALECT_FLASH_UTILS_SCOREBODY_H
#define FLASH_DIALECT_FLASH_UTILS_SCOREBODY_H

#include "flash/Dialect/Flash/IR/Flash.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

namespace flash {

struct MaskingChoice;

/// The position of a score in the whole problem. All values have type index.
struct ScorePosition {
  mlir::Value batch, head, query, key;
  /// The lengths nq and nk of the whole problem.
  mlir::Value numQueries, numKeys;
};

/// Emits whether the mask keeps the element at `position`, as an i1, or returns
/// null if the mask keeps every element. `numQueries` and `numKeys` may be null
/// if no set of the mask uses its symbols.
mlir::Value emitMaskPredicate(mlir::OpBuilder &b, mlir::Location loc,
                              MaskAttrInterface mask,
                              const ScorePosition &position);

/// Emits `predicate` and `key < length`. `length` has type i32, as in the
/// operand `lengths`; it need not be clamped, since a negative length keeps no
/// key and a length beyond the last key keeps all. `predicate` and `length` may
/// be null, which stands for true; the result is null if both are.
mlir::Value emitLengthPredicate(mlir::OpBuilder &b, mlir::Location loc,
                                mlir::Value predicate, mlir::Value length,
                                mlir::Value key);

/// Emits the result of `guard` for `value`, to which its operand was mapped.
/// `takesPart`, an i1, says whether the element takes part; null stands for
/// true.
mlir::Value emitGuard(mlir::OpBuilder &b, GuardOp guard, mlir::Value value,
                      mlir::Value takesPart);

/// Applies a copy of the score region to `score`, or returns `score` if the
/// region is empty. The region itself is not changed. `takesPart` says whether
/// the element is used, which padding of a tile is not; null stands for true.
/// Only guards depend on it.
mlir::Value emitScoreRegion(mlir::OpBuilder &b, mlir::Location loc,
                            mlir::Region &region, mlir::Value score,
                            const ScorePosition &position,
                            mlir::Value takesPart);

/// As `emitScoreRegion`, for a region that is not empty. Afterwards, `values`
/// maps the values of the region to their copies. `replace` may return another
/// value for the result of an op, whose operands are mapped by then, or null to
/// have the op copied. It is not called for guards.
mlir::Value emitScoreValues(
    mlir::OpBuilder &b, mlir::Region &region, mlir::Value score,
    const ScorePosition &position, mlir::Value takesPart,
    mlir::IRMapping &values,
    llvm::function_ref<mlir::Value(mlir::Operation &, const mlir::IRMapping &)>
        replace = nullptr);

/// Changes the score region of an attention or a step so that it keeps every
/// element.
void dropKeep(mlir::Region &score);

/// Emits values of a score region for a position. They must not depend on the
/// score, as the indices of reads do not. Guards use `takesPart`.
llvm::SmallVector<mlir::Value> emitValues(mlir::OpBuilder &b,
                                          mlir::Region &region,
                                          llvm::ArrayRef<mlir::Value> values,
                                          const ScorePosition &position,
                                          mlir::Value takesPart);

/// Emits whether a score region, or the region of a block map, keeps an
/// element. Returns null if the region keeps all. Guards use `takesPart`, which
/// says whether other conditions keep the element.
mlir::Value emitKeep(mlir::OpBuilder &b, mlir::Region &region,
                     const ScorePosition &position, mlir::Value takesPart);

/// As `emitKeep`, with copies of the guards, for code inside of another region
/// that has guards.
mlir::Value cloneKeepWithGuards(mlir::OpBuilder &b, mlir::Region &region,
                                const ScorePosition &position);

/// Emits whether the condition of `choice` keeps the score.
mlir::Value emitKeep(mlir::OpBuilder &b, const MaskingChoice &choice);

/// Emits `predicate` and `query < numQueries`, for tiles in which some rows do
/// not exist. A `predicate` of null stands for true.
mlir::Value emitRowExists(mlir::OpBuilder &b, mlir::Location loc,
                          mlir::Value predicate, mlir::Value query,
                          mlir::Value numQueries);

/// Emits a copy of `op` after it, on integers of 64 bits instead of indices.
/// `widen` returns the i64 for an index.
mlir::Operation *cloneWide(mlir::OpBuilder &b, mlir::Operation &op,
                           llvm::function_ref<mlir::Value(mlir::Value)> widen);

/// Erases the ops of `block` whose results have no uses, for example positions
/// that the mask does not need.
void eraseDeadOps(mlir::Block &block);

} // namespace flash

#endif // FLASH_DIALECT_FLASH_UTILS_SCOREBODY_H
