//===- TileOps.cpp - Verifiers of the tile dialect ------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Tile/IR/Tile.h"
#include "flash/Schedule/Warpgroups.h"
#include "flash/Support/ElementType.h"
#include "flash/Support/OwnRegion.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace flash;
using namespace flash::tile;

#include "flash/Dialect/Tile/IR/TileRingInterface.cpp.inc"

static ParseResult parseOrder(OpAsmParser &parser, OrderAttr &order) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef keyword;
  if (parser.parseKeyword(&keyword))
    return failure();
  std::optional<TileOrder> kind = symbolizeTileOrder(keyword);
  if (!kind) {
    std::string kinds;
    for (uint32_t i = 0; i <= getMaxEnumValForTileOrder(); ++i)
      kinds += (i ? ", " : "") + stringifyTileOrder(TileOrder(i)).str();
    return parser.emitError(loc, "expected an order of tiles, one of " + kinds);
  }
  order = OrderAttr::get(parser.getContext(), *kind);
  return success();
}

static void printOrder(OpAsmPrinter &printer, Operation *, OrderAttr order) {
  printer << stringifyTileOrder(order.getKind());
}

#define GET_OP_CLASSES
#include "flash/Dialect/Tile/IR/TileOps.cpp.inc"

static LayoutAttrInterface getLayout(Type type) {
  return cast<LayoutAttrInterface>(cast<RankedTensorType>(type).getEncoding());
}

/// Whether the same warps of a block hold both tiles.
static bool haveSameWarps(Type a, Type b) {
  LayoutAttrInterface ofA = getLayout(a), ofB = getLayout(b);
  return ofA.getNumWarps() == ofB.getNumWarps() &&
         ofA.getFirstWarp() == ofB.getFirstWarp();
}

LogicalResult flash::tile::verifyOnlyReads(Operation *op) {
  for (Region &region : op->getRegions())
    for (Operation &inner : region.getOps()) {
      auto effects = getEffectsRecursively(&inner);
      if (!effects || !llvm::all_of(*effects, [](const auto &effect) {
            return isa<MemoryEffects::Read>(effect.getEffect());
          }))
        return inner.emitOpError("does more than compute and read memory; the "
                                 "region of '")
               << op->getName() << "' may do nothing else";
    }
  return success();
}

/// Checks that memory has as many columns as a tile takes, as far as that is
/// known, unless `end` says how many exist.
static LogicalResult verifyColumnsOfMemory(Operation *op, MemRefType memory,
                                           int64_t columns, Value end) {
  int64_t size = memory.getShape().back();
  if (end || ShapedType::isDynamic(size) || size >= columns)
    return success();
  return op->emitOpError("takes ")
         << columns << " columns of " << memory << "; take at most " << size
         << (isa<ReadOp, StoreOp>(op)
                 ? ", or say with columns(...) how many exist"
                 : "");
}

/// Checks a copy of rows of `memory` into or out of a tile of `columns`; where
/// there is an index for the columns too, the memory may have more of them.
static LogicalResult
verifyRowsOfMemory(Operation *op, MemRefType memory, size_t numIndices,
                   Type elementType, std::optional<int64_t> columns,
                   std::optional<int64_t> packed = std::nullopt,
                   bool isByElement = false, Value end = {}) {
  int64_t rank = memory.getRank(), indices = numIndices;
  int64_t trailing = columns ? 1 : 0;
  if (rank <= trailing)
    return op->emitOpError("takes ")
           << (columns ? "rows and columns" : "elements")
           << " of memory of rank " << trailing + 1 << " or more, not of "
           << memory;
  if (packed && (*packed < 1 || rank < 2 + trailing))
    return op->emitOpError("packs ")
           << *packed << " rows at a time of memory of rank " << rank
           << "; at least 1, along the last of two dimensions"
           << (columns ? " before the columns" : "");
  if (indices != rank && indices != rank - trailing)
    return op->emitOpError(
               "needs an index for each dimension but the columns: ")
           << rank - trailing << ", got " << numIndices;
  if (memory.getElementType() != elementType)
    return op->emitOpError("copies elements of ")
           << memory.getElementType() << " into a tile of " << elementType;
  if (columns && indices < rank && memory.getShape().back() != *columns)
    return op->emitOpError("needs as many columns in memory as in the tile, ")
           << *columns;
  if (!isByElement && !memory.isLastDimUnitStride())
    return op->emitOpError("needs memory whose last dimension is contiguous");
  return columns ? verifyColumnsOfMemory(op, memory, *columns, end) : success();
}

/// Checks the indices of whole rows of memory.
static LogicalResult verifyIndicesOfRows(Operation *op, MemRefType memory,
                                         size_t numIndices) {
  constexpr int64_t leastRank = 2;
  int64_t rank = memory.getRank();
  if (rank >= leastRank && static_cast<int64_t>(numIndices) == rank - 1)
    return success();
  return op->emitOpError("takes whole rows of memory of rank 2 or more, with "
                         "an index for each dimension but the columns: ")
         << std::max(rank, leastRank) - 1 << ", got " << numIndices;
}

static LogicalResult verifyIndicesOfWarpRows(Operation *op, MemRefType memory,
                                             size_t numIndices) {
  if (memory.getRank() == static_cast<int64_t>(numIndices) && numIndices >= 2)
    return success();
  return op->emitOpError("needs memory of rank 2 or more and an index for each "
                         "dimension: ")
         << memory.getRank() << ", got " << numIndices;
}

/// Whether a layout of `whole` and one of `part`, a value for each lane or row
/// of it, belong together.
static bool areRelated(RankedTensorType whole, RankedTensorType part) {
  auto warpRows = dyn_cast<WarpRowsAttr>(part.getEncoding());
  auto ofWhole = dyn_cast<WarpRowsAttr>(whole.getEncoding());
  if (!ofWhole != !warpRows)
    return false;
  if (warpRows &&
      (warpRows.getVector() != 1 || warpRows.getLanes() != ofWhole.getLanes() ||
       (part.getRank() == 2 && part.getDimSize(1) != warpRows.getLanes())))
    return false;
  return whole.getDimSize(0) == part.getDimSize(0) &&
         whole.getElementType() == part.getElementType() &&
         haveSameWarps(whole, part);
}

SmemType RingOp::getStageType() {
  SmemType stage = getResult().getType().getTile();
  if (!getRowStages())
    return stage;
  return SmemType::get(getContext(), rowsOfWarpgroup, stage.getColumns(),
                       stage.getElementType(), stage.getSwizzle());
}

int64_t RingOp::getNumStages() {
  return getRowStages().value_or(getResult().getType().getStages());
}

