//===- Specialize.cpp - A program for calls of certain sizes --------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TunedSchedules.h"

#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Dialect/Flash/Transforms/GetProblem.h"
#include "flash/Dialect/Flash/Transforms/Passes.h"
#include "flash/Machine/TargetAttr.h"
#include "flash/Schedule/Models.h"
#include "flash/Schedule/SizeClass.h"
#include "flash/Schedule/SplitKV.h"
#include "flash/Schedule/Warpgroups.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

namespace flash {
#define GEN_PASS_DEF_SPECIALIZE
#include "flash/Dialect/Flash/Transforms/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash;

// Tiles with more queries have no registers left for a number of splits that
// is known at run time only.
static constexpr int64_t mostQueriesOfOpenSplits = 64;

using Sizes = SmallVector<int64_t>;

/// Reads "2x8x?x64"; `?` is a size that stays open. A tensor without dimensions
/// has no sizes.
static std::optional<Sizes> parseSizes(StringRef text) {
  Sizes sizes;
  SmallVector<StringRef> parts;
  if (!text.empty())
    text.split(parts, 'x');
  for (StringRef part : parts) {
    int64_t size;
    if (part == "?")
      sizes.push_back(ShapedType::kDynamic);
    else if (part.getAsInteger(10, size) || size < 0)
      return std::nullopt;
    else
      sizes.push_back(size);
  }
  return sizes;
}

/// Whether schedules can be chosen for such a query or key. How many tiles
/// there are in all decides how GPUs split the keys; CPUs need the lengths
/// alone.
static bool isKnown(ArrayRef<int64_t> sizes, const Machine &machine) {
  if (machine.isGpu())
    return llvm::none_of(sizes, ShapedType::isDynamic);
  return !ShapedType::isDynamic(sizes[sizes.size() - 2]);
}

namespace {
struct Specialize : flash::impl::SpecializeBase<Specialize> {
  using Base::Base;

  LogicalResult readSizes(func::FuncOp func);
  /// The sizes of a tensor in the calls, where some may stay open; nothing
  /// where none is known.
  std::optional<Sizes> getSizes(Value tensor);
  /// The sizes of an op's query and key; nothing where they, or their heads
  /// alone if only these count, are not known, or none that the op can have.
  struct Operands {
    Sizes query, key;
  };
  std::optional<Operands> getOperands(AttentionOpInterface op,
                                      bool onlyHeads = false);
  /// The sizes that stand for the classes of these. Numbers of heads, which
  /// have to divide each other, stay.
  static Operands getTypicalSizes(AttentionOpInterface op, Operands sizes);
  /// Writes into the types what the layout of tiles depends on.
  void fixTypes(AttentionOp op);
  void fixHeads(AttentionOp op);
  /// Writes the numbers of heads into the types, and of the query what else is
  /// among the dimensions.
  void refineOperands(AttentionOp op, const Operands &sizes,
                      ArrayRef<int64_t> dimsOfQuery);
  void refineArgument(Value tensor, ArrayRef<int64_t> sizes,
                      ArrayRef<int64_t> dims);
  LogicalResult select(AttentionOp op);
  void fixTypes(AttentionGradOp op, const Operands &sizes);
  LogicalResult select(AttentionGradOp op);
  func::FuncOp copyForCalls(AttentionOp op);
  void setMultiples(AttentionOp op, const Schedule &schedule);
  void openSplits(Schedule &schedule, const Problem &problem);
  void runOnOperation() override;

