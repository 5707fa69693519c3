//===- AssertShapes.cpp - Check the sizes that types leave open -----------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Analysis/ScoreRegion.h"
#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Dialect/Flash/Transforms/Passes.h"
#include "flash/Support/DescribeLocation.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace flash {
#define GEN_PASS_DEF_ASSERTSHAPES
#include "flash/Dialect/Flash/Transforms/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash;

namespace {
/// A size: a dimension of an operand, or a constant if `tensor` is null.
struct Size {
  Value tensor;
  int64_t dim = 0;
  int64_t constant = ShapedType::kDynamic;

  static Size of(Value tensor, int64_t dim) {
    return {tensor, dim,
            cast<RankedTensorType>(tensor.getType()).getDimSize(dim)};
  }
  static Size known(int64_t constant) { return {Value(), 0, constant}; }
  bool isStatic() const { return !ShapedType::isDynamic(constant); }
  bool isSame(const Size &other) const {
    return (isStatic() && constant == other.constant) ||
           (tensor && tensor == other.tensor && dim == other.dim);
  }
};

/// The least and the greatest number that an index is at some position.
struct Ends {
  Value low, high;
};

class ShapeAsserter {
public:
  explicit ShapeAsserter(AttentionOpInterface op)
      : op(op), b(op), loc(op.getLoc()),
        prefix((op->getName().getStringRef() + describeLocation(loc) + ": ")
                   .str()) {}
  void run();

private:
  Value get(const Size &size) {
    if (size.isStatic())
      return arith::ConstantIndexOp::create(b, loc, size.constant);
    Value &dim = dims[{size.tensor, size.dim}];
    if (!dim)
      dim = tensor::DimOp::create(b, loc, size.tensor, size.dim);
    return dim;
  }
  void assertThat(arith::CmpIPredicate predicate, Value lhs, Value rhs,
                  const Twine &message) {
    Value holds = arith::CmpIOp::create(b, loc, predicate, lhs, rhs);
    cf::AssertOp::create(b, loc, holds, b.getStringAttr(prefix + message));
  }
  void sameSize(const Size &lhs, const Size &rhs, const Twine &what) {
    if (!lhs.isSame(rhs))
      assertThat(arith::CmpIPredicate::eq, get(lhs), get(rhs),
                 what + " differ");
  }
  void headGroups(const Size &queryHeads, const Size &keyHeads);
  void multipleOf(const Size &size, int64_t factor, const Twine &what);
  StringRef nameOfDim(int64_t dim);
  void resultSizes(Value operand, StringRef nameOfOperand,
                   RankedTensorType type, const Twine &name);
  void rowSizes(Value tensor, const Twine &name);
  void gradientSizes(AttentionGradOp grad);
  void pages(UnpageOp view);
  void scales(DequantizeOp dequantize);
  void atLeast(const Size &size, const Size &wanted, Operation *read,
               const Twine &message);
  void blockSizes(Value tiles, ArrayRef<Size> extents);
  void givenBlockSizes(Value list, Value counts, ArrayRef<Size> extents,
                       const Size &rows, int64_t block, StringRef name);
  void readSizes(ArrayRef<Size> extents);
  bool allTakePart();
  std::optional<Ends> findEnds(Value index, ArrayRef<Size> extents,
                               SmallVectorImpl<unsigned> &positions,
                               unsigned &budget);
  bool computedInRange(tensor::ExtractOp extract, unsigned dim,
                       ArrayRef<Size> extents, Value some);

  AttentionOpInterface op;
  OpBuilder b;
  Location loc;
  std::string prefix;
  DenseMap<std::pair<Value, int64_t>, Value> dims;
};
} // namespace

void ShapeAsserter::headGroups(const Size &queryHeads, const Size &keyHeads) {
  bool isStatic = queryHeads.isStatic() && keyHeads.isStatic();
  if (isStatic || keyHeads.constant == 1)
    return;
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  Value divisor = get(keyHeads);
  if (!keyHeads.isStatic()) {
    assertThat(arith::CmpIPredicate::uge, divisor, one, "there is no key head");
    // An assertion need not end the program, a division by zero would.
    divisor = arith::MaxUIOp::create(b, loc, divisor, one);
  }
  if (queryHeads.isSame(keyHeads))
    return;
  Value remainder = arith::RemUIOp::create(b, loc, get(queryHeads), divisor);
  assertThat(arith::CmpIPredicate::eq, remainder,
             arith::ConstantIndexOp::create(b, loc, 0),
             "query heads are not a multiple of key heads");
}

