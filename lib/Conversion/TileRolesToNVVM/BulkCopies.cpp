//===- BulkCopies.cpp - Copies of the tensor memory accelerator -----------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RoleLowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace flash;
using namespace flash::tile;

BoxRows flash::tile::getBoxRows(SmemType type, std::optional<int64_t> packed) {
  if (!packed || *packed > type.getRows())
    return {1, type.getRows()};
  return {type.getRows() / *packed, *packed};
}

Value RoleLowering::getTensorMap(Value source, SmemType stage, BoxRows rows) {
  auto memory = cast<BlockArgument>(source);
  Value &map = maps[{memory, stage, rows.outer, rows.inner, rows.tiles}];
  if (map)
    return map;
  SmallVector<int64_t> shape = {rows.inner, stage.getPanelColumns()};
  if (rows.outer > 1)
    shape.insert(shape.begin(), rows.outer);
  auto box = MemRefType::get(
      shape, stage.getElementType(), MemRefLayoutAttrInterface(),
      gpu::AddressSpaceAttr::get(b.getContext(), gpu::AddressSpace::Workgroup));
  auto swizzle =
      stage.getSwizzle() == 128  ? nvgpu::TensorMapSwizzleKind::SWIZZLE_128B
      : stage.getSwizzle() == 64 ? nvgpu::TensorMapSwizzleKind::SWIZZLE_64B
      : stage.getSwizzle() == 32 ? nvgpu::TensorMapSwizzleKind::SWIZZLE_32B
                                 : nvgpu::TensorMapSwizzleKind::SWIZZLE_NONE;
  auto type = nvgpu::TensorMapDescriptorType::get(
      b.getContext(), box, swizzle, nvgpu::TensorMapL2PromoKind::L2PROMO_256B,
      nvgpu::TensorMapOOBKind::OOB_ZERO,
      nvgpu::TensorMapInterleaveKind::INTERLEAVE_NONE);
  Block &entry = kernel.getBody().front();
  Value argument = entry.addArgument(type, memory.getLoc());
  kernel.setFunctionType(b.getFunctionType(entry.getArgumentTypes(), {}));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&entry);
  map = UnrealizedConversionCastOp::create(
            b, loc, LLVM::LLVMPointerType::get(b.getContext()), argument)
            .getResult(0);
  return map;
}

Value RoleLowering::takeFirstRows(SmallVectorImpl<Value> &indices, unsigned dim,
                                  Value rows, int64_t most) {
  // The first rows of this tile are the last rows of the one that ends behind
  // them.
  rows = arith::MaxSIOp::create(b, loc, rows, index(0));
  rows = arith::MinSIOp::create(b, loc, rows, index(most));
  indices[dim] = arith::AddIOp::create(b, loc, indices[dim], rows);
  indices.insert(indices.begin() + dim + 1,
                 arith::SubIOp::create(b, loc, index(most), rows));
  return rows;
}

Value RoleLowering::getMapOfRows(Value memory, SmemType stage, BoxRows box,
                                 Value rows, SmallVectorImpl<Value> &indices) {
  // The dimension of tiles, in memory that has columns besides.
  unsigned dim = box.getRowDim(indices.size() + 1);
  int64_t most = box.getTileRows();
  if (box.outer > 1)
    rows = arith::DivSIOp::create(b, loc, rows, index(box.inner));
  rows = takeFirstRows(indices, dim, rows, most);
  // The tile begins before the memory where its first rows are read alone.
  Value isCut = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                                      indices[dim], index(most));
  Value isSome =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt, rows, index(0));
  Value isBefore = arith::AndIOp::create(b, loc, isCut, isSome);
  Value begin = arith::SubIOp::create(b, loc, indices[dim], index(most));
  indices[dim] = arith::SelectOp::create(b, loc, isBefore, indices[dim], begin);
  auto getMap = [&](MapTiles tiles) {
    box.tiles = tiles;
    return getTensorMap(memory, stage, box);
  };
  Value ending = getMap(MapTiles::ThatEndAtRow);
  Value beginning = getMap(MapTiles::ThatBeginAtRow);
  return arith::SelectOp::create(b, loc, isBefore, ending, beginning);
}

