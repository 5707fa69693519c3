//===- Diagonals.cpp - Sums of diagonals of shared-memory tiles -----------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One warp adds up the diagonals of a tile, as matrices of 8 x 8 that ldmatrix
// gives it: a lane has two elements of each, always the same ones. So it first
// adds up the matrices along each diagonal of matrices, row after row: that is
// where all the elements are. What is left are matrices, one for each diagonal
// of matrices, whose own diagonals are added by exchanging halves between
// lanes, three times for four of them.
//
//===----------------------------------------------------------------------===//

#include "SharedTile.h"

#include "flash/Schedule/Warpgroups.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace flash;

/// Rows and columns of a matrix, and how many are loaded, and stored, together.
static constexpr int64_t sizeOfMatrix = 8, matricesAtATime = 4;

/// Rows and columns of the matrices that are added up at the same time.
static constexpr int64_t numRows = rowsOfDiagonals / sizeOfMatrix,
                         numColumns = 64 / sizeOfMatrix;

namespace {
/// What a lane has of a matrix: lane 4 * g + t the columns 2 * t and 2 * t + 1
/// of row g.
using Pair = std::array<Value, 2>;

/// Adds up the diagonals of one tile.
class DiagonalSums {
public:
  DiagonalSums(ThreadBuilder t, tile::SmemType type, Value tile, Value output)
      : t(t), b(t.b), type(type), tile(tile), output(output), lane(t.lane()),
        g(t.div(lane, 4)), inRow(t.rem(lane, 4)) {}

  /// Adds up the diagonals of the columns of matrices from `firstColumn` on.
  /// Diagonals that begin behind the first matrix may have sums already, which
  /// are added to.
  void run(int64_t firstColumn);

private:
  /// Adds the matrices of a row to `sums`, one for each of its columns.
  void addRow(Value row, int64_t firstColumn, MutableArrayRef<Pair> sums);
  /// The sum for the lane of the diagonals that begin in four matrices. `sums`
  /// are of diagonals of matrices that follow each other, and `next` is behind
  /// them.
  Value addDiagonals(ArrayRef<Pair> sums, const Pair &next);
  /// Where it goes if `first` is the number of the first of these, its column
  /// less its row.
  Value getAddress(Value first);

  Value isSet(Value x, int64_t bit) {
    Value masked = arith::AndIOp::create(b, t.loc, x, t.constant(bit));
    return arith::CmpIOp::create(b, t.loc, arith::CmpIPredicate::ne, masked,
                                 t.constant(0));
  }
  Value select(Value condition, Value x, Value y) {
    return arith::SelectOp::create(b, t.loc, condition, x, y);
  }
  Value add(Value x, Value y) { return arith::AddFOp::create(b, t.loc, x, y); }
  /// The value of the lane in that row of lanes, and at that number in it.
  Value shuffle(Value x, Value row, Value inRow) {
    Value from = t.add(t.mul(row, 4), t.rem(inRow, 4));
    from = arith::IndexCastOp::create(b, t.loc, b.getI32Type(), from);
    return NVVM::ShflOp::create(b, t.loc, b.getF32Type(), t.i32(-1), x, from,
                                t.i32(31), NVVM::ShflKind::idx, UnitAttr());
  }

  ThreadBuilder t;
  OpBuilder &b;
  tile::SmemType type;
  Value tile, output;
  Value lane, g, inRow;
};
} // namespace

void DiagonalSums::addRow(Value row, int64_t firstColumn,
                          MutableArrayRef<Pair> sums) {
  // Each lane gives the address of a row of one of the four.
  Value elementRow = t.add(t.mul(row, sizeOfMatrix), t.rem(lane, sizeOfMatrix));
  for (int64_t c = 0; c < numColumns; c += matricesAtATime) {
    Value matrix =
        t.add(t.div(lane, sizeOfMatrix), t.constant(firstColumn + c));
    Value offset =
        getElementOffset(t, type, elementRow, t.mul(matrix, sizeOfMatrix));
    SmallVector<Value> loaded = loadMatrices(
        t, t.advance(tile, offset), matricesAtATime, /*transpose=*/false);
    for (auto [sum, matrix] :
         llvm::zip_equal(sums.slice(c, matricesAtATime), loaded))
      for (auto [x, element] :
           llvm::zip_equal(sum, t.extendPair(matrix, type.getElementType())))
        x = add(x, element);
  }
}