void ShapeAsserter::multipleOf(const Size &size, int64_t factor,
                               const Twine &what) {
  if (size.isStatic() || factor == 1)
    return;
  Value remainder = arith::RemUIOp::create(
      b, loc, get(size), arith::ConstantIndexOp::create(b, loc, factor));
  assertThat(arith::CmpIPredicate::eq, remainder,
             arith::ConstantIndexOp::create(b, loc, 0),
             "the number of " + what + " is not a multiple of " +
                 Twine(factor));
}

/// What a dimension of a tensor with a row for each query is called.
StringRef ShapeAsserter::nameOfDim(int64_t dim) {
  int64_t rank = op.getQuery().getType().getRank();
  return dim == rank - 2                    ? "lengths"
         : op.hasHeads() && dim == rank - 3 ? "head counts"
                                            : "batch sizes";
}

/// Checks the static sizes of a result that follow from dynamic sizes of
/// `operand`; its other sizes are static in both or follow from the operands.
void ShapeAsserter::resultSizes(Value operand, StringRef nameOfOperand,
                                RankedTensorType type, const Twine &name) {
  int64_t dims =
      std::min(type.getRank(), op.getQuery().getType().getRank() - 1);
  for (int64_t dim = 0; dim < dims; ++dim)
    if (Size declared = Size::known(type.getDimSize(dim)); declared.isStatic())
      sameSize(Size::of(operand, dim), declared,
               nameOfDim(dim) + " of " + nameOfOperand + " and " + name);
}

/// Checks an operand of the gradients that has a row for each query.
void ShapeAsserter::rowSizes(Value tensor, const Twine &name) {
  for (int64_t dim = 0; dim + 1 < op.getQuery().getType().getRank(); ++dim)
    sameSize(Size::of(op.getQuery(), dim), Size::of(tensor, dim),
             nameOfDim(dim) + " of query and " + name);
}

/// Checks what the gradients have beside the operands of the attention.
void ShapeAsserter::gradientSizes(AttentionGradOp grad) {
  rowSizes(grad.getOutput(), "output");
  rowSizes(grad.getLse(), "log-sum-exp");
  rowSizes(grad.getOutputGrad(), "gradient of the output");
  if (grad.getLseGrad())
    rowSizes(grad.getLseGrad(), "gradient of the log-sum-exp");
  for (auto [operand, name, result] :
       {std::tuple(grad.getQuery(), "query", grad.getQueryGrad()),
        {grad.getKey(), "key", grad.getKeyGrad()},
        {grad.getValue(), "value", grad.getValueGrad()}})
    resultSizes(operand, name, result.getType(), "its gradient");
  auto vectorSizes = [&](Value operand, Value result, const Twine &what) {
    auto type = cast<RankedTensorType>(result.getType());
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      if (!type.isDynamicDim(dim))
        sameSize(Size::of(operand, dim), Size::known(type.getDimSize(dim)),
                 "sizes of " + what + " and its gradient");
  };
  if (grad.getSink())
    vectorSizes(grad.getSink(), grad.getSinkGrad(), "the sink");
  for (auto [number, operand, result] :
       llvm::enumerate(grad.getCaptured(), grad.getCapturedGrads()))
    vectorSizes(operand, result, "tensor #" + Twine(number) + " of wrt");
}

/// The name that the program has for an argument, where it is known.
static std::string describeName(Value tensor) {
  auto argument = dyn_cast_or_null<BlockArgument>(tensor);
  auto name = argument ? dyn_cast<NameLoc>(argument.getLoc()) : NameLoc();
  return name ? " of %" + name.getName().str() : "";
}