void RoleLowering::lowerCopy(CopyAsyncOp op) {
  auto ring = op.getRing().getDefiningOp<RingOp>();
  // Behind the memory's last row a copy fills in zeros by itself.
  Value rows = op.getToEnd() ? Value() : op.getRows();
  SmallVector<Value> indices(op.getIndices());
  if (static_cast<int64_t>(indices.size()) < op.getSource().getType().getRank())
    indices.push_back(index(0));
  if (!ring.getRowStages())
    return copy(ring, op.getSource(), indices, rows, op.getStep(),
                op.getPacked(), op.getPart());
  for (int64_t warpgroup = 0; warpgroup < getNumOwners(ring); ++warpgroup) {
    Value fill = getFillNumber(ring, op.getStep(), index(warpgroup));
    acquire(ring, fill);
    SmallVector<Value> own = indices;
    Value &row = *std::prev(own.end(), 2);
    Value first = index(warpgroup * rowsOfWarpgroup);
    row = arith::AddIOp::create(b, loc, row, first);
    Value ownRows =
        rows ? arith::SubIOp::create(b, loc, rows, first).getResult() : rows;
    copy(ring, op.getSource(), own, ownRows, fill);
  }
}

void RoleLowering::copy(RingOp ring, Value source, ArrayRef<Value> indices,
                        Value rows, Value fill, std::optional<int64_t> packed,
                        Value part) {
  SmemType stage = ring.getStageType(), filled = stage;
  if (part)
    filled =
        SmemType::get(b.getContext(), ring.getRowsOfCopy(), stage.getColumns(),
                      stage.getElementType(), stage.getSwizzle());
  auto getStart = [&] {
    Value start = stageOffset(ring, fill);
    if (!part)
      return start;
    Value bytes =
        arith::MulIOp::create(b, loc, part, index(filled.getPanelBytes()));
    return arith::AddIOp::create(b, loc, start, bytes).getResult();
  };
  BoxRows box = getBoxRows(filled, packed);
  SmallVector<Value> inMap(indices.drop_back());
  Value map = rows ? getMapOfRows(source, filled, box, rows, inMap)
                   : getTensorMap(source, filled, box);
  Value full = getBarrier(ring, fill, Of::Full);
  // Parts of a box outside of the memory count as copied.
  int64_t bytes =
      filled.getNumBytes() / filled.getRows() * box.outer * box.inner;
  bool byPanels = ofPanels.contains(ring);
  bool isForAll = part && arrivesOnce(ring);
  if (isForAll)
    bytes *= ring.getNumCopies();
  auto announce = [&](Value barrier, int64_t bytes) {
    NVVM::MBarrierArriveExpectTxOp::create(b, loc, TypeRange(), barrier,
                                           i32(bytes), NVVM::MemScopeKind::CTA,
                                           /*relaxed=*/false, Value());
  };
  if (byPanels)
    bytes /= stage.getNumPanels();
  else if (!isForAll || isConstantIntValue(part, 0))
    announce(full, bytes);
  SmallVector<Value> coordinates = {Value()};
  for (Value position : llvm::reverse(inMap))
    coordinates.push_back(toI32(position));
  Type cluster = LLVM::LLVMPointerType::get(
      b.getContext(),
      static_cast<unsigned>(NVVM::NVVMMemorySpace::SharedCluster));
  for (int64_t panel = 0; panel < stage.getNumPanels(); ++panel) {
    if (byPanels) {
      full = getPanelBarrier(ring, panel);
      announce(full, bytes);
    }
    coordinates.front() = toI32(arith::AddIOp::create(
        b, loc, indices.back(), index(panel * stage.getPanelColumns())));
    Value offset = arith::AddIOp::create(b, loc, getStart(),
                                         index(panel * stage.getPanelBytes()));
    Value to =
        LLVM::AddrSpaceCastOp::create(b, loc, cluster, sharedPointer(offset));
    NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp::create(
        b, loc, to, map, coordinates, full, /*im2colOffsets=*/ValueRange(),
        /*multicastMask=*/Value(), /*l2CacheHint=*/Value(),
        NVVM::TMALoadMode::TILE, /*isCTAOnly=*/false, /*group=*/nullptr,
        /*predicate=*/Value());
  }
}

