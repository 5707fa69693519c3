//===- KernelOps.cpp - Kernels and what they store ------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OpRules.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace flash;
using namespace flash::detail;

void KernelOp::build(OpBuilder &b, OperationState &state,
                     ArrayRef<OpFoldResult> ends, ArrayRef<int64_t> steps,
                     ValueRange outs, const Schedule &schedule, Value rows) {
  SmallVector<Value> indices =
      getValueOrCreateConstantIndexOp(b, state.location, ends);
  state.addOperands(indices);
  if (rows)
    state.addOperands(rows);
  state.addOperands(outs);
  Properties &properties = state.getOrAddProperties<Properties>();
  properties.operandSegmentSizes = {static_cast<int32_t>(ends.size()),
                                    rows ? 1 : 0,
                                    static_cast<int32_t>(outs.size())};
  properties.steps = b.getDenseI64ArrayAttr(steps);
  if (Schedule own = schedule.ofKernel(); !own.isEmpty())
    properties.schedule = ScheduleAttr::get(b.getContext(), own);
  state.addTypes(outs.getTypes());
  SmallVector<Type> types(ends.size(), b.getIndexType());
  llvm::append_range(types, outs.getTypes());
  OpBuilder::InsertionGuard guard(b);
  b.createBlock(state.addRegion(), {}, types,
                SmallVector<Location>(types.size(), state.location));
  auto store = StoreOp::create(b, state.location);
  store.getBody().emplaceBlock();
}

LogicalResult KernelOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                         Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  llvm::append_range(types, adaptor.getOuts().getTypes());
  return success();
}

StoreOp KernelOp::getStore() {
  return cast<StoreOp>(getBody().front().getTerminator());
}

Block *KernelOp::getStores() { return &getStore().getBody().front(); }

KernelOp KernelOp::of(Value destination) {
  return cast<KernelOp>(
      cast<BlockArgument>(destination).getOwner()->getParentOp());
}

/// Whether the operation stores into this operand and does not read it, or
/// gives it to a loop, whose steps may have stored before they read.
static bool isStoredInto(OpOperand &use) {
  Operation *user = use.getOwner();
  if (auto combining = dyn_cast<ParallelCombiningOpInterface>(user))
    return llvm::any_of(combining.getUpdatedDestinations(),
                        [&](OpOperand &updated) { return &updated == &use; });
  if (auto computing = dyn_cast<linalg::LinalgOp>(user))
    return computing.isDpsInit(&use) &&
           !computing.payloadUsesValueFromOperand(&use);
  if (isa<tensor::InsertOp, tensor::InsertSliceOp>(user))
    return cast<DestinationStyleOpInterface>(user).isDpsInit(&use);
  return isa<tensor::DimOp, LoopLikeOpInterface, VisitOp>(user);
}

/// What reads a destination, or a slice of it, before the position has stored
/// into it; null if nothing does.
static Operation *findReader(Value destination) {
  for (OpOperand &use : destination.getUses()) {
    auto slice = dyn_cast<tensor::ExtractSliceOp>(use.getOwner());
    Operation *reader = slice ? findReader(slice) : use.getOwner();
    if (reader && (slice || !isStoredInto(use)))
      return reader;
  }
  return nullptr;
}

LogicalResult KernelOp::verify() {
  if (getSchedule())
    if (std::string fault =
            getSchedule()->getValue().findForeignKey(ScheduleOwner::Kernel);
        !fault.empty())
      return emitOpError() << fault;
  if (getSteps().size() != getEnds().size())
    return emitOpError("has ")
           << getEnds().size() << " ends and " << getSteps().size()
           << " distances between its positions";
  if (getSteps().empty())
    return emitOpError("is over a grid of one dimension or more, got none");
  for (int64_t step : getSteps())
    if (step <= 0)
      return emitOpError("positions are at least 1 apart, got ") << step;
  auto address = getRows() ? getRows().getDefiningOp<AddressOpInterface>()
                           : AddressOpInterface();
  if (getRows() && (getEnds().size() < 3 || getRows().getType().getRank() < 3 ||
                    getSteps().take_back(3).front() != 1 || !address ||
                    address.getContiguousRows()))
    return emitOpError("over the rows of a view has a grid that ends in "
                       "(batch, head, row), of one batch at a time, and a view "
                       "in memory such as flash.unpack gives");
  SmallVector<Type> expected(getEnds().size(), IndexType::get(getContext()));
  llvm::append_range(expected, getOuts().getTypes());
  if (!llvm::equal(getBody().getArgumentTypes(), expected))
    return emitOpError("the region takes the position, ")
           << getEnds().size() << " indices, and then the outs, got ("
           << getBody().getArgumentTypes() << ")";
  Operation *store = getBody().front().getTerminator();
  if (!isa<StoreOp>(store))
    return emitOpError("ends in flash.store, not in ") << store->getName();
  for (BlockArgument destination : getDestinations())
    if (Operation *reader = findReader(destination))
      return reader->emitOpError(
          "reads a destination of the kernel, into which its positions store; "
          "read what it starts from, outs(...) of the kernel");
  return success();
}

OpResult StoreOp::getParentResult(int64_t index) {
  return (*this)->getParentOp()->getResult(index);
}

iterator_range<Block::iterator> StoreOp::getYieldingOps() {
  return getBody().front();
}

LogicalResult StoreOp::verify() {
  auto kernel = cast<KernelOp>((*this)->getParentOp());
  for (Operation &op : getBody().front()) {
    auto combining = dyn_cast<ParallelCombiningOpInterface>(op);
    if (!combining)
      return op.emitOpError("stores nothing; flash.store has "
                            "flash.store_rows, tensor.parallel_insert_slice "
                            "and flash.parallel_add alone");
    for (OpOperand &destination : combining.getUpdatedDestinations())
      if (!llvm::is_contained(kernel.getDestinations(), destination.get()))
        return op.emitOpError("stores into what is no destination of the "
                              "kernel, an argument of its region");
  }
  return success();
}

MutableOperandRange StoreRowsOp::getUpdatedDestinations() {
  return getDestinationMutable();
}

Operation *StoreRowsOp::getIteratingParent() {
  auto store = dyn_cast<InParallelOpInterface>((*this)->getParentOp());
  return store ? store->getParentOp() : nullptr;
}

LogicalResult StoreRowsOp::verify() {
  if (!isa<StoreOp>((*this)->getParentOp()))
    return emitOpError("stands in flash.store alone");
  RankedTensorType tile = getTile().getType(),
                   destination = getDestination().getType();
  bool hasColumns = tile.getRank() == 2;
  int64_t rank = destination.getRank();
  if ((tile.getRank() != 1 && !hasColumns) || rank < 1 + hasColumns ||
      tile.getElementType() != destination.getElementType() ||
      !areColumnsOf(tile, destination, getColumn()))
    return emitOpError("a tile has a number of rows, and the columns and the "
                       "elements of ")
           << destination << ", or fewer columns from column(...) on, got "
           << tile;
  if (static_cast<int64_t>(getPosition().size()) != rank - hasColumns)
    return emitOpError("the position of rows has ")
           << rank - hasColumns << " indices, one for each dimension but the "
           << "columns, got " << getPosition().size();
  if (getPacked() && (static_cast<int64_t>(*getPacked()) < 2 || rank < 3))
    return emitOpError("packs two heads or more of [..., H, N, D], got ")
           << *getPacked() << " of " << destination;
  return success();
}