  SmallVector<Sizes> ofArguments;
  Machine machine;
  Schedule givenSchedule;
  /// Measured schedules of gradients.
  TunedSchedules tuned;
};
} // namespace

/// The view of an argument whose rows lie behind each other, or null.
static UnpackOp getUnpack(Value argument) {
  for (Operation *user : argument.getUsers())
    if (auto unpack = dyn_cast<UnpackOp>(user);
        unpack && unpack.getMemory() == argument)
      return unpack;
  return {};
}

LogicalResult Specialize::readSizes(func::FuncOp func) {
  ofArguments.clear();
  if (sizes.size() > func.getNumArguments())
    return func.emitOpError("takes ")
           << func.getNumArguments() << " arguments, and sizes are given for "
           << sizes.size();
  for (auto [number, text] : llvm::enumerate(sizes)) {
    std::optional<Sizes> given = parseSizes(text);
    if (!given)
      return func.emitOpError("cannot be specialized: '")
             << text
             << "' are no sizes; write them as 2x8x?x64, with ? for what stays "
                "open";
    auto type = dyn_cast<RankedTensorType>(func.getArgument(number).getType());
    // Rows that lie behind each other are given as a batch of sequences of the
    // mean length.
    if (UnpackOp unpack = getUnpack(func.getArgument(number)))
      type = unpack.getView().getType();
    bool fits =
        type && type.getRank() == static_cast<int64_t>(given->size()) &&
        llvm::all_of(llvm::zip_equal(type.getShape(), *given), [](auto pair) {
          auto [known, size] = pair;
          return ShapedType::isDynamic(known) || ShapedType::isDynamic(size) ||
                 known == size;
        });
    if (!fits)
      return func.emitOpError("has an argument ")
             << number << " of type " << func.getArgument(number).getType()
             << ", which is never of the sizes " << text;
    for (auto [known, size] : llvm::zip_equal(type.getShape(), *given))
      if (!ShapedType::isDynamic(known))
        size = known;
    ofArguments.push_back(*given);
  }
  return success();
}

std::optional<Sizes> Specialize::getSizes(Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (type.hasStaticShape())
    return Sizes(type.getShape());
  if (auto argument = dyn_cast<BlockArgument>(tensor)) {
    if (!isa<func::FuncOp>(argument.getOwner()->getParentOp()) ||
        argument.getArgNumber() >= ofArguments.size())
      return std::nullopt;
    return ofArguments[argument.getArgNumber()];
  }
  if (auto cast = tensor.getDefiningOp<tensor::CastOp>())
    return getSizes(cast.getSource());
  if (auto dequantize = tensor.getDefiningOp<DequantizeOp>())
    return getSizes(dequantize.getSource());
  if (auto unpack = tensor.getDefiningOp<UnpackOp>())
    return getSizes(unpack.getMemory());
  if (auto unpage = tensor.getDefiningOp<UnpageOp>()) {
    std::optional<Sizes> sizes = getSizes(unpage.getMemory()),
                         table = getSizes(unpage.getTable());
    if (!sizes || !table)
      return std::nullopt;
    int64_t columns = table->back();
    sizes->front() = table->front();
    (*sizes)[2] =
        ShapedType::isDynamic(columns) ? columns : (*sizes)[2] * columns;
    return sizes;
  }
  if (auto op = tensor.getDefiningOp<AttentionOp>()) {
    std::optional<Sizes> sizes = getSizes(op.getQuery());
    if (sizes && tensor == op.getOutput())
      sizes->back() = op.getValueDim();
    return sizes;
  }
  return std::nullopt;
}

static void setDim(Value tensor, int64_t dim, int64_t size) {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = size;
  tensor.setType(type.clone(shape));
}

void Specialize::refineArgument(Value tensor, ArrayRef<int64_t> sizes,
                                ArrayRef<int64_t> dims) {
  if (auto dequantize = tensor.getDefiningOp<DequantizeOp>()) {
    refineArgument(dequantize.getSource(), sizes, dims);
    if (auto open = dequantize.getSource().getDefiningOp<tensor::CastOp>())
      dequantize->replaceUsesOfWith(open, open.getSource());
    dequantize.getResult().setType(dequantize.getSource().getType().clone(
        dequantize.getResult().getType().getElementType()));
    return;
  }
  auto address = tensor.getDefiningOp<AddressOpInterface>();
  if (address && !address.isStore()) {
    constexpr int64_t heads = 1;
    refineArgument(address.getMemory(), sizes, heads);
    if (auto open = address.getMemory().getDefiningOp<tensor::CastOp>())
      address->replaceUsesOfWith(open, open.getSource());
    setDim(address.getView(), heads,
           address.getMemory().getType().getDimSize(heads));
    return;
  }
  auto argument = dyn_cast<BlockArgument>(tensor);
  if (!argument)
    return;
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<int64_t> shape(type.getShape());
  for (int64_t dim : dims)
    shape[dim] = sizes[dim];
  if (ArrayRef<int64_t>(shape) == type.getShape())
    return;
  OpBuilder b(argument.getOwner(), argument.getOwner()->begin());
  argument.setType(type.clone(shape));
  auto open = tensor::CastOp::create(b, argument.getLoc(), type, argument);
  argument.replaceAllUsesExcept(open, open);
  auto func = cast<func::FuncOp>(argument.getOwner()->getParentOp());
  func.setFunctionType(
      b.getFunctionType(argument.getOwner()->getArgumentTypes(),
                        func.getFunctionType().getResults()));
}

/// Gives a result a less open type, and those who use it the one that it had.
static void refineResult(OpBuilder &b, Value result, RankedTensorType refined) {
  auto type = cast<RankedTensorType>(result.getType());
  result.setType(refined);
  OpBuilder::InsertionGuard guard(b);
  // What is packed has as many heads.
  if (AddressOpInterface address = AddressOpInterface::ofStored(result)) {
    constexpr int64_t heads = 1;
    auto pack = cast<PackOp>(*address);
    type = pack.getMemory().getType();
    SmallVector<int64_t> ofMemory(type.getShape());
    ofMemory[heads] = refined.getDimSize(heads);
    b.setInsertionPoint(pack);
    pack.getMemoryMutable().assign(tensor::CastOp::create(
        b, pack.getLoc(), type.clone(ofMemory), pack.getMemory()));
    result = pack.getResult();
    result.setType(type.clone(ofMemory));
    b.setInsertionPointAfter(pack);
  }
  auto open = tensor::CastOp::create(b, result.getLoc(), type, result);
  result.replaceAllUsesExcept(open, open);
}

/// Takes operands with the types that they have before casts to more open ones,
/// and gives the results the types that follow.
static void refineTypes(AttentionOp op) {
  for (OpOperand *operand :
       {&op.getQueryMutable(), &op.getKeyMutable(), &op.getValueMutable()})
    if (auto open = operand->get().getDefiningOp<tensor::CastOp>();
        open && tensor::canFoldIntoConsumerOp(open))
      operand->set(open.getSource());
  OpBuilder b(op->getContext());
  b.setInsertionPointAfter(op);
  ArrayRef<int64_t> ofQuery = op.getQuery().getType().getShape();
  for (Value result : op->getResults()) {
    auto type = cast<RankedTensorType>(result.getType());
    Sizes shape(type.getShape());
    for (size_t dim = 0; dim + 1 < ofQuery.size(); ++dim)
      if (ShapedType::isDynamic(shape[dim]))
        shape[dim] = ofQuery[dim];
    if (ArrayRef<int64_t>(shape) == type.getShape())
      continue;
    refineResult(b, result, type.clone(shape));
  }
}

/// Erases casts of the function of `op` that nothing uses.
static void eraseUnusedCasts(Operation *op) {
  op->getParentOfType<func::FuncOp>().walk([](tensor::CastOp cast) {
    if (cast->use_empty())
      cast.erase();
  });
}

std::optional<Specialize::Operands>
Specialize::getOperands(AttentionOpInterface op, bool onlyHeads) {
  std::optional<Sizes> query = getSizes(op.getQuery()),
                       key = getSizes(op.getKey());
  if (!query || !key)
    return std::nullopt;
  if (!onlyHeads && (!isKnown(*query, machine) || !isKnown(*key, machine) ||
                     (op.hasBatch() && query->front() != key->front())))
    return std::nullopt;
  if (op.hasHeads()) {
    int64_t heads = (*query)[query->size() - 3],
            keyHeads = (*key)[query->size() - 3];
    bool isOpen =
        ShapedType::isDynamic(heads) || ShapedType::isDynamic(keyHeads);
    if (!isOpen && (keyHeads == 0 || heads % keyHeads != 0))
      return std::nullopt;
  }
  return Operands{*query, *key};
}

Specialize::Operands Specialize::getTypicalSizes(AttentionOpInterface op,
                                                 Operands sizes) {
  for (Sizes *shape : {&sizes.query, &sizes.key})
    for (auto [dim, size] : llvm::enumerate(*shape))
      if (!op.hasHeads() || dim != shape->size() - 3)
        size = getTypicalSize(size);
  return sizes;
}

void Specialize::refineOperands(AttentionOp op, const Operands &sizes,
                                ArrayRef<int64_t> dimsOfQuery) {
  int64_t heads = sizes.key.size() - 3;
  refineArgument(op.getQuery(), sizes.query, dimsOfQuery);
  refineArgument(op.getKey(), sizes.key, {heads});
  refineArgument(op.getValue(), sizes.key, {heads});
  refineTypes(op);
  eraseUnusedCasts(op);
}

/// Packed rows of any lengths over pages share tiles with the rows of other
/// heads if the number of heads is known.
void Specialize::fixHeads(AttentionOp op) {
  auto unpack = op.getQuery().getDefiningOp<UnpackOp>();
  UnpageOp unpage = UnpageOp::ofRows(op.getKey());
  if (!machine.isGpu() || !unpack || !unpage)
    return;
  constexpr int64_t heads = 1;
  auto getHeads = [&](Value memory) {
    auto argument = dyn_cast<BlockArgument>(memory);
    return argument && argument.getArgNumber() < ofArguments.size()
               ? ofArguments[argument.getArgNumber()][heads]
               : ShapedType::kDynamic;
  };
  Sizes query(4, getHeads(unpack.getMemory())),
      key(4, getHeads(unpage.getMemory()));
  if (ShapedType::isDynamic(query[heads]) || key[heads] <= 0 ||
      query[heads] == key[heads] || query[heads] % key[heads] != 0)
    return;
  refineOperands(op, {query, key}, {heads});
}

void Specialize::fixTypes(AttentionOp op) {
  std::optional<Operands> sizes = getOperands(op);
  if (!sizes)
    return fixHeads(op);
  if (!op.hasHeads())
    return;
  auto &[query, key] = *sizes;
  int64_t heads = query.size() - 3, queries = heads + 1;
  // The heads of a group are packed where it is known how many there are.
  if (query[queries] > mostPackedQueries || query[heads] == key[heads] ||
      ShapedType::isDynamic(query[heads]) || ShapedType::isDynamic(key[heads]))
    return;
  refineOperands(op, *sizes, {heads, queries});
}

/// The first columns of `rows`, as many as `type` has; sizes may be open.
static Value takeColumns(OpBuilder &b, Value rows, RankedTensorType type) {
  if (rows.getType() == type)
    return rows;
  SmallVector<OpFoldResult> offsets(type.getRank(), b.getIndexAttr(0)),
      strides(type.getRank(), b.getIndexAttr(1)),
      sizes = tensor::getMixedSizes(b, rows.getLoc(), rows);
  sizes.back() = b.getIndexAttr(type.getShape().back());
  return tensor::ExtractSliceOp::create(b, rows.getLoc(), type, rows, offsets,
                                        sizes, strides);
}

/// A function that computes `op` for tensors of typical sizes; null where the
/// sizes are not known, or none that the op can have.
func::FuncOp Specialize::copyForCalls(AttentionOp op) {
  std::optional<Operands> sizes = getOperands(op);
  if (!sizes)
    return nullptr;
  auto [query, key] = getTypicalSizes(op, *sizes);
  query.back() = key.back() = op.getHeadDim();
  Sizes value = key, output = query;
  value.back() = output.back() = op.getValueDim();

  auto open = [](Value tensor) {
    auto type = cast<RankedTensorType>(tensor.getType());
    return type.clone(Sizes(type.getRank(), ShapedType::kDynamic));
  };
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op.getScore(), captured);
  SmallVector<Value> from(op->getOperands());
  SmallVector<Type> types = {op.getQuery().getType().clone(query),
                             op.getKey().getType().clone(key),
                             op.getValue().getType().clone(value)};
  for (Value vector : op->getOperands().drop_front(types.size()))
    types.push_back(open(vector));
  for (Value each : captured) {
    from.push_back(each);
    types.push_back(each.getType());
  }
  OpBuilder b(op->getContext());
  b.setInsertionPointToEnd(getOperation().getBody());
  auto func = func::FuncOp::create(b, op.getLoc(), "flash.calls",
                                   b.getFunctionType(types, {}));
  SymbolTable(getOperation()).insert(func);
  Block *body = func.addEntryBlock();
  b.setInsertionPointToEnd(body);
  IRMapping mapping;
  // A tensor may be several operands, of different types here.
  for (Value each : captured)
    mapping.map(each, body->getArgument(llvm::find(from, each) - from.begin()));
  auto copy = cast<AttentionOp>(b.clone(*op, mapping));
  copy->setOperands(body->getArguments().take_front(op->getNumOperands()));
  // The models know of elements that are converted as they are read.
  b.setInsertionPoint(copy);
  for (auto [rows, argument] :
       {std::pair(Value(op.getQuery()), body->getArgument(0)),
        std::pair(Value(op.getKey()), body->getArgument(1)),
        std::pair(Value(op.getValue()), body->getArgument(2))}) {
    auto dequantize = rows.getDefiningOp<DequantizeOp>();
    if (!dequantize)
      continue;
    auto type = cast<RankedTensorType>(argument.getType());
    argument.setType(type.clone(getElementTypeOrSelf(dequantize.getSource())));
    Value scale = body->addArgument(RankedTensorType::get({1}, b.getF32Type()),
                                    op.getLoc());
    copy->setOperand(
        argument.getArgNumber(),
        DequantizeOp::create(b, op.getLoc(), type, argument, scale));
  }
  // A tile of keys has these values, too.
  if (areColumnsOfKeys(op.getKey(), op.getValue()))
    copy.getValueMutable().assign(
        takeColumns(b, copy.getKey(), copy.getValue().getType()));
  func.setFunctionType(b.getFunctionType(body->getArgumentTypes(), {}));
  b.setInsertionPointToEnd(body);
  // Among packed sequences of a few queries in the mean may be a prompt, for
  // whose rows splits by what lengths may be would take much memory. Of packed
  // keys the mean is known.
  bool areTokens = query[query.size() - 2] == 1 &&
                   !isa_and_nonnull<UnpackOp>(
                       AddressOpInterface::ofRows(op.getKey()).getOperation());
  if (getProblem(op).hasPackedRows && !areTokens)
    copy.getKeyLengthsMutable().clear();
  copy.getOutput().setType(op.getOutput().getType().clone(output));
  if (op.getLse())
    copy.getLse().setType(
        op.getLse().getType().clone(ArrayRef(output).drop_back()));
  func::ReturnOp::create(b, op.getLoc());
  return func;
}