bool RingOp::isFilledFromRegisters() {
  return llvm::any_of(getResult().getUsers(),
                      llvm::IsaPred<RingPutOp, RingDequantizeOp>);
}

int64_t RingOp::getNumFullBarriers() {
  for (Operation *user : getResult().getUsers()) {
    auto roles = user->getParentOfType<WarpSpecializeOp>();
    if (!isa<RingWaitOp>(user) || !roles)
      continue;
    unsigned role = roles.getRoleOf(user);
    if (roles.addsInOrder(role))
      return getNumStages() * roles.getNumWarps(role);
  }
  return getNumStages();
}

LogicalResult RingOp::verify() {
  RingType type = getResult().getType();
  // A copy of eight rows has all of the swizzle's pattern.
  constexpr int64_t swizzleRows = 8;
  if (std::optional<int64_t> copies = getCopies();
      copies && (*copies < 1 || getRowStages() ||
                 *copies > type.getTile().getRows() / swizzleRows ||
                 type.getTile().getRows() % (*copies * swizzleRows) != 0))
    return emitOpError("cannot be filled by ")
           << *copies
           << " copies: each fills a multiple of 8 rows of a stage, without "
              "row_stages, not of "
           << type;
  if (getChecked() && getFinite())
    return emitOpError("has tiles that are made finite, which need no check");
  if (!getRowStages())
    return success();
  int64_t rows = type.getTile().getRows(), least = rows / rowsOfWarpgroup;
  if (type.getStages() != 1 || rows % rowsOfWarpgroup != 0 || getChecked() ||
      getFinite())
    return emitOpError(
               "has row_stages, which need one stage with a multiple of 64 "
               "rows, neither checked nor finite, got ")
           << type;
  if (static_cast<int64_t>(*getRowStages()) < least)
    return emitOpError("needs a row stage for each warpgroup, ")
           << least << ", got " << *getRowStages();
  return success();
}

RingReleaseOp RingWaitOp::getRelease() {
  for (auto release : (*this)->getBlock()->getOps<RingReleaseOp>())
    if (release.getRing() == getRing() && release.getStep() == getStep())
      return release;
  return {};
}

LogicalResult
PositionOp::inferReturnTypes(MLIRContext *context, std::optional<Location>,
                             ValueRange operands, DictionaryAttr attributes,
                             OpaqueProperties properties, RegionRange regions,
                             SmallVectorImpl<Type> &types) {
  Adaptor adaptor(operands, attributes, properties, regions);
  types.assign(adaptor.getSizes().size(), IndexType::get(context));
  if (adaptor.getOrder().getKind() == TileOrder::BothWays)
    types.push_back(IntegerType::get(context, 1));
  return success();
}

bool PositionOp::interleavesHeads(TileOrder order) {
  return order == TileOrder::Interleaved || order == TileOrder::Reverse ||
         order == TileOrder::BothWays;
}

LogicalResult PositionOp::verify() {
  if (getSizes().empty())
    return emitOpError("needs a grid of at least one dimension");
  if (getAdditions() && !interleavesHeads(getOrder().getKind()))
    return emitOpError("additions say how many heads interleaved, reverse and "
                       "both_ways take together; leave them out of the order ")
           << stringifyTileOrder(getOrder().getKind());
  return success();
}

/// Checks that where packed rows do not fill the tile something says so, and
/// that what lies behind the memory is behind some rows.
static LogicalResult verifyRest(Operation *op, std::optional<int64_t> packed,
                                Value rows, bool toEnd, SmemType tile) {
  if (toEnd && !rows)
    return op->emitOpError("to_end says where the rows behind rows(...) lie, "
                           "and all exist; leave it out");
  if (!packed || *packed < 1 || rows || tile.getRows() % *packed == 0)
    return success();
  return op->emitOpError("needs 'rows': of ")
         << tile.getRows() << " rows, packed by " << *packed << ", the last "
         << tile.getRows() % *packed << " do not exist";
}

LogicalResult FetchOp::verify() {
  SmemType tile = getResult().getType();
  int64_t parts = getNumParts();
  size_t counts = getRows().size();
  if (getParts() && (parts < 2 || tile.getRows() % parts != 0 || getPacked() ||
                     getIndices().size() % parts != 0))
    return emitOpError("fetches ")
           << tile.getRows() << " rows in " << parts << " parts, at "
           << getIndices().size()
           << " indices; at least two, of as many rows and indices each, and "
              "not packed";
  if (counts != 0 && static_cast<int64_t>(counts) != parts)
    return emitOpError("says of ")
           << counts << " parts how many rows exist, and has " << parts;
  if (failed(
          verifyRest(*this, getPacked(), getRowsOfPart(0), getToEnd(), tile)))
    return failure();
  return verifyRowsOfMemory(*this, getSource().getType(),
                            getIndicesOfPart(0).size(), tile.getElementType(),
                            tile.getColumns(), getPacked());
}

LogicalResult CopyAsyncOp::verify() {
  SmemType tile = getRing().getType().getTile();
  if (failed(verifyRest(*this, getPacked(), getRows(), getToEnd(), tile)))
    return failure();
  auto ring = getRing().getDefiningOp<RingOp>();
  if (getPacked() && ring && (ring.getRowStages() || ring.getNumCopies() > 1))
    return emitOpError("copies packed rows to a ring with row_stages or "
                       "copies; they go to whole stages");
  return verifyRowsOfMemory(*this, getSource().getType(), getIndices().size(),
                            tile.getElementType(), tile.getColumns(),
                            getPacked());
}

LogicalResult CopyOp::verify() {
  SmemType tile = getDestination().getType();
  int64_t rows = getTileRows().value_or(tile.getRows());
  if (rows < 1 || rows > tile.getRows())
    return emitOpError("fills 1 to ")
           << tile.getRows() << " rows of " << tile << ", got " << rows;
  if (failed(verifyRest(*this, getPacked(), getRows(), /*toEnd=*/false, tile)))
    return failure();
  return verifyRowsOfMemory(*this, getSource().getType(), getIndices().size(),
                            tile.getElementType(), tile.getColumns(),
                            getPacked());
}

/// Checks a fragment that is written to a tile of shared memory.
static LogicalResult verifyPut(Operation *op, RankedTensorType x, SmemType to) {
  if ((x.getElementTypeBitWidth() != 16 && !x.getElementType().isF32()) ||
      x.getElementType() != to.getElementType())
    return op->emitOpError("writes elements of 16 bits or f32 to a tile of the "
                           "same type, not ")
           << x.getElementType() << " to " << to.getElementType();
  return success();
}

/// How many elements of a vector of f32 lie in a row of shared memory.
static constexpr int64_t inRow = 8;