/// Checks that a dimension that `read` reads has `wanted` elements.
void ShapeAsserter::atLeast(const Size &size, const Size &wanted,
                            Operation *read, const Twine &message) {
  if (size.isSame(wanted) || (size.isStatic() && wanted.isStatic() &&
                              size.constant >= wanted.constant))
    return;
  assertThat(arith::CmpIPredicate::uge, get(size), get(wanted),
             read->getName().getStringRef() + describeLocation(read->getLoc()) +
                 " reads dimension " + Twine(size.dim) +
                 describeName(size.tensor) + message);
}

/// Checks that a block map is of the attention's sizes, or of one batch or head
/// for all.
void ShapeAsserter::blockSizes(Value tiles, ArrayRef<Size> extents) {
  auto map = tiles ? tiles.getDefiningOp<BlockMapOp>() : BlockMapOp();
  if (!map)
    return;
  const StringRef names[] = {"batches", "heads", "queries", "keys"};
  for (auto [size, extent, name] :
       llvm::zip_equal(map.getMixedSizes(), extents, names)) {
    std::optional<int64_t> known = getConstantIntValue(size);
    if (known && (*known == extent.constant ||
                  (*known == 1 && (name == "batches" || name == "heads"))))
      continue;
    assertThat(arith::CmpIPredicate::eq,
               getValueOrCreateConstantIndexOp(b, loc, size), get(extent),
               "the block map is of another number of " + name);
  }
}

/// Checks that lists of blocks that a caller gives, and their counts, are of
/// the attention's batches and heads, or of one for all, and of as many blocks
/// as there are of `block` rows.
void ShapeAsserter::givenBlockSizes(Value list, Value counts,
                                    ArrayRef<Size> extents, const Size &rows,
                                    int64_t block, StringRef name) {
  const StringRef names[] = {"batches", "heads"};
  for (auto [dim, of, extent] : llvm::enumerate(names, extents.take_front(2))) {
    Size size = Size::of(list, dim);
    sameSize(size, Size::of(counts, dim),
             "numbers of " + of + " of " + name + " and their counts");
    if (size.isSame(extent) || size.constant == 1)
      continue;
    Value isOne = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                        get(size), get(Size::known(1)));
    Value isSame = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                         get(size), get(extent));
    cf::AssertOp::create(
        b, loc, arith::OrIOp::create(b, loc, isOne, isSame),
        b.getStringAttr(prefix + name + " are of another number of " + of));
  }
  OpFoldResult numBlocks = affine::makeComposedFoldedAffineApply(
      b, loc, b.getAffineDimExpr(0).ceilDiv(block), {get(rows)});
  for (Value tensor : {list, counts})
    if (Size size = Size::of(tensor, 2);
        !size.isStatic() || getConstantIntValue(numBlocks) != size.constant)
      assertThat(arith::CmpIPredicate::eq, get(size),
                 getValueOrCreateConstantIndexOp(b, loc, numBlocks),
                 name + " are of another number of blocks");
  sameSize(Size::of(counts, 3), Size::known(2),
           "the number of counts of " + name + " and 2");
}

/// Checks that a given map has as many tiles as its sizes require.
static void givenSizes(BlockMapOp map) {
  ImplicitLocOpBuilder b(map.getLoc(), map);
  SmallVector<OpFoldResult> sizes = map.getMixedSizes();
  AffineExpr size = b.getAffineDimExpr(0);
  std::tuple<StringRef, AffineExpr> wanted[] = {
      {"batches", size},
      {"heads", size.floorDiv(map.getPackedHeads())},
      {"tiles of queries", size.ceilDiv(map.getQueryTile())},
      {"tiles of keys", size.ceilDiv(map.getKeyTile())}};
  if (map.getOverQueries()) {
    std::swap(wanted[2], wanted[3]);
    std::swap(sizes[2], sizes[3]);
  }
  int64_t ofTile = map.getRanks() ? BlockMapOp::numbersOfRun : 1;
  for (auto [given, ofLast] : {std::pair(map.getGivenTiles(), ofTile),
                               {map.getGivenCounts(), 1},
                               {map.getGivenRanks(), 1}}) {
    if (!given)
      continue;
    auto type = cast<RankedTensorType>(given.getType());
    for (int64_t dim = 0; dim < type.getRank(); ++dim) {
      if (!type.isDynamicDim(dim))
        continue;
      auto [name, number] = wanted[dim];
      if (dim + 1 == type.getRank())
        number = number * ofLast;
      Value expected = getValueOrCreateConstantIndexOp(
          b, b.getLoc(),
          affine::makeComposedFoldedAffineApply(b, b.getLoc(), number,
                                                {sizes[dim]}));
      Value holds =
          arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                tensor::DimOp::create(b, given, dim), expected);
      cf::AssertOp::create(
          b, holds,
          (map->getName().getStringRef() + describeLocation(map.getLoc()) +
           ": the map that is given is of another number of " + name)
              .str());
    }
  }
}