/// Says how the keys are split such that it is right for as many sizes as
/// possible, and that few versions are compiled.
void Specialize::openSplits(Schedule &schedule, const Problem &problem) {
  std::optional<int64_t> known = problem.countQueryTiles(*schedule.queryTile);
  if (!known)
    return;
  int64_t tiles = *known;
  int64_t keyTiles = llvm::divideCeil(*problem.keys, *schedule.keyTile);
  int64_t splits = countSplits(*schedule.splitCtas, tiles, keyTiles);
  if (*schedule.queryTile > mostQueriesOfOpenSplits) {
    schedule.splitCtas.reset();
    schedule.numSplits = splits;
    return;
  }
  if (countSplits(machine.multiprocessors, tiles, keyTiles) == splits)
    schedule.splitCtas = machine.multiprocessors;
}

/// Writes which tiles' sizes the lengths are multiples of.
void Specialize::setMultiples(AttentionOp op, const Schedule &schedule) {
  std::optional<Operands> sizes = getOperands(op);
  int64_t last = op.getQuery().getType().getRank() - 2;
  // Where queries are few the keys are more at each call, and their last tile
  // is one of many.
  if (sizes->query[last] < *schedule.queryTile)
    return;
  auto getMultiple = [](int64_t size, int64_t tile) {
    return getCommonDivisor(size) % tile == 0 ? tile : 1;
  };
  int64_t queriesOfTile = schedule.getQueriesOfTile(),
          keysOfTile = *schedule.keyTile;
  // Tiles lack keys where the caller's blocks do.
  if (std::optional<ArrayRef<int64_t>> blocks = op.getBlockSizes())
    keysOfTile = blocks->back();
  int64_t multiples[] = {getMultiple(sizes->query[last], queriesOfTile),
                         getMultiple(sizes->key[last], keysOfTile)};
  // Keys in pages end at lengths, whatever there is room for.
  if (UnpageOp::ofRows(op.getKey()))
    multiples[1] = 1;
  if (multiples[0] != 1 || multiples[1] != 1)
    op.setMultiples(multiples);
}

