//===- TileDocuments.cpp - Where documents begin --------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileBuilder.h"
#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Dialect/Flash/IR/OnlineFormula.h"
#include "flash/Dialect/Flash/Transforms/Passes.h"
#include "flash/Dialect/Flash/Utils/TileSlices.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace flash {
#define GEN_PASS_DEF_TILEDOCUMENTS
#include "flash/Dialect/Flash/Transforms/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash;
using arith::CmpIPredicate;

namespace {
/// Numbers are whole and f32, so that tiles can hold them.
class DocumentsTiler : TileBuilder {
public:
  explicit DocumentsTiler(DocumentOffsetsOp op)
      : TileBuilder(op), op(op), ids(op.getIds()),
        numStretches(arith::CeilDivSIOp::create(b, op.getRows(),
                                                constant(rowsOfStretch))),
        numAll(arith::MulIOp::create(b, op.getBatches(), numStretches)
                   .getResult()),
        numElements(arith::MulIOp::create(b, op.getBatches(), op.getRows())
                        .getResult()) {}

  void run();

private:
  // Rows of an iteration, one for each warp.
  static constexpr int64_t rowsOfIteration = 8;
  // Elements that are counted together, and counts that are added in a step.
  static constexpr int64_t rowsOfStretch = 128, halvings = 7;

  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(b, value);
  }
  static Value emitNumber(ImplicitLocOpBuilder &at, Value first, int64_t dim) {
    return arith::AddIOp::create(at, first, linalg::IndexOp::create(at, dim));
  }
  static Value emitMark(ImplicitLocOpBuilder &at, Value holds) {
    return arith::SelectOp::create(at, holds, emitConstant(at, 1.0),
                                   emitConstant(at, 0.0));
  }
  Value readId(ImplicitLocOpBuilder &at, Value batch, Value row) {
    if (ids.getType().getRank() == 1)
      return tensor::ExtractOp::create(at, ids, row);
    return tensor::ExtractOp::create(at, ids, ValueRange{batch, row});
  }
  /// Whether a document begins at a row, or, if `isLess`, its id is less than
  /// the one before; not for rows that do not exist.
  Value emitBegins(ImplicitLocOpBuilder &at, Value batch, Value row,
                   bool isLess);
  using OfColumn = llvm::function_ref<Value(ImplicitLocOpBuilder &at,
                                            Value column, ValueRange ofRow)>;
  /// Adds a number for each of 128 columns to the rows' sums.
  Value addColumns(Value sums, ValueRange ofRows, OfColumn ofColumn);
  /// For each row, the first one of two numbers where its document is not
  /// among the first `sum` ones.
  Value chooseIfBefore(Value sum, Value documents, Value ifBefore,
                       Value otherwise) {
    return rows(
        {sum, documents, ifBefore, otherwise}, empty({rowsOfIteration}),
        [](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
          Value isBefore = arith::CmpFOp::create(at, arith::CmpFPredicate::OLE,
                                                 args[0], args[1]);
          return {arith::SelectOp::create(at, isBefore, args[2], args[3])};
        })[0];
  }
  /// f32 [all stretches]: how many documents begin, and how many ids decrease.
  ValueRange countStretches();
  /// The number of 128 columns before the first one at which the sum of them
  /// and `before` is more than the row's number of a document; and the sum up
  /// to there.
  std::pair<Value, Value> findColumn(Value before, Value documents,
                                     ValueRange ofRows, OfColumn ofColumn);
  void findDocuments(ValueRange counts);
  void store(Value ofRows, Value destination, OpFoldResult at,
             OpFoldResult count, KernelOp kernel);

  DocumentOffsetsOp op;
  TypedValue<RankedTensorType> ids;
  Value numStretches, numAll, numElements;
};
} // namespace

Value DocumentsTiler::emitBegins(ImplicitLocOpBuilder &at, Value batch,
                                 Value row, bool isLess) {
  Value zero = arith::ConstantIndexOp::create(at, 0),
        one = arith::ConstantIndexOp::create(at, 1);
  Value exists =
      arith::CmpIOp::create(at, CmpIPredicate::slt, row, op.getRows());
  Value isFirst = arith::CmpIOp::create(at, CmpIPredicate::eq, row, zero);
  Value known = emitBelow(at, row, op.getRows());
  Value before =
      arith::MaxSIOp::create(at, arith::SubIOp::create(at, known, one), zero);
  Value differs = arith::CmpIOp::create(
      at, isLess ? CmpIPredicate::slt : CmpIPredicate::ne,
      readId(at, batch, known), readId(at, batch, before));
  if (!isLess)
    differs = arith::OrIOp::create(at, isFirst, differs);
  return emitMark(at, arith::AndIOp::create(at, exists, differs));
}