/// Whether every element takes part, whatever arrays hold.
bool ShapeAsserter::allTakePart() {
  bool hasMap = llvm::any_of(op->getOperands(), [](Value operand) {
    return operand.getDefiningOp<BlockMapOp>() != nullptr;
  });
  return !hasMap && !op.getBlockSizes() && !op.getMask() && !op.getLengths() &&
         !op.getQueryLengths() && !op.getKeyLengths() &&
         !masksElements(op.getScore()) &&
         getMaskingChoices(op.getScore().front()).outermostFirst.empty();
}

/// Whether an op of two integers (for some ops the second must be a constant)
/// grows with both.
static bool growsWithBoth(Operation *op) {
  if (isa<arith::AddIOp, arith::MinSIOp, arith::MaxSIOp>(op))
    return true;
  std::optional<int64_t> by = op->getNumOperands() == 2
                                  ? getConstantIntValue(op->getOperand(1))
                                  : std::nullopt;
  return by && *by > 0 &&
         isa<arith::MulIOp, arith::FloorDivSIOp, arith::DivSIOp>(op);
}

/// The ends of an index that uses each position at most once, so that they are
/// exact. `positions` gets the positions that it uses.
std::optional<Ends>
ShapeAsserter::findEnds(Value index, ArrayRef<Size> extents,
                        SmallVectorImpl<unsigned> &positions,
                        unsigned &budget) {
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  if (std::optional<int64_t> constant = getConstantIntValue(index))
    return Ends{number(*constant), number(*constant)};
  if (auto argument = dyn_cast<BlockArgument>(index)) {
    // The score comes before the positions.
    if (argument.getArgNumber() == 0 ||
        llvm::is_contained(positions, argument.getArgNumber() - 1))
      return std::nullopt;
    positions.push_back(argument.getArgNumber() - 1);
    return Ends{number(0), b.createOrFold<arith::SubIOp>(
                               loc, get(extents[positions.back()]), number(1))};
  }
  // Shared operands are looked at for each user.
  if (budget-- == 0)
    return std::nullopt;
  Operation *computed = index.getDefiningOp();
  SmallVector<Ends> ends;
  for (Value operand : computed->getOperands()) {
    if (!operand.getType().isIntOrIndex())
      return std::nullopt;
    std::optional<Ends> found = findEnds(operand, extents, positions, budget);
    if (!found)
      return std::nullopt;
    ends.push_back(*found);
  }
  if (isa<arith::IndexCastOp, arith::ExtSIOp>(computed))
    return ends[0];
  if (growsWithBoth(computed)) {
    auto compute = [&](Value left, Value right) {
      Operation *copy = b.clone(*computed);
      copy->setOperands({left, right});
      copy->getResult(0).setType(b.getIndexType());
      SmallVector<Value> folded;
      if (failed(b.tryFold(copy, folded)) || folded.empty())
        return Value(copy->getResult(0));
      copy->erase();
      return folded.front();
    };
    return Ends{compute(ends[0].low, ends[1].low),
                compute(ends[0].high, ends[1].high)};
  }
  if (isa<arith::SubIOp>(computed))
    return Ends{b.createOrFold<arith::SubIOp>(loc, ends[0].low, ends[1].high),
                b.createOrFold<arith::SubIOp>(loc, ends[0].high, ends[1].low)};
  // All remainders up to the greatest are reached from a position.
  if (isa<arith::RemSIOp, arith::RemUIOp>(computed) &&
      isa<BlockArgument>(computed->getOperand(0)))
    if (auto by = getConstantIntValue(computed->getOperand(1)); by && *by > 0)
      return Ends{ends[0].low, b.createOrFold<arith::MinSIOp>(loc, ends[0].high,
                                                              number(*by - 1))};
  return std::nullopt;
}