LogicalResult Specialize::select(AttentionOp op) {
  func::FuncOp func = copyForCalls(op);
  if (!func)
    return success();
  OpPassManager pm(func::FuncOp::getOperationName());
  pm.addPass(createSeparateMasks());
  pm.addPass(createExpandRank());
  pm.addPass(createSelectSchedule({"", device, tuningFile}));
  AttentionOp copy;
  func.walk([&](AttentionOp found) { copy = found; });
  Schedule given = givenSchedule;
  if (op.getSchedule())
    given = given.over(op.getSchedule()->getValue());
  // The copy has numbers of heads that the types of the op may leave open.
  bool mayPack = op.getGroup() || given.packedHeads;
  if (!mayPack)
    given.packedHeads = 1;
  // The copy need not have lengths.
  if (!given.blockMap && (op.getQueryLengths() || op.getKeyLengths()))
    given.blockMap = 0;
  auto schedule = [&](const Schedule &known) {
    if (!known.isEmpty())
      copy.setScheduleAttr(ScheduleAttr::get(&getContext(), known));
    bool isScheduled = succeeded(runPipeline(pm, func));
    func.walk([&](AttentionOp found) { copy = found; });
    return isScheduled;
  };
  bool arePacked = getProblem(op).hasPackedRows;
  bool isScheduled = schedule(given);
  if (isScheduled) {
    Schedule chosen = copy.getSchedule()->getValue();
    Problem problem = getProblem(copy);
    // A prompt may be among packed sequences of a few queries in the mean, for
    // whose rows tiles of a warpgroup are faster than tiles of a warp.
    if (arePacked && problem.queries != 1 && !given.features &&
        !given.queryTile && !chosen.hasRoles() &&
        canHaveRoles(problem, machine)) {
      Schedule ofRoles = given;
      ofRoles.queryTile = rowsOfWarpgroup;
      isScheduled = schedule(ofRoles);
      chosen = copy.getSchedule()->getValue();
    }
    // The copy's rows lie neither behind each other nor in pages.
    fitTiles(op, problem, machine, given, chosen);
    if (chosen.splitCtas)
      openSplits(chosen, problem);
    if (arePacked && !given.features &&
        chosen.has(ScheduleFeatures::Persistent)) {
      *chosen.features &= ~ScheduleFeatures::Persistent;
      chosen.queryStages = given.queryStages;
    }
    if (!mayPack)
      chosen.packedHeads.reset();
    op.setScheduleAttr(ScheduleAttr::get(&getContext(), chosen));
    if (!arePacked)
      setMultiples(op, chosen);
  }
  func.erase();
  return success(isScheduled);
}