/// Whether a vector of f32 lies in the tile as `tile.load` and `tile.share`
/// have it.
static bool holdsVector(SmemType tile, RankedTensorType vector) {
  return tile.getElementType().isF32() && vector.getElementType().isF32() &&
         tile.getColumns() == inRow &&
         vector.getDimSize(0) == tile.getRows() * inRow;
}

/// What the columns of a fragment are a multiple of that is put into shared
/// memory: matrices of 16 bits are stored two at a time.
static int64_t getMultipleOfPut(RankedTensorType x) {
  return x.getElementType().isF32() ? 8 : 16;
}

/// Checks a fragment or values of rows that fill a tile of shared memory.
static LogicalResult verifyWholePut(Operation *op, RankedTensorType x,
                                    SmemType to) {
  if (x.getRank() == 1) {
    if (holdsVector(to, x))
      return success();
    return op->emitOpError("puts a value of f32 for each row, eight in a row, "
                           "not ")
           << x << " to " << to;
  }
  if (failed(verifyPut(op, x, to)))
    return failure();
  int64_t multiple = getMultipleOfPut(x);
  if (x.getDimSize(0) == to.getRows() && x.getDimSize(1) == to.getColumns() &&
      to.getColumns() % multiple == 0)
    return success();
  return op->emitOpError("fills a tile of as many rows and columns, a multiple "
                         "of ")
         << multiple << ", not " << to << " with " << x;
}

void ShareOp::build(OpBuilder &b, OperationState &state, Value x) {
  auto type = cast<RankedTensorType>(x.getType());
  bool isVector = type.getRank() == 1;
  build(b, state,
        SmemType::get(
            isVector ? type.getDimSize(0) / inRow : type.getDimSize(0),
            isVector ? inRow : type.getDimSize(1), type.getElementType()),
        x);
}

LogicalResult ShareOp::verify() {
  return verifyWholePut(*this, getX().getType(), getResult().getType());
}

LogicalResult RingCopyFiniteOp::verify() {
  if (!getTile().getDefiningOp<RingWaitOp>())
    return emitOpError("copies a tile that tile.ring.wait has not given");
  auto ring = getRing().getDefiningOp<RingOp>();
  int64_t bytes = getTile().getType().getAlignedBytes();
  if (ring && bytes > ring.getStageDistance())
    return emitOpError("copies a tile of ")
           << bytes << " bytes to a stage of " << ring.getStageDistance();
  return success();
}

LogicalResult RingPutOp::verify() {
  return verifyWholePut(*this, getX().getType(), getRing().getType().getTile());
}

/// A thread converts what it reads of a row at once, 16 bytes.
static constexpr int64_t dequantizedAtOnce = 16;

/// Checks the columns of a quantized tile, and the region that gives scales.
static LogicalResult verifyQuantized(Operation *op, SmemType tile,
                                     Region &scale) {
  if (tile.getColumns() % dequantizedAtOnce != 0)
    return op->emitOpError("converts ")
           << dequantizedAtOnce << " columns at a time, and " << tile << " has "
           << tile.getColumns() << "; the next multiple is "
           << llvm::alignTo(tile.getColumns(), dequantizedAtOnce);
  Block &block = scale.front();
  auto yield = dyn_cast<YieldOp>(block.getTerminator());
  if (block.getNumArguments() == 1 &&
      block.getArgument(0).getType().isIndex() && yield &&
      yield.getResult().getType().isF32())
    return success();
  return op->emitOpError("has a region that takes a row, an index, and yields "
                         "its scale, of f32");
}

/// Checks what becomes of a quantized tile.
static LogicalResult verifyDequantized(Operation *op, SmemType tile,
                                       SmemType result, Region &scale) {
  if (tile.getRows() != result.getRows() ||
      tile.getColumns() != result.getColumns() ||
      result.getElementType().getIntOrFloatBitWidth() != 16)
    return op->emitOpError("gives a tile of f16 or bf16 with the rows and "
                           "columns of ")
           << tile << ", not " << result;
  return verifyQuantized(op, tile, scale);
}

LogicalResult DequantizeOp::verify() {
  return verifyDequantized(*this, getTile().getType(), getResult().getType(),
                           getScale());
}

LogicalResult RingDequantizeOp::verify() {
  return verifyDequantized(*this, getTile().getType(),
                           getRing().getType().getTile(), getScale());
}

LogicalResult PutDequantizedOp::verify() {
  return verifyDequantized(*this, getTile().getType(),
                           getDestination().getType(), getScale());
}

LogicalResult StoreOp::verify() {
  auto tile = cast<RankedTensorType>(getX().getType());
  if (getAdd() && (!tile.getElementType().isF32() ||
                   !isa<FragmentAttr, WideFragmentAttr>(tile.getEncoding())))
    return emitOpError("adds a fragment of f32, not ") << tile;
  MemRefType memory = getDestination().getType();
  bool isMatrix = tile.getRank() == 2;
  if (isMatrix && tile.getElementType().isInteger())
    return emitOpError("stores integers of rows, not of a matrix, ") << tile;
  bool isWarpRows = isMatrix && isa<WarpRowsAttr>(tile.getEncoding());
  if (isWarpRows &&
      failed(verifyIndicesOfWarpRows(*this, memory, getIndices().size())))
    return failure();
  if (getPacked() && isa<WarpRowsAttr, ColumnsAttr>(tile.getEncoding()))
    return emitOpError("packs rows of fragments, not of ") << tile;
  if (getColumns() && !isMatrix)
    return emitOpError("ends at a column, which only a matrix does");
  return verifyRowsOfMemory(
      *this, memory, getIndices().size(), tile.getElementType(),
      isMatrix ? std::optional(tile.getDimSize(1)) : std::nullopt, getPacked(),
      /*isByElement=*/!isWarpRows && (!isMatrix || getColumns()), getColumns());
}

bool StoreBulkOp::canShareStage(StoreBulkOp other) {
  auto getRole = [](StoreBulkOp store) -> Region * {
    auto roles = store->getParentOfType<WarpSpecializeOp>();
    return roles ? &roles.getRoles()[roles.getRoleOf(store)] : nullptr;
  };
  SmemType stage = getStageType(), otherStage = other.getStageType();
  return !getReused() && !other.getReused() &&
         stage.getRows() == otherStage.getRows() &&
         stage.getSwizzle() == otherStage.getSwizzle() &&
         getRole(*this) == getRole(other);
}

