//===- DeviceCondition.cpp - What kernels decide for the host -------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DeviceCondition.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace flash::tile;

std::optional<DeviceCondition> DeviceCondition::of(Value condition) {
  auto compare = condition.getDefiningOp<arith::CmpIOp>();
  auto read = compare ? compare.getLhs().getDefiningOp<tensor::ExtractOp>()
                      : tensor::ExtractOp();
  auto tensor =
      read ? read.getTensor().getDefiningOp<bufferization::ToTensorOp>()
           : bufferization::ToTensorOp();
  bool isConstant =
      compare && matchPattern(compare.getRhs(), m_Constant()) &&
      llvm::all_of(read ? read.getIndices() : ValueRange(), [](Value index) {
        return matchPattern(index, m_Constant());
      });
  if (!tensor || !isConstant)
    return std::nullopt;
  return DeviceCondition{compare, read, tensor.getBuffer()};
}

Value DeviceCondition::emit(OpBuilder &b, Location loc, Value memory) {
  IRMapping mapping;
  SmallVector<Value> indices;
  for (Value index : read.getIndices())
    indices.push_back(b.clone(*index.getDefiningOp())->getResult(0));
  mapping.map(read.getResult(),
              memref::LoadOp::create(b, loc, memory, indices).getResult());
  b.clone(*compare.getRhs().getDefiningOp(), mapping);
  return b.clone(*compare, mapping)->getResult(0);
}