/// How many query heads read a key head decides which loops there are.
void Specialize::fixTypes(AttentionGradOp op, const Operands &sizes) {
  int64_t heads = sizes.query.size() - 3;
  if (!op.hasHeads() || ShapedType::isDynamic(sizes.query[heads]) ||
      ShapedType::isDynamic(sizes.key[heads]))
    return;
  for (Value tensor :
       {Value(op.getQuery()), Value(op.getOutput()), Value(op.getLse()),
        Value(op.getOutputGrad()), Value(op.getLseGrad())})
    if (tensor)
      refineArgument(tensor, sizes.query, {heads});
  for (Value tensor : {op.getKey(), op.getValue()})
    refineArgument(tensor, sizes.key, {heads});
  for (OpOperand &operand : op->getOpOperands())
    if (auto open = operand.get().getDefiningOp<tensor::CastOp>();
        open && tensor::canFoldIntoConsumerOp(open))
      operand.set(open.getSource());
  OpBuilder b(op->getContext());
  b.setInsertionPointAfter(op);
  for (auto [operand, result] :
       llvm::zip_equal(op.getDifferentiated(), op->getResults())) {
    if (operand.getType() != result.getType())
      refineResult(b, result, cast<RankedTensorType>(operand.getType()));
  }
  eraseUnusedCasts(op);
}

