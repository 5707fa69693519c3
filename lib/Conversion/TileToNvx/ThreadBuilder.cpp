//===- ThreadBuilder.cpp - Types and scalar code of one thread ------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"

#include "flash/Dialect/Nvx/IR/KernelAbi.h"
#include "flash/Dialect/Nvx/IR/Nvx.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace flash;

static Type getPointer(MLIRContext *context, NVVM::NVVMMemorySpace space) {
  return LLVM::LLVMPointerType::get(context, static_cast<unsigned>(space));
}

Machine ThreadBuilder::machine() const {
  return getMachineOfKernels(b.getInsertionBlock()->getParentOp());
}

VectorType flash::getRegisterType(RankedTensorType tile) {
  auto layout = cast<tile::LayoutAttrInterface>(tile.getEncoding());
  int64_t registers = layout.getNumRegisters(tile.getShape());
  // Two elements of 16 bits share a register, or four of 8.
  constexpr int64_t bitsOfRegister = 32;
  if (int64_t bits = tile.getElementTypeBitWidth(); bits == 16 || bits == 8)
    return VectorType::get({registers * bits / bitsOfRegister},
                           IntegerType::get(tile.getContext(), bitsOfRegister));
  return VectorType::get({registers}, tile.getElementType());
}

ThreadTypeConverter::ThreadTypeConverter() {
  addConversion([](Type type) { return type; });
  addConversion([](RankedTensorType type) -> Type {
    if (isa_and_nonnull<tile::LayoutAttrInterface>(type.getEncoding()))
      return getRegisterType(type);
    return type;
  });
  addConversion([](tile::SmemType type) -> Type {
    return getPointer(type.getContext(), NVVM::NVVMMemorySpace::Shared);
  });
  addConversion([&](tile::PendingType type) -> Type {
    return convertType(type.getValue());
  });
  addConversion(
      [](MemRefType type, SmallVectorImpl<Type> &results) -> LogicalResult {
        llvm::append_range(results, getPartTypes(type));
        return success(!results.empty());
      });
  // A kernel keeps its memrefs until convert-nvx-to-llvm, so that it and its
  // launches agree.
  addTargetMaterialization([](OpBuilder &b, TypeRange types, ValueRange inputs,
                              Location loc) -> SmallVector<Value> {
    return UnrealizedConversionCastOp::create(b, loc, types, inputs)
        .getResults();
  });
}

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

Value ThreadBuilder::constant(int64_t value) {
  return arith::ConstantIndexOp::create(b, loc, value);
}
Value ThreadBuilder::i32(int64_t value) {
  return arith::ConstantIntOp::create(b, loc, b.getI32Type(), value);
}
Value ThreadBuilder::f32(double value) {
  return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value));
}
Value ThreadBuilder::add(Value x, Value y) {
  return arith::AddIOp::create(b, loc, x, y);
}
Value ThreadBuilder::mul(Value x, int64_t y) {
  return arith::MulIOp::create(b, loc, x, constant(y));
}
Value ThreadBuilder::div(Value x, int64_t y) {
  return arith::DivUIOp::create(b, loc, x, constant(y));
}
Value ThreadBuilder::rem(Value x, int64_t y) {
  return arith::RemUIOp::create(b, loc, x, constant(y));
}
Value ThreadBuilder::xorWith(Value x, Value y) {
  return arith::XOrIOp::create(b, loc, x, y);
}
Value ThreadBuilder::thread() {
  return gpu::ThreadIdOp::create(b, loc, gpu::Dimension::x);
}
Value ThreadBuilder::warpgroup() {
  Value number = nvx::WarpgroupOp::create(b, loc, b.getI32Type());
  return arith::IndexCastUIOp::create(b, loc, b.getIndexType(), number);
}
Value ThreadBuilder::warpOf(Attribute layout) {
  int64_t first = cast<tile::LayoutAttrInterface>(layout).getFirstWarp();
  if (first == 0)
    return warp();
  return arith::SubIOp::create(b, loc, warp(), constant(first));
}
Value ThreadBuilder::fragmentRow(Attribute layout) {
  return add(mul(warpOf(layout), 16), div(lane(), 4));
}
Value ThreadBuilder::fragmentColumn(Attribute layout) {
  bool isWide = isa_and_nonnull<tile::WideFragmentAttr>(layout);
  return mul(rem(lane(), 4), isWide ? 4 : 2);
}

