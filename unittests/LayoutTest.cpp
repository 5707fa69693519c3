//===- LayoutTest.cpp - Layouts against their documentation ---------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For many shapes: which thread holds which element of a register tile, and at
// which byte an element of a shared-memory tile lies.
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Tile/IR/Tile.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace flash::tile;

static int64_t numChecks = 0, numFailures = 0;

/// Reports `text` if `condition` does not hold.
static void check(bool condition, const llvm::Twine &text) {
  ++numChecks;
  if (condition)
    return;
  if (++numFailures <= 20)
    llvm::outs() << "FAILED: " << text << "\n";
}

namespace {
/// The warp, lane and register of one element, or a position in a tensor.
using Triple = std::tuple<int64_t, int64_t, int64_t>;
using Position = std::pair<int64_t, int64_t>;

/// A tensor's shape and its holders: all of them, for each position.
class Holders {
public:
  Holders(LayoutAttrInterface layout, ArrayRef<int64_t> shape)
      : name(llvm::formatv("{0}, {1:$[x]}", layout,
                           llvm::make_range(shape.begin(), shape.end()))),
        shape(shape) {
    for (int64_t warp = 0; warp < layout.getNumWarps(); ++warp)
      for (int64_t lane = 0; lane < 32; ++lane)
        for (int64_t i = 0; i < layout.getNumRegisters(shape); ++i)
          add(layout.getThreadPart(warp, lane),
              layout.getRegisterPart(shape, i), {warp, lane, i},
              /*mayExceed=*/isa<WarpRowsAttr>(layout));
  }

  /// Every position inside the shape is held `times` times.
  void checkCount(size_t times) {
    int64_t columns = shape.size() == 2 ? shape[1] : 1;
    check(static_cast<int64_t>(holders.size()) == shape[0] * columns,
          name + ": positions held");
    for (auto &[position, triples] : holders)
      check(triples.size() == times, name + ": holders of a position");
  }

  /// The warp, lane and register of each position are among those of `formula`.
  template <typename Formula> void checkFormula(Formula formula) {
    for (auto &[position, triples] : holders)
      for (const Triple &triple : triples)
        check(formula(position.first, position.second, triple),
              name + ": the documented formula");
  }

private:
  void add(ArrayRef<int64_t> threadPart, ArrayRef<int64_t> registerPart,
           Triple triple, bool mayExceed) {
    check(threadPart.size() == shape.size() &&
              registerPart.size() == shape.size(),
          name + ": rank of the parts");
    Position position = {0, 0};
    position.first = threadPart[0] + registerPart[0];
    if (shape.size() == 2)
      position.second = threadPart[1] + registerPart[1];
    if (mayExceed && position.second >= shape[1])
      return;
    check(position.first >= 0 && position.first < shape[0] &&
              position.second >= 0 &&
              (shape.size() == 1 || position.second < shape[1]),
          name + ": position inside the tensor");
    holders[position].push_back(triple);
  }

  std::string name;
  ArrayRef<int64_t> shape;
  llvm::DenseMap<Position, SmallVector<Triple, 4>> holders;
};
} // namespace

static void testFragment(MLIRContext &context, int64_t W, int64_t M,
                         int64_t N) {
  int64_t shape[] = {M, N};
  Holders holders(FragmentAttr::get(&context, W), shape);
  holders.checkCount(1);
  holders.checkFormula([&](int64_t i, int64_t j, Triple triple) {
    return triple == Triple(i / 16 % W, 4 * (i % 8) + j % 8 / 2,
                            (i / (16 * W) * (N / 8) + j / 8) * 4 +
                                2 * (i / 8 % 2) + j % 2);
  });
}

/// Each row is held by the four lanes that hold its elements of a fragment.
static void testRows(MLIRContext &context, int64_t W, int64_t M) {
  int64_t shape[] = {M};
  Holders holders(RowsAttr::get(&context, W), shape);
  holders.checkCount(4);
  holders.checkFormula([&](int64_t i, int64_t, Triple triple) {
    auto [warp, lane, number] = triple;
    return warp == i / 16 % W && lane / 4 == i % 8 &&
           number == 2 * (i / (16 * W)) + i / 8 % 2;
  });
}

static void testLanes(MLIRContext &context, int64_t W, int64_t M) {
  int64_t shape[] = {M, 4};
  Holders holders(LanesAttr::get(&context, W), shape);
  holders.checkCount(1);
  holders.checkFormula([&](int64_t i, int64_t c, Triple triple) {
    return triple ==
           Triple(i / 16 % W, 4 * (i % 8) + c, 2 * (i / (16 * W)) + i / 8 % 2);
  });
}