void RoleLowering::fenceForBulkCopies() {
  NVVM::FenceProxyOp::create(
      b, loc, NVVM::ProxyKind::async_shared,
      NVVM::SharedSpaceAttr::get(b.getContext(),
                                 NVVM::SharedSpace::shared_cta));
}

void RoleLowering::waitForStores() {
  forLeader([&] {
    NVVM::CpAsyncBulkWaitGroupOp::create(b, loc, b.getI32IntegerAttr(0),
                                         /*read=*/b.getUnitAttr());
  });
}

void RoleLowering::storePanels(StoreBulkOp op, SmemType own, Value start,
                               int64_t firstColumn) {
  Value map =
      getTensorMap(op.getDestination(), own,
                   {1, own.getRows(),
                    op.getRows() ? MapTiles::ThatEndAtRow : MapTiles::None});
  Value firstRow = arith::MulIOp::create(
      b, loc, arith::IndexCastOp::create(b, loc, b.getIndexType(), warpgroup()),
      index(rowsOfWarpgroup));
  SmallVector<Value> indices(op.getIndices());
  indices.back() = arith::AddIOp::create(b, loc, indices.back(), firstRow);
  if (Value rows = op.getRows())
    takeFirstRows(indices, indices.size() - 1,
                  arith::SubIOp::create(b, loc, rows, firstRow), own.getRows());
  SmallVector<Value> coordinates = {Value()};
  for (Value position : llvm::reverse(indices))
    coordinates.push_back(toI32(position));
  int64_t columns = cast<RankedTensorType>(op.getX().getType()).getDimSize(1);
  int64_t panelBytes = op.getStageType().getPanelBytes();
  for (int64_t panel = 0; panel < own.getNumPanels(); ++panel) {
    int64_t column = firstColumn + panel * own.getPanelColumns();
    if (column >= columns)
      break;
    coordinates.front() = i32(column);
    Value from = sharedPointer(
        arith::AddIOp::create(b, loc, start, index(panel * panelBytes)));
    if (op.getAdd())
      NVVM::CpAsyncBulkTensorReduceOp::create(
          b, loc, map, from, NVVM::TMAReduxKind::ADD, NVVM::TMAStoreMode::TILE,
          coordinates, /*l2CacheHint=*/Value());
    else
      NVVM::CpAsyncBulkTensorSharedCTAToGlobalOp::create(
          b, loc, map, from, coordinates, /*l2CacheHint=*/Value(),
          NVVM::TMAStoreMode::TILE, /*predicate=*/Value());
  }
  NVVM::CpAsyncBulkCommitGroupOp::create(b, loc);
}

void RoleLowering::lowerStore(StoreBulkOp op) {
  SmemType stage = op.getStageType();
  // A warpgroup stores its rows by itself.
  SmemType own =
      SmemType::get(b.getContext(), rowsOfWarpgroup, stage.getColumns(),
                    stage.getElementType(), stage.getSwizzle());
  auto [ring, step] = reusedByStores.lookup(op);
  if (op.getReused() && ring.getRowStages()) {
    // All warps have ended the products that read the tile.
    meet();
    // Computed again: to keep it across the loops would take a register.
    Value offset = stageOffset(ring, getOwnFillNumber(ring, step));
    PutOp::create(b, loc, op.getX(), SmemViewOp::create(b, loc, stage, offset),
                  b.getI64IntegerAttr(0), /*by_pairs=*/UnitAttr(),
                  /*alternate=*/UnitAttr());
    fenceForBulkCopies();
    meet();
    forLeader([&] { storePanels(op, own, offset, /*firstColumn=*/0); });
    return;
  }
  int64_t offset = op.getReused() ? *ring.getOffset() : *op.getOffset();
  Value view = SmemViewOp::create(b, loc, stage, index(offset));
  Value firstRow = arith::MulIOp::create(
      b, loc, arith::IndexCastOp::create(b, loc, b.getIndexType(), warpgroup()),
      index(rowsOfWarpgroup));
  Value start = arith::AddIOp::create(
      b, loc,
      arith::MulIOp::create(b, loc, firstRow, index(stage.getSwizzle())),
      index(offset));
  int64_t columns = cast<RankedTensorType>(op.getX().getType()).getDimSize(1);
  for (int64_t first = 0; first < columns; first += stage.getColumns()) {
    if (!op.getReused())
      waitForStores();
    meet();
    PutOp::create(b, loc, op.getX(), view, b.getI64IntegerAttr(first),
                  /*by_pairs=*/UnitAttr(), /*alternate=*/UnitAttr());
    fenceForBulkCopies();
    meet();
    forLeader([&] { storePanels(op, own, start, first); });
  }
}