/// Checks a computed index, as far as sizes alone say what it is; `some` is one
/// if the attention has an element. False where they do not.
bool ShapeAsserter::computedInRange(tensor::ExtractOp extract, unsigned dim,
                                    ArrayRef<Size> extents, Value some) {
  SmallVector<unsigned> positions;
  unsigned budget = 64;
  std::optional<Ends> ends =
      findEnds(extract.getIndices()[dim], extents, positions, budget);
  // Elements that take no part may have any indices by query and key.
  bool isOfHeads = llvm::all_of(positions, [](unsigned at) { return at < 2; });
  if (!ends || (!isOfHeads && !allTakePart()))
    return false;
  std::string what =
      (extract->getName().getStringRef() + describeLocation(extract.getLoc()) +
       " reads dimension " + Twine(dim) + describeName(extract.getTensor()))
          .str();
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  auto isAtMost = [&](Value smaller, Value larger) {
    return b.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::sle,
                                         smaller, larger);
  };
  auto assertUnlessEmpty = [&](Value number, bool isCount, Value bound,
                               const Twine &message) {
    auto check = [&](Value each) {
      return isCount ? isAtMost(each, bound) : isAtMost(bound, each);
    };
    if (getConstantIntValue(check(number)).value_or(0) != 0)
      return;
    Value holds = check(b.createOrFold<arith::MulIOp>(loc, some, number));
    cf::AssertOp::create(b, loc, holds,
                         b.getStringAttr(prefix + what + message));
  };
  assertUnlessEmpty(ends->low, /*isCount=*/false, zero, " at a negative index");
  Value count = b.createOrFold<arith::AddIOp>(
      loc, ends->high, arith::ConstantIndexOp::create(b, loc, 1));
  assertUnlessEmpty(count, /*isCount=*/true,
                    get(Size::of(extract.getTensor(), dim)), " beyond its end");
  return true;
}

/// Checks the arrays that the score region reads. Where an index is computed
/// from the query or key, elements that do not take part read the first.
void ShapeAsserter::readSizes(ArrayRef<Size> extents) {
  for (const PositionRead &read : op.getPositionReads())
    atLeast(Size::of(read.extract->getOperand(0), read.dim),
            read.extentOf ? Size::of(read.extentOf, read.extentDim)
                          : Size::known(1),
            read.extract,
            " at the index of the " + read.name + ", beyond its end");
  if (op.getScore().empty())
    return;
  Value some; // One if the attention has an element.
  for (auto extract : op.getScore().front().getOps<tensor::ExtractOp>())
    for (auto [dim, index] : llvm::enumerate(extract.getIndices())) {
      Size size = Size::of(extract.getTensor(), dim);
      if (std::optional<int64_t> constant = getConstantIntValue(index)) {
        atLeast(size, Size::known(*constant + 1), extract,
                " at " + Twine(*constant) + ", which it does not have");
        continue;
      }
      if (auto position = dyn_cast<BlockArgument>(index);
          position && !op.getLengthsOf(position))
        continue;
      if (!some) {
        some = arith::ConstantIndexOp::create(b, loc, 1);
        for (const Size &extent : extents)
          if (!extent.isStatic() || extent.constant == 0)
            some = arith::MinUIOp::create(b, loc, some, get(extent));
      }
      if (computedInRange(extract, dim, extents, some) ||
          (size.isStatic() && size.constant > 0))
        continue;
      assertThat(arith::CmpIPredicate::uge, get(size), some,
                 extract->getName().getStringRef() +
                     describeLocation(extract.getLoc()) + " reads dimension " +
                     Twine(dim) + describeName(extract.getTensor()) +
                     ", which is empty");
    }
}

/// Entries of the table are clamped to the pages, so there must be a page.
void ShapeAsserter::pages(UnpageOp view) {
  Size pages = Size::of(view.getMemory(), 0);
  if (pages.isStatic() && pages.constant > 0)
    return;
  Value most =
      arith::MinUIOp::create(b, loc, get(Size::of(view.getTable(), 1)),
                             arith::ConstantIndexOp::create(b, loc, 1));
  assertThat(arith::CmpIPredicate::ule, most, get(pages),
             "the table has room for pages, and there is none");
}