LogicalResult Specialize::select(AttentionGradOp op) {
  Problem problem = getProblem(op);
  // Schedules of packed rows are the same for all lengths, which stay open.
  std::optional<Operands> sizes =
      getOperands(op, /*onlyHeads=*/problem.hasPackedRows);
  if (!sizes)
    return success();
  fixTypes(op, *sizes);
  if (problem.hasPackedRows)
    return success();
  int64_t last = sizes->query.size() - 2;
  int64_t queries = sizes->query[last], keys = sizes->key[last];
  problem = getProblem(op);
  // A typical size, with the same common divisor as the calls' size.
  auto getSize = [](int64_t size) {
    if (size <= largestExactSize) // Divided by itself, which may be 0.
      return size;
    int64_t typical = getTypicalSize(size), divisor = getCommonDivisor(size);
    return typical % divisor == 0 && divisor < getCommonDivisor(typical)
               ? typical + divisor
               : typical;
  };
  problem.queries = getSize(queries);
  problem.keys = getSize(keys);
  setKeysPerQuery(problem, op);
  Schedule chosen = givenSchedule;
  if (op.getSchedule())
    chosen = chosen.over(op.getSchedule()->getValue());
  bool hasFeatures = chosen.features.has_value();
  // Programs of gradients were measured together, not with other keys, and with
  // sizes that are known, so that they may not be possible for open ones.
  Operands typical = getTypicalSizes(op, *sizes);
  const TuningEntry *entry =
      chosen.isEmpty()
          ? tuned.find(getProblem(op, typical.query, typical.key), machine)
          : nullptr;
  if (entry) {
    Schedule measured = entry->schedule;
    std::string fault = proposeSchedule(op, problem, machine, measured);
    if (fault.empty())
      chosen = measured;
    else
      emitWarning(tuned.getLocation(&getContext(), *entry))
          << "this schedule is not possible for sizes that are open: " << fault;
  }
  if (std::string fault = proposeSchedule(op, problem, machine, chosen);
      !fault.empty())
    return op.emitOpError("cannot be scheduled: ") << fault;
  // Programs of open sizes have no registers for it, but where tiles are
  // claimed.
  if (chosen.features && !hasFeatures && !chosen.addsInOrder() &&
      !chosen.has(ScheduleFeatures::ClaimTiles))
    *chosen.features &= ~ScheduleFeatures::Persistent;
  op.setScheduleAttr(ScheduleAttr::get(&getContext(), chosen));
  auto getMultiple = [](int64_t size, int64_t tile) {
    return size >= tile && getCommonDivisor(size) % tile == 0 ? tile : 1;
  };
  // Tiles lack rows where the caller's blocks do.
  int64_t rowsOfTiles[] = {std::lcm(*chosen.queryTile, chosen.getQueryStep()),
                           std::lcm(*chosen.keyTile, chosen.getKeyStep())};
  if (std::optional<ArrayRef<int64_t>> blocks = op.getBlockSizes())
    llvm::copy(*blocks, rowsOfTiles);
  int64_t multiples[] = {getMultiple(queries, rowsOfTiles[0]),
                         getMultiple(keys, rowsOfTiles[1])};
  if (multiples[0] != 1 || multiples[1] != 1)
    op.setMultiples(multiples);
  return success();
}