Value DocumentsTiler::addColumns(Value sums, ValueRange ofRows,
                                 OfColumn ofColumn) {
  SmallVector<AffineMap> maps(ofRows.size(), map(2, {0}));
  maps.push_back(map(2, {0, 1}));
  Value columns = generic(
      ofRows, empty({rowsOfIteration, rowsOfStretch}), maps,
      [&](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
        return {ofColumn(at, linalg::IndexOp::create(at, 1), args.drop_back())};
      })[0];
  return addElementsOfRows(columns, sums);
}

void DocumentsTiler::store(Value ofRows, Value destination, OpFoldResult at,
                           OpFoldResult count, KernelOp kernel) {
  OpFoldResult one = b.getIndexAttr(1);
  Value part = tensor::ExtractSliceOp::create(
      b, ofRows, ArrayRef<OpFoldResult>{b.getIndexAttr(0)}, count, one);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(kernel.getStores());
  tensor::ParallelInsertSliceOp::create(b, part, destination,
                                        ArrayRef<OpFoldResult>{at}, count, one);
}

ValueRange DocumentsTiler::countStretches() {
  Type f32 = b.getF32Type();
  Value counts =
            tensor::EmptyOp::create(b, ArrayRef<OpFoldResult>{numAll}, f32),
        less = tensor::EmptyOp::create(b, ArrayRef<OpFoldResult>{numAll}, f32);
  auto kernel = KernelOp::create(
      b, ArrayRef<OpFoldResult>{op.getBatches(), numStretches},
      ArrayRef<int64_t>{1, rowsOfIteration}, ValueRange{counts, less});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(kernel.getStore());
  Value batch = kernel.getPosition()[0], first = kernel.getPosition()[1];
  OpFoldResult existing =
      TiledDim{rowsOfIteration, numStretches}.existing(b, b.getLoc(), first);
  AffineExpr d0 = b.getAffineDimExpr(0), d1 = b.getAffineDimExpr(1);
  OpFoldResult offset = affine::makeComposedFoldedAffineApply(
      b, b.getLoc(), AffineMap::get(2, 1, d0 * b.getAffineSymbolExpr(0) + d1),
      {OpFoldResult(batch), OpFoldResult(first), OpFoldResult(numStretches)});
  for (bool isLess : {false, true}) {
    Value sums = addColumns(
        filled({rowsOfIteration}, 0.0), {},
        [&](ImplicitLocOpBuilder &at, Value column, ValueRange) -> Value {
          Value row = arith::AddIOp::create(
              at,
              arith::MulIOp::create(
                  at, emitNumber(at, first, 0),
                  arith::ConstantIndexOp::create(at, rowsOfStretch)),
              column);
          return emitBegins(at, batch, row, isLess);
        });
    store(sums, kernel.getDestinations()[isLess], offset, existing, kernel);
  }
  return kernel.getResults();
}