void ShapeAsserter::scales(DequantizeOp dequantize) {
  static constexpr StringLiteral names[] = {"batch sizes", "head counts",
                                            "lengths"};
  Value scale = dequantize.getScale();
  int64_t rank = dequantize.getScale().getType().getRank();
  for (int64_t dim = 0; rank > 1 && dim < rank; ++dim)
    sameSize(Size::of(dequantize.getResult(), dim), Size::of(scale, dim),
             names[dim] + " of keys or values and their scales");
}

void ShapeAsserter::run() {
  Value query = op.getQuery(), key = op.getKey(), value = op.getValue();
  int64_t rank = op.getQuery().getType().getRank();
  Size batch = Size::known(1), queryHeads = Size::known(1);
  if (op.hasBatch()) {
    batch = Size::of(query, 0);
    sameSize(batch, Size::of(key, 0), "batch sizes of query and key");
    sameSize(batch, Size::of(value, 0), "batch sizes of query and value");
  }
  if (op.hasHeads()) {
    queryHeads = Size::of(query, rank - 3);
    Size keyHeads = Size::of(key, rank - 3);
    sameSize(keyHeads, Size::of(value, rank - 3),
             "head counts of key and value");
    headGroups(queryHeads, keyHeads);
  }
  sameSize(Size::of(key, rank - 2), Size::of(value, rank - 2),
           "lengths of key and value");
  for (Value rows : {key, value})
    if (auto dequantize = rows.getDefiningOp<DequantizeOp>())
      scales(dequantize);
  for (Value rows : {key, value})
    if (UnpageOp view = UnpageOp::ofRows(rows))
      pages(view);
  for (Value lengths :
       {op.getLengths(), op.getQueryLengths(), op.getKeyLengths()})
    if (lengths)
      sameSize(batch, Size::of(lengths, 0), "batch size and number of lengths");
  if (op.getSink())
    sameSize(queryHeads, Size::of(op.getSink(), 0),
             "query heads and number of sinks");
  if (op.getMultiples()) {
    multipleOf(Size::of(query, rank - 2), op.getMultiples()->front(),
               "queries");
    multipleOf(Size::of(key, rank - 2), op.getMultiples()->back(), "keys");
  }
  SmallVector<Size> extents = {batch, queryHeads, Size::of(query, rank - 2),
                               Size::of(key, rank - 2)};
  if (auto attention = dyn_cast<AttentionOp>(op.getOperation())) {
    blockSizes(attention.getKeyTiles(), extents);
    if (auto blocks = op.getBlockSizes())
      givenBlockSizes(attention.getKeyTiles(), attention.getTileCounts(),
                      extents, extents[2], (*blocks)[0], "blocks");
    resultSizes(query, "query", attention.getOutput().getType(), "output");
    if (attention.getLse())
      resultSizes(query, "query", attention.getLse().getType(), "log-sum-exp");
  }
  if (auto grad = dyn_cast<AttentionGradOp>(op.getOperation())) {
    blockSizes(grad.getKeyTiles(), extents);
    blockSizes(grad.getQueryTiles(), extents);
    if (auto blocks = op.getBlockSizes()) {
      givenBlockSizes(grad.getKeyTiles(), grad.getKeyTileCounts(), extents,
                      extents[2], (*blocks)[0], "blocks");
      givenBlockSizes(grad.getQueryTiles(), grad.getQueryTileCounts(), extents,
                      extents[3], (*blocks)[1], "query_blocks");
    }
    gradientSizes(grad);
  }
  readSizes(extents);
}

namespace {
struct AssertShapes : flash::impl::AssertShapesBase<AssertShapes> {
  void runOnOperation() override {
    getOperation().walk(
        [](AttentionOpInterface op) { ShapeAsserter(op).run(); });
    getOperation().walk([](BlockMapOp map) {
      if (map.getGivenTiles())
        givenSizes(map);
    });
  }
};
} // namespace