Value DiagonalSums::addDiagonals(ArrayRef<Pair> sums, const Pair &next) {
  // Where the column of an element is less than its row, its diagonal begins in
  // the matrix before. So the diagonals that begin in a matrix are in the
  // elements of a matrix again, each in eight.
  SmallVector<Value> x;
  for (int64_t i = 0; i < matricesAtATime; ++i)
    for (int64_t e = 0; e < 2; ++e) {
      Value column = t.add(t.mul(inRow, 2), t.constant(e));
      Value begins =
          arith::CmpIOp::create(b, t.loc, arith::CmpIPredicate::uge, column, g);
      const Pair &behind = i + 1 < matricesAtATime ? sums[i + 1] : next;
      x.push_back(select(begins, sums[i][e], behind[e]));
    }
  // Two lanes whose rows differ in a bit take half of the matrices each. What
  // they have of a diagonal is as many columns apart as rows.
  auto exchange = [&](int64_t bit, Value partner) {
    Value other = isSet(g, bit);
    size_t half = x.size() / 2;
    SmallVector<Value> sums;
    for (size_t i = 0; i < half; ++i) {
      Value kept = select(other, x[half + i], x[i]);
      Value given = select(other, x[i], x[half + i]);
      sums.push_back(
          add(kept, shuffle(given, t.xorWith(g, t.constant(bit)), partner)));
    }
    x = std::move(sums);
  };
  exchange(4, t.add(inRow, t.constant(2)));
  exchange(2, select(isSet(g, 2), t.add(inRow, t.constant(3)),
                     t.add(inRow, t.constant(1))));
  // One column apart: the other element of the same lane or its neighbour.
  Value partner = select(isSet(g, 1), t.add(inRow, t.constant(3)), inRow);
  return add(x[0], shuffle(x[1], t.xorWith(g, t.constant(1)), partner));
}

Value DiagonalSums::getAddress(Value first) {
  Value matrix = t.add(t.add(first, t.div(g, 2)), t.constant(numRows));
  Value diagonal = arith::SubIOp::create(
      b, t.loc, t.add(t.mul(inRow, 2), t.constant(sizeOfMatrix)), g);
  Value index =
      t.add(t.mul(matrix, sizeOfMatrix), t.rem(diagonal, sizeOfMatrix));
  return t.advance(output, t.mul(index, 4));
}

void DiagonalSums::run(int64_t firstColumn) {
  const Pair zeros = {t.f32(0), t.f32(0)};
  auto takePairs = [&](ValueRange values) {
    SmallVector<Pair> pairs;
    for (size_t i = 0; i < values.size(); i += 2)
      pairs.push_back({values[i], values[i + 1]});
    return pairs;
  };
  auto store = [&](Value sum, Value address) {
    LLVM::StoreOp::create(b, t.loc, sum, address, /*alignment=*/4);
  };
  // The sum of a diagonal of matrices is where its matrix of the row is, so it
  // moves by a column with each row. Sums that leave the tile are stored, from
  // the last diagonal to the first.
  int64_t last = firstColumn + numColumns - matricesAtATime;
  bool areOthersBehind =
      last + matricesAtATime < type.getColumns() / sizeOfMatrix;
  SmallVector<Value> state(2 * (numColumns + 1), zeros[0]);
  auto loop = scf::ForOp::create(b, t.loc, t.constant(0), t.constant(numRows),
                                 t.constant(matricesAtATime), state);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    SmallVector<Pair> sums = takePairs(loop.getRegionIterArgs()), left;
    Pair next = sums.pop_back_val();
    Value row = loop.getInductionVar();
    Value address =
        getAddress(arith::SubIOp::create(b, t.loc, t.constant(last), row));
    Value before;
    if (areOthersBehind)
      before = LLVM::LoadOp::create(b, t.loc, b.getF32Type(), address,
                                    /*alignment=*/4);
    for (int64_t r = 0; r < matricesAtATime; ++r) {
      addRow(t.add(row, t.constant(r)), firstColumn, sums);
      left.insert(left.begin(), sums.pop_back_val());
      sums.insert(sums.begin(), zeros);
    }
    Value sum = addDiagonals(left, next);
    store(before ? add(before, sum) : sum, address);
    sums.push_back(left.front());
    SmallVector<Value> values;
    for (const Pair &pair : sums)
      llvm::append_range(values, pair);
    scf::YieldOp::create(b, t.loc, values);
  }
  SmallVector<Pair> sums = takePairs(loop.getResults());
  Pair next = sums.pop_back_val();
  for (int64_t c = numColumns - matricesAtATime; c >= 0; c -= matricesAtATime) {
    ArrayRef<Pair> some = ArrayRef(sums).slice(c, matricesAtATime);
    store(addDiagonals(some, next),
          getAddress(t.constant(firstColumn + c - numRows)));
    next = some.front();
  }
}

static FailureOr<Value>
convertStoreDiagonals(tile::StoreDiagonalsOp op,
                      ManyValues<tile::StoreDiagonalsOp> adaptor,
                      ThreadBuilder &t) {
  GlobalMemory memory(op.getSums().getType(), adaptor.getSums());
  SmallVector<Value> row = getIndices(adaptor.getIndices());
  row.push_back(t.constant(0));
  tile::SmemType type = op.getTile().getType();
  DiagonalSums sums(t, type, adaptor.getTile().front(),
                    memory.getAddress(t, row));
  for (int64_t column = type.getColumns() / sizeOfMatrix - numColumns;
       column >= 0; column -= numColumns)
    sums.run(column);
  return Value();
}

void flash::populateDiagonalPatterns(const TypeConverter &converter,
                                     RewritePatternSet &patterns) {
  addConversions(converter, patterns, /*benefit=*/1, convertStoreDiagonals);
}