LogicalResult StoreBulkOp::verify() {
  auto tile = cast<RankedTensorType>(getX().getType());
  SmemType stage = getStageType();
  if ((tile.getElementTypeBitWidth() != 16 && !tile.getElementType().isF32()) ||
      stage.getElementType() != tile.getElementType())
    return emitOpError("stores elements of 16 bits or f32, through a tile of "
                       "the same type, not ")
           << tile.getElementType() << " through " << stage.getElementType();
  if (getAdd() && !tile.getElementType().isF32())
    return emitOpError("adds elements of f32, not ") << tile.getElementType();
  Value reused = getReused();
  auto wait = reused ? reused.getDefiningOp<RingWaitOp>() : RingWaitOp();
  auto ring = wait ? wait.getRing().getDefiningOp<RingOp>() : RingOp();
  bool hasRowStages = reused && (ring ? ring.getRowStages().has_value()
                                      : getReused().getType() != stage);
  if (reused && !hasRowStages && getReused().getType() != stage)
    return emitOpError("reuses the memory of ")
           << reused.getType() << " for " << stage
           << "; the types must be the same, unless the tile belongs to a "
              "ring with row_stages";
  int64_t rows = hasRowStages ? rowsOfWarpgroup : tile.getDimSize(0);
  if (tile.getDimSize(1) % 16 != 0 || stage.getRows() != rows ||
      stage.getColumns() % stage.getPanelColumns() != 0)
    return emitOpError("stores a multiple of 16 columns through a tile of ")
           << rows << " rows with whole panels, not " << tile << " through "
           << stage;
  if (reused && stage.getColumns() < tile.getDimSize(1))
    return emitOpError("stores all columns in a row stage, which has ")
           << stage.getColumns() << " of " << tile.getDimSize(1);
  MemRefType memory = getDestination().getType();
  if (failed(verifyIndicesOfRows(*this, memory, getIndices().size())))
    return failure();
  bool ofSomeRows = static_cast<bool>(getRows());
  if (int64_t most = getMaxRank(ofSomeRows); memory.getRank() > most)
    return emitOpError("stores ")
           << (ofSomeRows ? "some rows of a tile" : "a tile")
           << " to memory of at most " << most << " dimensions, not " << memory;
  return verifyRowsOfMemory(*this, memory, getIndices().size(),
                            tile.getElementType(), tile.getDimSize(1));
}

/// Checks the memory in which ordered additions are counted.
static LogicalResult verifyCounts(Operation *op, MemRefType counts,
                                  size_t numIndices) {
  if (static_cast<int64_t>(numIndices) == counts.getRank())
    return success();
  return op->emitOpError("needs an index for each dimension of the counts: ")
         << counts.getRank() << ", got " << numIndices;
}

LogicalResult AddInOrderOp::verify() {
  SmemType tile = getTile().getType();
  MemRefType memory = getSums().getType();
  if (failed(verifyIndicesOfRows(*this, memory, getIndices().size())))
    return failure();
  if (failed(verifyRowsOfMemory(*this, memory, getIndices().size(),
                                tile.getElementType(), tile.getColumns())))
    return failure();
  return verifyCounts(*this, getCounts().getType(), getCountIndices().size());
}

LogicalResult StoreDiagonalsOp::verify() {
  SmemType tile = getTile().getType();
  int64_t rows = tile.getRows(), columns = tile.getColumns();
  if (rows != rowsOfDiagonals || (columns != 64 && columns != 128) ||
      tile.getElementBytes() != 2 || tile.getSwizzle() != 128)
    return emitOpError("adds up diagonals of tiles of 128 rows of 64 or 128 "
                       "elements of 16 bits, swizzle = 128, got ")
           << tile;
  MemRefType memory = getSums().getType();
  if (failed(verifyIndicesOfRows(*this, memory, getIndices().size())))
    return failure();
  if (memory.getShape().back() != rows + columns ||
      !memory.isLastDimUnitStride())
    return emitOpError("stores a row of ")
           << rows + columns << " elements side by side, got " << memory;
  return success();
}

LogicalResult StoreInterleavedOp::verify() {
  SmemType tile = getTile().getType();
  MemRefType memory = getDestination().getType();
  constexpr int64_t rowMultiple = 16, columnMultiple = 4;
  if (tile.getRows() % rowMultiple != 0 ||
      tile.getColumns() % columnMultiple != 0 ||
      tile.getElementType() != memory.getElementType())
    return emitOpError("interleaves a multiple of ")
           << rowMultiple << " rows, of elements as memory has them, got "
           << tile << " for " << memory;
  if (failed(verifyIndicesOfRows(*this, memory, getIndices().size())))
    return failure();
  if (memory.getShape().back() != tile.getRows() ||
      !memory.isLastDimUnitStride())
    return emitOpError("stores rows of ")
           << tile.getRows() << " elements side by side, got " << memory;
  return success();
}

LogicalResult AwaitRankOp::verify() {
  return verifyCounts(*this, getCounts().getType(), getIndices().size());
}

LogicalResult FinishRankOp::verify() {
  return verifyCounts(*this, getCounts().getType(), getIndices().size());
}

bool ClaimOp::leavesOutTiles() {
  if (getScalars().empty())
    return false;
  Operation *share = getScalars().front().getTerminator();
  return cast<ShareScalarsOp>(share).getIsNone() != nullptr;
}

LogicalResult ClaimOp::verify() {
  auto loop = dyn_cast<scf::ForOp>((*this)->getParentOp());
  if (!loop || getStep() != loop.getInductionVar() ||
      getConstantIntValue(loop.getLowerBound()) != 0 ||
      getConstantIntValue(loop.getStep()) != 1)
    return emitOpError("ends a loop over tiles; its step is what an scf.for "
                       "around it counts, from 0 on in steps of 1");
  return verifyCounts(*this, getCounts().getType(), getIndices().size());
}

LogicalResult ClaimOp::verifyRegions() {
  if (getScalars().empty())
    return getShared().empty()
               ? success()
               : emitOpError("shares ")
                     << getShared().size()
                     << " scalars, and has no region that computes them";
  Block &body = getScalars().front();
  auto share = dyn_cast_or_null<ShareScalarsOp>(
      body.mightHaveTerminator() ? body.getTerminator() : nullptr);
  if (!share || share.getShared().size() != getShared().size())
    return emitOpError(
               "needs a region that ends with a tile.share_scalars of as many "
               "scalars as it shares: ")
           << getShared().size();
  if (body.getNumArguments() != 1 || !body.getArgument(0).getType().isIndex())
    return emitOpError("needs a region with one argument of type index, the "
                       "number of the tile");
  return success();
}

LogicalResult CountUpOp::verify() {
  return verifyCounts(*this, getCounts().getType(), getIndices().size());
}