std::pair<Value, Value> DocumentsTiler::findColumn(Value before,
                                                   Value documents,
                                                   ValueRange ofRows,
                                                   OfColumn ofColumn) {
  // Bisection: the sum up to the columns before `from` is known and not more.
  Value none = filled({rowsOfIteration}, 0.0);
  Value width = filled({rowsOfIteration}, double(rowsOfStretch / 2));
  // Nothing may be read where there is nothing.
  Value areSome =
      arith::CmpIOp::create(b, CmpIPredicate::sgt, numAll, constant(0));
  Value steps =
      arith::SelectOp::create(b, areSome, constant(halvings), constant(0));
  auto loop = scf::ForOp::create(b, constant(0), steps, constant(1),
                                 ValueRange{none, width, before});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value from = loop.getRegionIterArg(0), half = loop.getRegionIterArg(1);
  SmallVector<Value> known = {from, half};
  llvm::append_range(known, ofRows);
  Value sum = addColumns(
      loop.getRegionIterArg(2), known,
      [&](ImplicitLocOpBuilder &at, Value column, ValueRange ofRow) -> Value {
        Value number = emitFloat(at, column);
        Value isBehind = arith::CmpFOp::create(at, arith::CmpFPredicate::OGE,
                                               number, ofRow[0]);
        Value isBefore = arith::CmpFOp::create(
            at, arith::CmpFPredicate::OLT, number,
            arith::AddFOp::create(at, ofRow[0], ofRow[1]));
        return arith::SelectOp::create(
            at, arith::AndIOp::create(at, isBehind, isBefore),
            ofColumn(at, column, ofRow.drop_front(2)), emitConstant(at, 0.0));
      });
  auto choose = [&](Value ifBefore, Value otherwise) {
    return chooseIfBefore(sum, documents, ifBefore, otherwise);
  };
  Value behind =
      rows({from, half}, empty({rowsOfIteration}),
           [](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
             return {arith::AddFOp::create(at, args[0], args[1])};
           })[0];
  Value halved =
      rows({half}, empty({rowsOfIteration}),
           [](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
             return {arith::MulFOp::create(at, args[0], emitConstant(at, 0.5))};
           })[0];
  scf::YieldOp::create(b, ValueRange{choose(behind, from), halved,
                                     choose(sum, loop.getRegionIterArg(2))});
  return {loop.getResult(0), loop.getResult(2)};
}