SmallVector<Value, 2>
ThreadBuilder::getPosition(tile::LayoutAttrInterface layout, int64_t rank) {
  if (auto warpRows = dyn_cast<tile::WarpRowsAttr>(layout)) {
    int64_t lanes = warpRows.getLanes();
    Value row = div(thread(), lanes);
    if (rank == 1)
      return {row};
    return {row, mul(rem(thread(), lanes), warpRows.getVector())};
  }
  if (isa<tile::ColumnsAttr>(layout))
    return {fragmentColumn()};
  if (rank == 1)
    return {fragmentRow(layout)};
  return {fragmentRow(layout), fragmentColumn(layout)};
}

SmallVector<Value> ThreadBuilder::unpack(Value vector) {
  return SmallVector<Value>(
      vector::ToElementsOp::create(b, loc, vector).getResults());
}

Value ThreadBuilder::pack(ValueRange registers) {
  auto type = VectorType::get({static_cast<int64_t>(registers.size())},
                              registers.front().getType());
  return vector::FromElementsOp::create(b, loc, type, registers);
}

std::array<Value, 2> ThreadBuilder::extendPair(Value pair, Type element) {
  Value elements =
      LLVM::BitcastOp::create(b, loc, VectorType::get({2}, element), pair);
  std::array<Value, 2> result;
  for (auto [i, value] : llvm::enumerate(result)) {
    value = LLVM::ExtractElementOp::create(b, loc, elements, i32(i));
    value = arith::ExtFOp::create(b, loc, b.getF32Type(), value);
  }
  return result;
}

std::array<Value, 2> ThreadBuilder::splitPair(Value pair, Type element) {
  Value elements =
      LLVM::BitcastOp::create(b, loc, VectorType::get({2}, element), pair);
  return {LLVM::ExtractElementOp::create(b, loc, elements, i32(0)),
          LLVM::ExtractElementOp::create(b, loc, elements, i32(1))};
}

Value ThreadBuilder::truncatePair(Value low, Value high, Type element) {
  Type pair = VectorType::get({2}, element);
  Value rounded;
  // The first operand goes to the upper half.
  auto mode = NVVM::FPRoundingMode::RN;
  if (machine().products < MatrixProducts::M16N8K16)
    rounded = LLVM::FPTruncOp::create(b, loc, pair, pack({low, high}));
  else if (element.isF16())
    rounded = NVVM::ConvertF32x2ToF16x2Op::create(
        b, loc, pair, high, low, /*random_bits=*/Value(), mode);
  else
    rounded = NVVM::ConvertF32x2ToBF16x2Op::create(
        b, loc, pair, high, low, /*random_bits=*/Value(), mode);
  return LLVM::BitcastOp::create(b, loc, b.getI32Type(), rounded);
}

Value ThreadBuilder::advance(Value pointer, Value offset) {
  Value bytes = arith::IndexCastOp::create(b, loc, b.getI32Type(), offset);
  return LLVM::GEPOp::create(b, loc, pointer.getType(), b.getI8Type(), pointer,
                             ArrayRef<LLVM::GEPArg>{bytes});
}

Value ThreadBuilder::advance(Value pointer, int64_t offset) {
  if (offset == 0)
    return pointer;
  return LLVM::GEPOp::create(
      b, loc, pointer.getType(), b.getI8Type(), pointer,
      ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(offset)});
}

Value ThreadBuilder::sharedMemory() {
  return nvx::SharedMemoryOp::create(
      b, loc, getPointer(b.getContext(), NVVM::NVVMMemorySpace::Shared));
}