/// Whether an op stands in the body of a kernel, behind nothing that must
/// follow it.
template <typename Op>
static LogicalResult verifyComesFirst(Op op, const Twine &before) {
  Block *body = op->getBlock();
  if (!body->isEntryBlock() || !isa<FunctionOpInterface>(op->getParentOp()))
    return op.emitOpError("must stand in the body of a kernel, where all "
                          "threads come to it; move it out of ")
           << op->getParentOp()->getName();
  for (Operation &earlier :
       llvm::make_range(body->begin(), Block::iterator(op))) {
    if (!Op::mustFollow(&earlier))
      continue;
    InFlightDiagnostic error = op.emitOpError("must come before ") << before;
    error.attachNote(earlier.getLoc()) << "move it in front of this";
    return error;
  }
  return success();
}

bool EndBlockIfOp::mustFollow(Operation *op) {
  // Rings say that there is memory, and dependencies are of all blocks.
  if (isa<RingOp, AwaitDependenciesOp, LaunchDependentsOp, EndBlockIfOp,
          EndGridOp>(op))
    return false;
  std::optional<SmallVector<MemoryEffects::EffectInstance>> effects =
      getEffectsRecursively(op);
  return !effects || llvm::any_of(*effects, [](const auto &effect) {
    return !isa<MemoryEffects::Read>(effect.getEffect());
  });
}

LogicalResult EndBlockIfOp::verify() {
  return verifyComesFirst(*this, "anything that does more than to read");
}

LogicalResult EndGridOp::verify() {
  if (llvm::hasSingleElement((*this)->getBlock()->getOps<EndGridOp>()))
    return success();
  return emitOpError("is written once, got several");
}

bool AwaitDependenciesOp::mustFollow(Operation *op) {
  auto usesMemory = [](Operation *nested) {
    bool hasMemory =
        llvm::any_of(nested->getOperandTypes(), llvm::IsaPred<BaseMemRefType>);
    return hasMemory && !isMemoryEffectFree(nested) ? WalkResult::interrupt()
                                                    : WalkResult::advance();
  };
  return op->walk(usesMemory).wasInterrupted();
}

LogicalResult AwaitDependenciesOp::verify() {
  return verifyComesFirst(*this,
                          "anything that may read or write global memory");
}

LogicalResult PutOp::verify() {
  auto x = cast<RankedTensorType>(getX().getType());
  SmemType to = getDestination().getType();
  if (x.getRank() == 1) {
    if (getColumn() == 0 && !getAlternate())
      return verifyWholePut(*this, x, to);
    return emitOpError("puts values of rows from column 0 on, without "
                       "alternate, got column ")
           << getColumn();
  }
  if (failed(verifyPut(*this, x, to)))
    return failure();
  int64_t multiple = getMultipleOfPut(x);
  if ((x.getDimSize(0) != to.getRows() && to.getRows() != rowsOfWarpgroup) ||
      x.getDimSize(1) % multiple != 0 || to.getColumns() % multiple != 0)
    return emitOpError("writes a multiple of ")
           << multiple
           << " columns to the same rows, or 64 of each warpgroup, not " << x
           << " to " << to;
  int64_t column = getColumn();
  if (column < 0 || column >= x.getDimSize(1) || column % 16 != 0)
    return emitOpError("begins at a multiple of 16 below ")
           << x.getDimSize(1) << ", got " << column;
  if (getAlternate() && !canAlternate(x, to))
    return emitOpError("alternates between columns of f32 that fill a panel "
                       "with a swizzle of 128 bytes, not ")
           << x << " to " << to;
  return success();
}

bool PutOp::canAlternate(RankedTensorType x, SmemType to) {
  return x.getRank() == 2 && x.getElementType().isF32() &&
         to.getSwizzle() == 128 && x.getDimSize(1) >= to.getPanelColumns() &&
         to.getColumns() >= to.getPanelColumns();
}

static LogicalResult verifyWarps(Operation *op, int64_t warps) {
  if (warps >= 1 && warps <= 32)
    return success();
  return op->emitOpError("is done by 1 to 32 warps, got ") << warps;
}

LogicalResult IsFiniteOp::verify() {
  return verifyWarps(*this, getWarps().value_or(1));
}

LogicalResult MakeFiniteOp::verify() {
  if (getCopy() && getCopy().getType() != getTile().getType())
    return emitOpError("copies a tile of ")
           << getTile().getType() << " to one of " << getCopy().getType()
           << "; both have the same type";
  if (getCopy() && !getWarps())
    return emitOpError("copies a tile, and needs warps(N), of which each "
                       "copies a share");
  return verifyWarps(*this, getWarps().value_or(1));
}

LogicalResult ClearOp::verify() { return verifyWarps(*this, getWarps()); }

/// Checks that the tile has so many columns from the panel on, as far as that
/// is known.
static LogicalResult verifyColumnsOf(Operation *op, SmemType tile, Value panel,
                                     int64_t columns) {
  int64_t first = 0;
  if (panel)
    first = getConstantIntValue(panel).value_or(0) * tile.getPanelColumns();
  if (first >= 0 && first + columns <= tile.getColumns())
    return success();
  return op->emitOpError("takes ")
         << columns << " columns from column " << first << " on of " << tile;
}

int64_t MmaAsyncOp::getNumParts() {
  return getDivideColumns()
             ? getResult().getType().getValue().getDimSize(0) / rowsOfWarpgroup
             : 1;
}