static void testWarpRows(MLIRContext &context, int64_t W, int64_t V, int64_t L,
                         int64_t groups, int64_t N) {
  int64_t P = 32 * W / L, blocks = (N + L * V - 1) / (L * V);
  int64_t shape[] = {P * groups, N};
  Holders holders(WarpRowsAttr::get(&context, W, V, L), shape);
  holders.checkCount(1);
  holders.checkFormula([&](int64_t i, int64_t j, Triple triple) {
    int64_t thread = L * (i % P) + j / V % L;
    return triple == Triple(thread / 32, thread % 32,
                            i / P * blocks * V + j / (L * V) * V + j % V);
  });
}

/// Elements do not overlap and lie inside the tile; those of a 16-byte chunk
/// stay together; eight rows of a column of chunks fall into the eight
/// 16-byte groups of banks.
static void testSharedTile(SmemType type) {
  std::string name = llvm::formatv("{0}", type);
  int64_t size = type.getElementBytes(), chunk = 16 / size;
  int64_t columns = type.getNumPanels() * type.getPanelColumns();
  check(columns >= type.getColumns() &&
            columns - type.getColumns() < type.getPanelColumns(),
        name + ": panels hold the columns");
  check(type.getNumBytes() == type.getRows() * columns * size,
        name + ": bytes");
  llvm::DenseSet<int64_t> used;
  for (int64_t row = 0; row < type.getRows(); ++row)
    for (int64_t column = 0; column < columns; ++column) {
      int64_t byte = type.getByteOffset(row, column);
      check(byte >= 0 && byte + size <= type.getNumBytes() && byte % size == 0,
            name + ": inside the tile");
      check(used.insert(byte).second, name + ": an element for itself");
      check(byte == type.getByteOffset(row, column / chunk * chunk) +
                        column % chunk * size,
            name + ": a chunk stays together");
      check(type.getByteOffset(row, column / chunk * chunk) % 16 == 0,
            name + ": chunks are aligned");
    }
  for (int64_t column = 0; column < columns; column += chunk)
    for (int64_t first = 0; first < type.getRows(); first += 8) {
      unsigned banks = 0;
      for (int64_t row = first; row < first + 8; ++row)
        banks |= 1u << type.getByteOffset(row, column) % 128 / 16;
      check(banks == 0xff, name + ": eight rows in different banks");
    }
}

/// The swizzle on whole addresses: bits 4 and up, combined with bits 7 and up.
static void testSwizzle(SmemType type) {
  int64_t bits = type.getSwizzle() == 128 ? 3 : type.getSwizzle() == 64 ? 2 : 1;
  for (int64_t row = 0; row < type.getRows(); ++row)
    for (int64_t column = 0; column < type.getPanelColumns(); ++column) {
      int64_t plain = row * type.getSwizzle() + column * type.getElementBytes();
      int64_t mask = ((1 << bits) - 1) << 4;
      check(type.getByteOffset(row, column) == (plain ^ (plain >> 3 & mask)),
            llvm::formatv("{0}: the documented swizzle", type).str());
    }
}

int main() {
  MLIRContext context;
  context.loadDialect<TileDialect>();
  for (int64_t W : {1, 2, 3, 4, 8, 12})
    for (int64_t blocks : {1, 2, 3}) {
      int64_t M = 16 * W * blocks;
      for (int64_t N : {8, 16, 24, 40, 64, 128, 256})
        testFragment(context, W, M, N);
      testRows(context, W, M);
      testLanes(context, W, M);
    }
  for (auto [W, L] :
       {std::pair(1, 32), {3, 32}, {8, 64}, {8, 256}, {6, 96}, {1, 1}, {4, 8}})
    for (int64_t V : {1, 2, 4, 8})
      for (int64_t N : {1, 31, 100, 256, 777, 2048})
        for (int64_t groups : {1, 3})
          testWarpRows(context, W, V, L, groups, N);
  Builder b(&context);
  for (Type element :
       {Type(b.getF16Type()), Type(b.getBF16Type()), Type(b.getF32Type())})
    for (int64_t rows : {8, 16, 48, 128})
      for (int64_t columns : {8, 16, 24, 32, 40, 64, 72, 128, 192, 256}) {
        SmemType narrowest = SmemType::get(rows, columns, element);
        int64_t bytes = columns * narrowest.getElementBytes();
        check(narrowest.getSwizzle() == (bytes > 64   ? 128
                                         : bytes > 32 ? 64
                                                      : 32),
              "the narrowest swizzle");
        for (int64_t swizzle : {32, 64, 128}) {
          auto type = SmemType::get(&context, rows, columns, element, swizzle);
          testSharedTile(type);
          testSwizzle(type);
        }
      }
  llvm::outs() << numChecks << " checks, " << numFailures << " failures\n";
  return numFailures != 0;
}
