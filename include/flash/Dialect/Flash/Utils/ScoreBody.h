//===- ScoreBody.h - Masking and modifying one score ------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What every lowering of attention does to one score, as scalar code for the
// body of a loop or of a linalg.generic. Vectorising the surrounding op
// vectorises it too.
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_DIALECT_FLASH_UTILS_SCOREBODY_H
#define FLASH_DIALECT_FLASH_UTILS_SCOREBODY_H

#include "flash/Dialect/Flash/IR/Flash.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

namespace flash {

struct MaskingChoice;

/// Where a score is in the whole problem; all values are of type index.
struct ScorePosition {
  mlir::Value batch, head, query, key;
  /// The lengths nq and nk of the whole problem.
  mlir::Value numQueries, numKeys;
};

/// Emits whether the element at `position` takes part, as far as the mask says:
/// an i1, or null if the mask keeps every element. `numQueries` and `numKeys`
/// may be null if no set of the mask uses its symbols.
mlir::Value emitMaskPredicate(mlir::OpBuilder &b, mlir::Location loc,
                              MaskAttrInterface mask,
                              const ScorePosition &position);

/// Emits `key < length`, where `length` is of type i32 as in the `lengths`
/// operand; a negative length keeps nothing and one beyond the last key
/// everything, so no clamping is needed. Both are values or null, and the
/// result is the conjunction with `predicate`, null if all of it is.
mlir::Value emitLengthPredicate(mlir::OpBuilder &b, mlir::Location loc,
                                mlir::Value predicate, mlir::Value length,
                                mlir::Value key);

/// Emits what `guard` is, whose operand has become `value`: an i1 says whether
/// the element takes part, null that it does.
mlir::Value emitGuard(mlir::OpBuilder &b, GuardOp guard, mlir::Value value,
                      mlir::Value takesPart);

/// Inlines the score region on `score`, or returns `score` if there is none.
/// The region is left as it is, so it can be inlined any number of times.
/// `takesPart` says of elements that exist and of those that pad a tile whether
/// they are used, null that all are; only guards depend on it.
mlir::Value emitScoreRegion(mlir::OpBuilder &b, mlir::Location loc,
                            mlir::Region &region, mlir::Value score,
                            const ScorePosition &position,
                            mlir::Value takesPart);

/// The same for a region that is there; `values` is then what its values have
/// become. `replace` may give another value for the result of an op, whose
/// operands are in the mapping; it gives null where the op is copied.
mlir::Value emitScoreValues(
    mlir::OpBuilder &b, mlir::Region &region, mlir::Value score,
    const ScorePosition &position, mlir::Value takesPart,
    mlir::IRMapping &values,
    llvm::function_ref<mlir::Value(mlir::Operation &, const mlir::IRMapping &)>
        replace = nullptr);

/// Makes the score region of an attention or a step keep every element.
void dropKeep(mlir::Region &score);

/// Emits values of a score region that do not depend on the score, such as the
/// indices of reads, at a position; guards read `takesPart`.
llvm::SmallVector<mlir::Value> emitValues(mlir::OpBuilder &b,
                                          mlir::Region &region,
                                          llvm::ArrayRef<mlir::Value> values,
                                          const ScorePosition &position,
                                          mlir::Value takesPart);

/// Emits the part of a region that says whether an element takes part, of a
/// score region or of a block map, as `emitScoreRegion` does; null if it keeps
/// all. Its guards read `takesPart`, whether other conditions keep the element.
mlir::Value emitKeep(mlir::OpBuilder &b, mlir::Region &region,
                     const ScorePosition &position, mlir::Value takesPart);

/// The same for another region, which has its guards.
mlir::Value cloneKeepWithGuards(mlir::OpBuilder &b, mlir::Region &region,
                                const ScorePosition &position);

/// Emits whether `choice` keeps the score.
mlir::Value emitKeep(mlir::OpBuilder &b, const MaskingChoice &choice);

/// Emits `predicate` and `query < numQueries`, for tiles with rows that do not
/// exist. `predicate` may be null.
mlir::Value emitRowExists(mlir::OpBuilder &b, mlir::Location loc,
                          mlir::Value predicate, mlir::Value query,
                          mlir::Value numQueries);

/// A copy of `op` on integers of 64 bits instead of indices, behind it. `widen`
/// gives the i64 that an index is.
mlir::Operation *cloneWide(mlir::OpBuilder &b, mlir::Operation &op,
                           llvm::function_ref<mlir::Value(mlir::Value)> widen);

/// Erases the ops of `block` whose results nothing uses, for example the
/// positions that a mask did not use.
void eraseDeadOps(mlir::Block &block);

} // namespace flash

#endif // FLASH_DIALECT_FLASH_UTILS_SCOREBODY_H