LogicalResult MmaAsyncOp::verify() {
  RankedTensorType result = getResult().getType().getValue();
  auto layout = dyn_cast_or_null<FragmentAttr>(result.getEncoding());
  if (!layout || !result.getElementType().isF32())
    return emitOpError("gives a fragment of f32, not ") << result;
  int64_t rows, inner;
  Type elementType;
  if (auto tile = dyn_cast<SmemType>(getA().getType())) {
    bool isOfWarpgroup =
        getWarpgroup() && !getTransposeA() && tile.getRows() == rowsOfWarpgroup;
    rows = isOfWarpgroup ? result.getDimSize(0) : tile.getRows();
    inner = tile.getColumns();
    if (getTransposeA())
      std::swap(rows, inner);
    elementType = tile.getElementType();
  } else {
    auto tensor = cast<RankedTensorType>(getA().getType());
    if (tensor.getEncoding() != layout)
      return emitOpError("needs operands and result over the same warps");
    rows = tensor.getDimSize(0);
    inner = tensor.getDimSize(1);
    elementType = tensor.getElementType();
  }
  if (getTransposeA() && (!isa<SmemType>(getA().getType()) ||
                          elementType.getIntOrFloatBitWidth() != 16))
    return emitOpError("transposes a tile of shared memory with elements of 16 "
                       "bits, not ")
           << getA().getType();
  SmemType b = getB().getType();
  int64_t innerOfB = getTransposeB() ? b.getColumns() : b.getRows();
  int64_t columns = getTransposeB() ? b.getRows() : result.getDimSize(1);
  if (getTransposeB() && getPanel())
    return emitOpError("takes columns from a panel on of a second operand that "
                       "is not transposed");
  if (elementType != b.getElementType())
    return emitOpError("multiplies elements of ")
           << elementType << " by elements of " << b.getElementType();
  if (getTf32() && !elementType.isF32())
    return emitOpError("rounds operands of f32 only to tf32, not of ")
           << elementType;
  bool isE4M3 = isa<Float8E4M3FNType>(elementType);
  if (getWarpgroup() && elementType.getIntOrFloatBitWidth() != 16 && !isE4M3)
    return emitOpError("has no form for warpgroups with elements of ")
           << elementType;
  if (isE4M3 && !getTransposeB())
    return emitOpError("multiplies elements of ")
           << elementType << " by a second operand with transpose_b alone";
  constexpr int64_t interleaved = 32;
  if (isE4M3 && !isa<SmemType>(getA().getType()) && inner % interleaved != 0)
    return emitOpError("interleaves columns of elements of ")
           << elementType << " in registers, which are a multiple of "
           << interleaved << ", not " << inner;
  if (getWarpgroup() &&
      (layout.getWarps() % 4 != 0 ||
       result.getDimSize(0) != rowsOfWarp * layout.getWarps()))
    return emitOpError("needs 64 rows for each warpgroup of four warps");
  if (getWarpgroup() && columns > 256)
    return emitOpError("has at most 256 columns in a warpgroup, got ")
           << columns;
  if (inner != innerOfB)
    return emitOpError("contracts ")
           << inner << (getTransposeA() ? " rows" : " columns") << " of a with "
           << innerOfB << " of b";
  // Rows behind a tile in shared memory belong to another one.
  bool isAlongRows = getTransposeA() || !getTransposeB();
  if (isAlongRows && elementType.getIntOrFloatBitWidth() == 16 &&
      inner % rowMultiple != 0)
    return emitOpError("contracts rows of 16-bit elements, which are a "
                       "multiple of ")
           << rowMultiple << ", not " << inner;
  if (getDivideColumns()) {
    if (!isa<SmemType>(getA().getType()) || rows != rowsOfWarpgroup ||
        getTransposeB() || getPanel() || getC() ||
        columns % b.getPanelColumns() != 0)
      return emitOpError("divides the columns of a second operand that is not "
                         "transposed, from panels on, among warpgroups that "
                         "multiply 64 rows in shared memory by them");
    rows *= getNumParts();
    columns *= getNumParts();
    if (columns != b.getColumns())
      return emitOpError("divides ")
             << b.getColumns() << " columns of b, and gives " << columns;
    columns /= getNumParts();
  }
  if (result.getDimSize(0) != rows || result.getDimSize(1) != columns)
    return emitOpError("gives a tile of ")
           << rows << " x " << columns << ", not " << result;
  if (!getTransposeB() &&
      failed(verifyColumnsOf(*this, b, getPanel(), columns)))
    return failure();
  if (getC() && getC().getType() != result)
    return emitOpError("adds to a tile of another type than its result: ")
           << getC().getType();
  return success();
}

Type MmaQuantizedOp::getFactorType() {
  if (auto tile = dyn_cast<SmemType>(getA().getType()))
    return tile.getElementType();
  return getElementTypeOrSelf(getA().getType());
}

LogicalResult MmaQuantizedOp::verify() {
  RankedTensorType result = getResult().getType();
  SmemType tile = getB().getType();
  if (failed(verifyQuantized(*this, tile, getScale())))
    return failure();
  if (tile.getRows() % MmaAsyncOp::rowMultiple != 0)
    return emitOpError("multiplies by ")
           << MmaAsyncOp::rowMultiple << " rows at a time, and " << tile
           << " has " << tile.getRows() << "; the next multiple is "
           << llvm::alignTo(tile.getRows(), MmaAsyncOp::rowMultiple);
  if (getTransposeB() != isa<FragmentAttr>(result.getEncoding()) ||
      !result.getElementType().isF32())
    return emitOpError("gives a fragment of f32 with transpose_b, and a wide "
                       "one without, not ")
           << result;
  int64_t rows, inner;
  if (auto a = dyn_cast<SmemType>(getA().getType())) {
    rows = a.getRows();
    inner = a.getColumns();
  } else {
    auto registers = cast<RankedTensorType>(getA().getType());
    if (!haveSameWarps(registers, result))
      return emitOpError("needs operands and result over the same warps");
    rows = registers.getDimSize(0);
    inner = registers.getDimSize(1);
  }
  if (getFactorType().getIntOrFloatBitWidth() != 16)
    return emitOpError("multiplies f16 or bf16, not ") << getFactorType();
  int64_t columns = tile.getColumns(), innerOfB = tile.getRows();
  if (getTransposeB())
    std::swap(columns, innerOfB);
  if (inner != innerOfB)
    return emitOpError("contracts ")
           << inner << " columns of a with " << innerOfB << " of b";
  if (result.getDimSize(0) != rows || result.getDimSize(1) != columns)
    return emitOpError("gives a tile of ")
           << rows << " x " << columns << ", not " << result;
  if (getC() && getC().getType() != result)
    return emitOpError("adds to a tile of another type than its result: ")
           << getC().getType();
  return success();
}

/// Where a role's warps start if nothing else is said: behind the warps before.
static int64_t getDefaultFirstWarp(int64_t end, int64_t warps) {
  return warps % warpsOfWarpgroup == 0 ? llvm::alignTo(end, warpsOfWarpgroup)
                                       : end;
}

void WarpSpecializeOp::build(OpBuilder &b, OperationState &state,
                             ArrayRef<StringRef> names,
                             ArrayRef<int64_t> firstWarps,
                             ArrayRef<int64_t> warps,
                             ArrayRef<int64_t> registers) {
  build(b, state, b.getStrArrayAttr(names), b.getDenseI64ArrayAttr(firstWarps),
        b.getDenseI64ArrayAttr(warps), b.getDenseI64ArrayAttr(registers),
        names.size());
  for (auto &region : state.regions)
    region->emplaceBlock();
}