Value ThreadBuilder::emitChoice(Value condition, Type type,
                                function_ref<Value()> emitThen,
                                function_ref<Value()> emitElse) {
  auto choice =
      scf::IfOp::create(b, loc, type ? TypeRange(type) : TypeRange(), condition,
                        /*withElseRegion=*/!!emitElse);
  OpBuilder::InsertionGuard guard(b);
  auto fill = [&](Block &block, function_ref<Value()> emit) {
    b.setInsertionPointToStart(&block);
    Value value = emit();
    if (value)
      scf::YieldOp::create(b, loc, value);
  };
  fill(*choice.thenBlock(), emitThen);
  if (emitElse)
    fill(*choice.elseBlock(), emitElse);
  return type ? choice.getResult(0) : Value();
}

FailureOr<int64_t> flash::getNumThreads(Operation *op) {
  auto kernel = op->getParentOfType<gpu::GPUFuncOp>();
  std::optional<ArrayRef<int32_t>> block = kernel.getKnownBlockSize();
  if (!block)
    return op->emitOpError("needs a kernel of known block size");
  return block->front();
}

//===----------------------------------------------------------------------===//
// GlobalMemory
//===----------------------------------------------------------------------===//

SmallVector<Value> flash::getIndices(ArrayRef<ValueRange> indices) {
  return llvm::map_to_vector(
      indices, [](ValueRange values) -> Value { return values.front(); });
}

GlobalMemory::GlobalMemory(MemRefType type, ValueRange values)
    : type(type), pointer(values.front()) {
  dynamicSizes = values.drop_front().take_front(type.getNumDynamicDims());
  dynamicStrides = values.drop_front(1 + dynamicSizes.size());
}

Value GlobalMemory::getSize(ThreadBuilder &t, int64_t dim) {
  if (!type.isDynamicDim(dim))
    return t.constant(type.getDimSize(dim));
  return dynamicSizes[type.getDynamicDimIndex(dim)];
}

Value GlobalMemory::getByteStride(ThreadBuilder &t, int64_t dim) {
  auto [strides, offset] = type.getStridesAndOffset();
  int64_t bytes = type.getElementTypeBitWidth() / 8;
  auto i64 = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(t.b, t.loc, t.b.getI64Type(), value);
  };
  if (!ShapedType::isDynamic(strides[dim]))
    return i64(strides[dim] * bytes);
  int64_t before =
      llvm::count(ArrayRef(strides).take_front(dim), ShapedType::kDynamic);
  return arith::MulIOp::create(t.b, t.loc, dynamicStrides[before], i64(bytes));
}

Value GlobalMemory::getAddress(ThreadBuilder &t, ValueRange indices) {
  Value offset;
  for (auto [dim, index] : llvm::enumerate(indices)) {
    Value wide =
        arith::IndexCastOp::create(t.b, t.loc, t.b.getI64Type(), index);
    Value part = arith::MulIOp::create(t.b, t.loc, wide, getByteStride(t, dim));
    offset = offset ? t.add(offset, part) : part;
  }
  if (!offset)
    return pointer;
  return LLVM::GEPOp::create(t.b, t.loc, pointer.getType(), t.b.getI8Type(),
                             pointer, ArrayRef<LLVM::GEPArg>{offset});
}

Value GlobalMemory::advance(ThreadBuilder &t, Value address, int64_t elements) {
  if (type.isLastDimUnitStride())
    return t.advance(address, elements * type.getElementTypeBitWidth() / 8);
  Value distance =
      arith::ConstantIntOp::create(t.b, t.loc, t.b.getI64Type(), elements);
  distance = arith::MulIOp::create(t.b, t.loc, distance,
                                   getByteStride(t, type.getRank() - 1));
  return LLVM::GEPOp::create(t.b, t.loc, address.getType(), t.b.getI8Type(),
                             address, ArrayRef<LLVM::GEPArg>{distance});
}