void Specialize::runOnOperation() {
  machine = getMachine(getOperation());
  FailureOr<Schedule> parsed = parseSchedule(getOperation(), schedule);
  if (failed(parsed))
    return signalPassFailure();
  givenSchedule = *parsed;
  // Attentions have theirs from flash-select-schedule.
  bool hasGradients =
      getOperation()
          .walk([](AttentionGradOp) { return WalkResult::interrupt(); })
          .wasInterrupted();
  if (hasGradients) {
    auto loaded = TunedSchedules::load(getOperation(), device, tuningFile);
    if (failed(loaded))
      return signalPassFailure();
    tuned = std::move(*loaded);
  }
  SmallVector<func::FuncOp> funcs;
  for (auto func : getOperation().getOps<func::FuncOp>())
    if (func.isPublic() && !func.isExternal())
      funcs.push_back(func);
  for (func::FuncOp func : funcs) {
    if (failed(readSizes(func)))
      return signalPassFailure();
    SmallVector<AttentionOp> ops;
    func.walk([&](AttentionOp op) { ops.push_back(op); });
    for (AttentionOp op : ops) {
      // Of documents nobody knows how long they are, or how many.
      auto unpack = op.getQuery().getDefiningOp<UnpackOp>();
      if (unpack && unpack.getOffsets().getDefiningOp<DocumentOffsetsOp>())
        continue;
      fixTypes(op);
      if (failed(select(op)))
        return signalPassFailure();
    }
    SmallVector<AttentionGradOp> grads;
    func.walk([&](AttentionGradOp op) { grads.push_back(op); });
    for (AttentionGradOp op : grads)
      if (failed(select(op)))
        return signalPassFailure();
  }
}