ParseResult WarpSpecializeOp::parse(OpAsmParser &parser,
                                    OperationState &state) {
  SmallVector<Attribute> names;
  SmallVector<int64_t> firstWarps, warps, registers;
  StringAttr name;
  int64_t end = 0;
  while (succeeded(parser.parseOptionalSymbolName(name))) {
    // No sum of these overflows below.
    int32_t count, written, each;
    if (parser.parseLParen() || parser.parseKeyword("warps") ||
        parser.parseEqual() || parser.parseInteger(count))
      return failure();
    int64_t first = getDefaultFirstWarp(end, count);
    if (succeeded(parser.parseOptionalKeyword("from"))) {
      if (parser.parseInteger(written))
        return failure();
      first = written;
    }
    Region *region = state.addRegion();
    if (parser.parseComma() || parser.parseKeyword("registers") ||
        parser.parseEqual() || parser.parseInteger(each) ||
        parser.parseRParen() || parser.parseRegion(*region))
      return failure();
    if (region->empty())
      region->emplaceBlock();
    names.push_back(name);
    firstWarps.push_back(first);
    warps.push_back(count);
    registers.push_back(each);
    end = first + count;
  }
  Builder &b = parser.getBuilder();
  auto &properties = state.getOrAddProperties<Properties>();
  properties.names = b.getArrayAttr(names);
  properties.first_warps = b.getDenseI64ArrayAttr(firstWarps);
  properties.warps = b.getDenseI64ArrayAttr(warps);
  properties.registers = b.getDenseI64ArrayAttr(registers);
  return parser.parseOptionalAttrDict(state.attributes);
}

void WarpSpecializeOp::print(OpAsmPrinter &printer) {
  int64_t end = 0;
  for (unsigned role = 0; role < getNumRoles(); ++role) {
    printer << ' ';
    printer.printSymbolName(getName(role));
    printer << "(warps = " << getNumWarps(role);
    if (getFirstWarp(role) != getDefaultFirstWarp(end, getNumWarps(role)))
      printer << " from " << getFirstWarp(role);
    printer << ", registers = " << getNumRegisters(role) << ") ";
    printer.printRegion(getRoles()[role]);
    end = getEndWarp(role);
  }
  printer.printOptionalAttrDict((*this)->getAttrs(),
                                {"names", "first_warps", "warps", "registers"});
}

int64_t WarpSpecializeOp::getNumWarpgroups() {
  return llvm::divideCeil(getEndWarp(getNumRoles() - 1), warpsOfWarpgroup);
}

void WarpSpecializeOp::setNumRegisters(unsigned role, int64_t registers) {
  SmallVector<int64_t> all(getRegisters());
  for (unsigned other = 0; other < getNumRoles(); ++other)
    if (getFirstWarp(other) / warpsOfWarpgroup ==
        getFirstWarp(role) / warpsOfWarpgroup)
      all[other] = registers;
  setRegisters(all);
}

void WarpSpecializeOp::leaveRegisters(unsigned from, unsigned role,
                                      int64_t enough) {
  while (getNumRegisters(role) < enough) {
    setNumRegisters(role, getNumRegisters(role) +
                              registerGranularity * getNumWarpgroups(from));
    setNumRegisters(from, getNumRegisters(from) - registerGranularity);
  }
}

unsigned WarpSpecializeOp::getRoleOf(Operation *op) {
  Region *region = op->getParentRegion();
  while (region->getParentOp() != *this)
    region = region->getParentOp()->getParentRegion();
  return region->getRegionNumber();
}