void DocumentsTiler::findDocuments(ValueRange counts) {
  Type i32 = b.getI32Type();
  AffineExpr d0 = b.getAffineDimExpr(0);
  OpFoldResult numOffsets = affine::makeComposedFoldedAffineApply(
      b, b.getLoc(), d0 + 1, {OpFoldResult(op.getMost())});
  SmallVector<Value> outs;
  for (OpFoldResult size : {numOffsets, OpFoldResult(b.getIndexAttr(1))})
    outs.push_back(
        tensor::EmptyOp::create(b, ArrayRef<OpFoldResult>{size}, i32));
  auto kernel = KernelOp::create(b, ArrayRef<OpFoldResult>{numOffsets},
                                 ArrayRef<int64_t>{rowsOfIteration}, outs);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(kernel.getStore());
  Value first = kernel.getPosition()[0];
  Value documents =
      rows({}, empty({rowsOfIteration}),
           [&](ImplicitLocOpBuilder &at, ValueRange) -> SmallVector<Value> {
             return {emitFloat(at, emitNumber(at, first, 0))};
           })[0];
  auto readCount = [&](ImplicitLocOpBuilder &at, Value counts,
                       Value stretch) -> Value {
    Value exists =
        arith::CmpIOp::create(at, CmpIPredicate::slt, stretch, numAll);
    Value count =
        tensor::ExtractOp::create(at, counts, emitBelow(at, stretch, numAll));
    return arith::SelectOp::create(at, exists, count, emitConstant(at, 0.0));
  };
  // The last 128 stretches before which no more documents begin.
  Value none = filled({rowsOfIteration}, 0.0);
  auto groups =
      scf::ForOp::create(b, constant(0), numAll, constant(rowsOfStretch),
                         ValueRange{none, none, none, none});
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(groups.getBody());
    Value start = groups.getInductionVar();
    Value all = groups.getRegionIterArg(0), less = groups.getRegionIterArg(1),
          before = groups.getRegionIterArg(2),
          group = groups.getRegionIterArg(3);
    auto add = [&](Value sums, Value counts) {
      return addColumns(
          sums, {}, [&](ImplicitLocOpBuilder &at, Value column, ValueRange) {
            return readCount(at, counts,
                             arith::AddIOp::create(at, start, column));
          });
    };
    auto choose = [&](Value ifBefore, Value otherwise) {
      return chooseIfBefore(all, documents, ifBefore, otherwise);
    };
    scf::YieldOp::create(
        b, ValueRange{add(all, counts[0]), add(less, counts[1]),
                      choose(all, before),
                      choose(filledRows(rowsOfIteration, start), group)});
  }
  Value all = groups.getResult(0), less = groups.getResult(1),
        group = groups.getResult(3);
  auto [ofGroup, before] =
      findColumn(groups.getResult(2), documents, group,
                 [&](ImplicitLocOpBuilder &at, Value column, ValueRange ofRow) {
                   return readCount(at, counts[0],
                                    arith::AddIOp::create(
                                        at, emitIndex(at, ofRow[0]), column));
                 });
  // Its batch, and its first row.
  Value stretch = ofGroup;
  Value ofBatch = arith::MaxSIOp::create(b, numStretches, constant(1));
  auto getPosition = [&](bool isBatch) {
    return rows(
        {group, stretch}, empty({rowsOfIteration}),
        [&](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
          Value number =
              emitIndex(at, arith::AddFOp::create(at, args[0], args[1]));
          if (isBatch)
            return {emitFloat(at, arith::DivUIOp::create(at, number, ofBatch))};
          Value inBatch = arith::RemUIOp::create(at, number, ofBatch);
          return {emitFloat(
              at, arith::MulIOp::create(
                      at, inBatch,
                      arith::ConstantIndexOp::create(at, rowsOfStretch)))};
        })[0];
  };
  Value batch = getPosition(true), start = getPosition(false);
  auto [row, upTo] = findColumn(
      before, documents, {batch, start},
      [&](ImplicitLocOpBuilder &at, Value column, ValueRange ofRow) {
        Value number =
            arith::AddIOp::create(at, emitIndex(at, ofRow[1]), column);
        // Behind the last document nothing is looked for.
        Value known = emitBelow(at, emitIndex(at, ofRow[0]), op.getBatches());
        return emitBegins(at, known, number, /*isLess=*/false);
      });
  (void)upTo;
  Value elements = filledRows(rowsOfIteration, numElements);
  Value offsets = rows(
      {all, documents, batch, start, row, elements}, empty({rowsOfIteration}),
      [&](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
        Value number = arith::AddIOp::create(
            at, arith::MulIOp::create(at, emitIndex(at, args[2]), op.getRows()),
            emitIndex(at, arith::AddFOp::create(at, args[3], args[4])));
        Value exists = arith::CmpFOp::create(at, arith::CmpFPredicate::OLT,
                                             args[1], args[0]);
        Value offset =
            arith::SelectOp::create(at, exists, emitFloat(at, number), args[5]);
        return {arith::MinimumFOp::create(at, offset, args[5])};
      })[0];
  Value count = rows(
      {all, less, filledRows(rowsOfIteration, op.getMost())},
      empty({rowsOfIteration}),
      [&](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
        Value zero = emitConstant(at, 0.0);
        Value areFew = arith::CmpFOp::create(at, arith::CmpFPredicate::OLE,
                                             args[0], args[2]),
              areInOrder = arith::CmpFOp::create(at, arith::CmpFPredicate::OEQ,
                                                 args[1], zero);
        Value counts = arith::AndIOp::create(at, areFew, areInOrder);
        return {arith::SelectOp::create(at, counts, args[0], zero)};
      })[0];
  OpFoldResult existing =
      TiledDim{rowsOfIteration, numOffsets}.existing(b, b.getLoc(), first);
  auto toInteger = [&](Value ofRows) {
    return rows(
        ofRows, empty({rowsOfIteration}, i32),
        [&](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
          return {arith::FPToSIOp::create(at, i32, args[0])};
        })[0];
  };
  store(toInteger(offsets), kernel.getDestinations()[0], first, existing,
        kernel);
  // All iterations find the same.
  store(toInteger(count), kernel.getDestinations()[1], b.getIndexAttr(0),
        b.getIndexAttr(1), kernel);
  b.setInsertionPoint(op);
  for (auto [result, found] :
       llvm::zip_equal(op.getResults(), kernel.getResults()))
    result.replaceAllUsesWith(
        b.createOrFold<tensor::CastOp>(result.getType(), found));
}

void DocumentsTiler::run() {
  findDocuments(countStretches());
  op.erase();
}

namespace {
struct TileDocuments : flash::impl::TileDocumentsBase<TileDocuments> {
  void runOnOperation() override {
    SmallVector<DocumentOffsetsOp> ops;
    getOperation().walk([&](DocumentOffsetsOp op) { ops.push_back(op); });
    for (DocumentOffsetsOp op : ops)
      DocumentsTiler(op).run();
  }
};
} // namespace