/// The overlapping tiles of `rows` rows of a memref along `rowDim`,
/// [..., tiles, rows, ...]. The first tiles that end at a row begin before the
/// memory, where nobody may read or write.
static Value emitTiles(OpBuilder &b, Location loc, Value memory, MapTiles tiles,
                       int64_t rowDim, int64_t rows) {
  auto metadata = memref::ExtractStridedMetadataOp::create(b, loc, memory);
  SmallVector<OpFoldResult> sizes = metadata.getConstifiedMixedSizes(),
                            strides = metadata.getConstifiedMixedStrides();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  OpFoldResult ofRow = strides[rowDim],
               offset = metadata.getConstifiedMixedOffset();
  Value numRows = getValueOrCreateConstantIndexOp(b, loc, sizes[rowDim]);
  // A memref without rows has no tile, and maybe no address.
  Value some = b.createOrFold<arith::MinUIOp>(loc, numRows, constant(1));
  Value numTiles;
  if (tiles == MapTiles::ThatEndAtRow) {
    Value ofTile = b.createOrFold<arith::MulIOp>(
        loc, getValueOrCreateConstantIndexOp(b, loc, ofRow), constant(rows));
    Value first = getValueOrCreateConstantIndexOp(b, loc, offset);
    offset =
        getAsOpFoldResult(b.createOrFold<arith::SubIOp>(loc, first, ofTile));
    numTiles = b.createOrFold<arith::AddIOp>(loc, numRows, some);
  } else {
    Value whole =
        b.createOrFold<arith::SubIOp>(loc, numRows, constant(rows - 1));
    numTiles = b.createOrFold<arith::MaxSIOp>(loc, whole, some);
  }
  sizes[rowDim] = getAsOpFoldResult(numTiles);
  sizes.insert(sizes.begin() + rowDim + 1, b.getIndexAttr(rows));
  strides.insert(strides.begin() + rowDim, ofRow);
  return memref::ReinterpretCastOp::create(b, loc, metadata.getBaseBuffer(),
                                           offset, sizes, strides);
}

void RoleLowering::addTensorMaps(gpu::LaunchFuncOp launch) {
  OpBuilder b(launch);
  Location loc = launch.getLoc();
  for (auto &[key, map] : maps) {
    auto [memory, stage, outer, inner, tiles] = key;
    BoxRows rows = {outer, inner, tiles};
    Value operand = launch.getKernelOperand(memory.getArgNumber());
    if (tiles != MapTiles::None) {
      int64_t rank = cast<MemRefType>(operand.getType()).getRank();
      operand = emitTiles(b, loc, operand, tiles, rows.getRowDim(rank),
                          rows.getTileRows());
    }
    auto type = cast<MemRefType>(operand.getType());
    Value unranked = memref::CastOp::create(
        b, loc,
        UnrankedMemRefType::get(type.getElementType(), type.getMemorySpace()),
        operand);
    SmallVector<Value> box;
    for (int64_t d = 0; d < type.getRank(); ++d) {
      int64_t size = d + 1 == type.getRank()   ? stage.getPanelColumns()
                     : d + 2 == type.getRank() ? rows.inner
                     : d + 3 == type.getRank() ? rows.outer
                                               : 1;
      box.push_back(arith::ConstantIndexOp::create(b, loc, size));
    }
    Type mapType = map.getDefiningOp<UnrealizedConversionCastOp>()
                       .getInputs()[0]
                       .getType();
    launch.getKernelOperandsMutable().append(
        nvgpu::TmaCreateDescriptorOp::create(b, loc, mapType, unranked, box)
            .getResult());
  }
}