template <typename OpTy> static bool hasAny(Region &role) {
  return role.walk([](OpTy) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

bool WarpSpecializeOp::addsInOrder(unsigned role) {
  return hasAny<AddInOrderOp>(getRoles()[role]);
}

bool WarpSpecializeOp::alternates(unsigned role) {
  return addsInOrder(role) || hasAny<StoreDiagonalsOp>(getRoles()[role]);
}

bool WarpSpecializeOp::isOfOneThread(unsigned role) {
  return (getNumWarps(role) == 1 || addsInOrder(role)) &&
         !getRoles()[role]
              .walk([](Operation *op) {
                auto ringOp = dyn_cast<RingOpInterface>(op);
                bool isCopy =
                    ringOp && (ringOp.hasRingEffect(RingEffect::Acquire) ||
                               isa<CopyAsyncOp>(op));
                bool isAddition = isa<AddInOrderOp, RingWaitOp, RingReleaseOp,
                                      ClaimOp, ShareScalarsOp>(op);
                return isa<TileDialect>(op->getDialect()) && !isCopy &&
                               !isAddition
                           ? WalkResult::interrupt()
                           : WalkResult::advance();
              })
              .wasInterrupted();
}

LogicalResult WarpSpecializeOp::verify() {
  unsigned roles = getNumRoles();
  if (roles == 0 || getNames().size() != roles ||
      getFirstWarps().size() != roles || getWarps().size() != roles ||
      getRegisters().size() != roles)
    return emitOpError("needs at least one role, and a name, warps and "
                       "registers for each role");
  constexpr int64_t mostWarps = 32;
  llvm::StringSet<> names;
  int64_t end = 0, warpgroups = 0, needed = 0, ofWarpgroup = 0;
  for (unsigned role = 0; role < roles; ++role) {
    if (!names.insert(getName(role)).second)
      return emitOpError("has two roles with the name '")
             << getName(role) << "'";
    int64_t first = getFirstWarp(role), count = getNumWarps(role);
    bool isShared = first < warpgroups * warpsOfWarpgroup;
    if (count < 1 || first < end || first > mostWarps ||
        count > mostWarps - first || first / warpsOfWarpgroup > warpgroups)
      return emitOpError("gives the role '")
             << getName(role) << "' " << count << " warps from " << first
             << " on; the warps of a role follow the warps of the role before "
                "it, with no warpgroup between them, and a block has "
             << mostWarps;
    if (count > warpsOfWarpgroup &&
        (count % warpsOfWarpgroup != 0 || first % warpsOfWarpgroup != 0))
      return emitOpError("gives the role '")
             << getName(role) << "' " << count
             << " warps, more than a warpgroup, that are no whole ones";
    int64_t registers = getNumRegisters(role);
    if (registers % registerGranularity != 0 || registers < 24 ||
        registers > 256)
      return emitOpError("gives a thread 24 to 256 registers, a multiple of 8, "
                         "not ")
             << registers;
    if (isShared && registers != ofWarpgroup)
      return emitOpError("gives the role '")
             << getName(role)
             << "' other registers than the role before, of whose warpgroup it "
                "has warps";
    end = first + count;
    int64_t more = llvm::divideCeil(end, warpsOfWarpgroup) - warpgroups;
    needed += more * registers;
    warpgroups += more;
    ofWarpgroup = registers;
  }
  Operation *kernel = getOperation()->getParentOp();
  int64_t atStart =
      getStartRegisters(getMachineOfKernels(getOperation()), warpgroups - 1,
                        kernel ? getCtasPerSm(kernel) : 1);
  // More would never be granted.
  if (needed > warpgroups * atStart)
    return emitOpError("needs ")
           << needed << " registers of threads, one in each warpgroup, and "
           << getNumThreads() << " threads start with " << atStart << " each";
  return success();
}

LogicalResult LoadOp::verify() {
  SmemType source = getSource().getType();
  RankedTensorType result = getResult().getType();
  int64_t rows = source.getRows(), columns = source.getColumns();
  if (result.getRank() == 1) {
    if (!getTranspose() && holdsVector(source, result))
      return success();
    return emitOpError("takes a value of f32 for each of ")
           << result.getDimSize(0)
           << (isa<ColumnsAttr>(result.getEncoding()) ? " columns" : " rows")
           << " from " << source << "; they lie eight in a row, not transposed";
  }
  if (getTranspose())
    std::swap(rows, columns);
  if (result.getElementType() == source.getElementType() &&
      result.getShape() == ArrayRef<int64_t>({rows, columns}))
    return success();
  return emitOpError("gives a tensor of another shape or element type than ")
         << source;
}

LogicalResult ReadOp::verify() {
  RankedTensorType result = getResult().getType();
  MemRefType memory = getSource().getType();
  bool isMatrix = result.getRank() == 2;
  if (!isMatrix && (getColumns() || getAligned()))
    return emitOpError("reads a vector, which has no columns and is read one "
                       "by one");
  if (isMatrix) {
    if (failed(verifyIndicesOfWarpRows(*this, memory, getIndices().size())))
      return failure();
    if (memory.getElementType() != result.getElementType())
      return emitOpError("gives elements as they are in memory, of ")
             << memory.getElementType() << ", not " << result.getElementType();
  } else if (failed(verifyRowsOfMemory(*this, memory, getIndices().size(),
                                       result.getElementType(),
                                       /*columns=*/std::nullopt,
                                       /*packed=*/std::nullopt,
                                       /*isByElement=*/true))) {
    return failure();
  }
  if (getPadding() && getPadding().getType() != result.getElementType())
    return emitOpError("is padded with an element, of ")
           << result.getElementType() << ", not " << getPadding().getType();
  if (isMatrix && !memory.isLastDimUnitStride())
    return emitOpError("needs memory whose last dimension is contiguous");
  return isMatrix ? verifyColumnsOfMemory(*this, memory, result.getDimSize(1),
                                          getColumns())
                  : success();
}

LogicalResult LoadRowOp::verify() {
  RankedTensorType result = getResult().getType();
  if (!result.getElementType().isF32())
    return emitOpError("gives a tensor of f32, not ") << result;
  return verifyColumnsOf(*this, getSource().getType(), getPanel(),
                         result.getDimSize(1));
}

LogicalResult ColumnOp::verify() {
  auto x = cast<RankedTensorType>(getX().getType());
  auto result = cast<RankedTensorType>(getResult().getType());
  if (isa<FloatType>(x.getElementType()) && result.getElementType().isF32() &&
      result.getDimSize(0) == x.getDimSize(0) && haveSameWarps(result, x))
    return success();
  return emitOpError("gives an f32 for each row of a tile of floats, over the "
                     "same warps as ")
         << x;
}

LogicalResult AnyOp::verify() {
  if (getX().getType().getElementType().isInteger(1))
    return success();
  return emitOpError("needs conditions of type i1, not ") << getX().getType();
}

LogicalResult BroadcastOp::verify() {
  RankedTensorType result = getResult().getType();
  auto source = dyn_cast<RankedTensorType>(getSource().getType());
  if (getElementTypeOrSelf(getSource().getType()) != result.getElementType())
    return emitOpError("does not convert elements to ")
           << result.getElementType();
  if (source && isa<ColumnsAttr>(source.getEncoding())) {
    if (isa<FragmentAttr>(result.getEncoding()) &&
        result.getDimSize(1) == source.getDimSize(0) &&
        haveSameWarps(result, source))
      return success();
    return emitOpError("needs a fragment over the same warps with as many "
                       "columns as its operand has elements");
  }
  if (source && (source.getRank() != 1 || result.getRank() != 2 ||
                 !areRelated(result, source)))
    return emitOpError("needs as many rows and warps in its result, a matrix, "
                       "as in its operand, which is a vector");
  return success();
}

LogicalResult FoldOp::verify() {
  RankedTensorType x = getX().getType(), result = getResult().getType();
  if (!x.getElementType().isF32())
    return emitOpError("combines elements of f32, not of ")
           << x.getElementType();
  if (x.getRank() == 2 && result.getRank() == 2 && areRelated(x, result))
    return success();
  return emitOpError("needs rows, warps and elements alike in its operands");
}

LogicalResult ReduceOp::verify() {
  RankedTensorType x = getX().getType(), result = getResult().getType();
  if (!x.getElementType().isF32())
    return emitOpError("combines elements of f32, not of ")
           << x.getElementType();
  if (x.getRank() == 2 && result.getRank() == 1 && areRelated(result, x))
    return success();
  return emitOpError("needs rows, warps and elements alike in its operand and "
                     "result");
}

int64_t ReduceOp::getNumScratchBytes() {
  auto type = cast<RankedTensorType>(getResult().getType());
  auto warpRows = dyn_cast<WarpRowsAttr>(type.getEncoding());
  if (!warpRows || warpRows.getLanes() <= 32)
    return 0;
  return warpRows.getLanes() / 32 * type.getDimSize(0) * 4;
}

LogicalResult ReduceRowsOp::verify() {
  RankedTensorType x = getX().getType(), result = getResult().getType();
  if (x.getElementType().isF32() && result.getElementType().isF32() &&
      x.getDimSize(1) == result.getDimSize(0) && haveSameWarps(x, result))
    return success();
  return emitOpError("gives an f32 for each column of a tile of f32, over the "
                     "same warps, not ")
         << result << " for " << x;
}

int64_t ReduceRowsOp::getNumScratchBytes() {
  auto type = cast<RankedTensorType>(getResult().getType());
  int64_t warps = getLayout(type).getNumWarps();
  return warps == 1 ? 0 : warps * type.getDimSize(0) * 4;
}

LogicalResult MapOp::verify() {
  RankedTensorType result = getResult().getType();
  if (isa<LanesAttr>(result.getEncoding()) || !result.getElementType().isF32())
    return emitOpError(
               "gives a tile of f32 in a layout of fragments or warp rows, "
               "not ")
           << result;
  for (Value input : getInputs())
    if (input.getType() != result)
      return emitOpError("takes tiles of the same type as it gives, not ")
             << input.getType();
  Block &block = getBody().front();
  Type element = result.getElementType();
  SmallVector<Type> types(getInputs().size(), element);
  types.append(result.getRank(), IndexType::get(getContext()));
  if (block.getArgumentTypes() != ArrayRef(types))
    return emitOpError("needs a region with an argument of ")
           << element << " for each of " << getInputs().size()
           << " tiles and of index for each of " << result.getRank()
           << " dimensions";
  auto yield = dyn_cast<YieldOp>(block.getTerminator());
  if (!yield || yield.getResult().getType() != element)
    return emitOpError("needs a region that yields ") << element;
  return success();
}
