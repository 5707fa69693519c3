//===- ElementType.cpp - The element types that are described -------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Support/ElementType.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace flash;

namespace {
/// Arithmetic on i32 and f32, or on vectors of them.
struct Bits {
  OpBuilder &b;
  Location loc;
  Type i32, f32;

  Bits(OpBuilder &b, Location loc, Value bits)
      : b(b), loc(loc), i32(bits.getType()), f32(b.getF32Type()) {
    if (auto vector = dyn_cast<VectorType>(i32))
      f32 = vector.clone(f32);
  }
  Value splat(Type type, TypedAttr value) {
    if (auto vector = dyn_cast<VectorType>(type))
      return arith::ConstantOp::create(
          b, loc, DenseElementsAttr::get(vector, Attribute(value)));
    return arith::ConstantOp::create(b, loc, value);
  }
  Value constant(int64_t value) {
    return splat(i32, b.getI32IntegerAttr(static_cast<int32_t>(value)));
  }
  Value keep(Value x, int64_t mask) {
    return arith::AndIOp::create(b, loc, x, constant(mask));
  }
  Value shiftLeft(Value x, int64_t digits) {
    return arith::ShLIOp::create(b, loc, x, constant(digits));
  }
  Value compare(arith::CmpIPredicate predicate, Value x, int64_t y) {
    return arith::CmpIOp::create(b, loc, predicate, x, constant(y));
  }
  Value select(Value condition, Value x, Value y) {
    return arith::SelectOp::create(b, loc, condition, x, y);
  }
};
} // namespace

/// Four bits of exponent with a bias of 7 and three of mantissa. All ones are
/// NaN, and there are no infinities (Micikevicius et al., FP8 Formats for Deep
/// Learning, 2022).
static Value emitE4M3ToF32(OpBuilder &b, Location loc, Value bits) {
  Bits e(b, loc, bits);
  Value magnitude = e.keep(bits, 0x7f),
        sign = e.shiftLeft(e.keep(bits, 0x80), 24);
  // The exponent's bias is 127 in f32. Below it are multiples of 2^-9.
  constexpr int64_t leastNormal = 8, biases = int64_t(127 - 7) << 23;
  Value normal = arith::AddIOp::create(b, loc, e.shiftLeft(magnitude, 20),
                                       e.constant(biases));
  Value small = arith::MulFOp::create(
      b, loc, arith::SIToFPOp::create(b, loc, e.f32, magnitude),
      e.splat(e.f32, b.getF32FloatAttr(0x1p-9)));
  small = arith::BitcastOp::create(b, loc, e.i32, small);
  Value result = e.select(
      e.compare(arith::CmpIPredicate::slt, magnitude, leastNormal), small,
      e.select(e.compare(arith::CmpIPredicate::eq, magnitude, 0x7f),
               e.constant(0x7fc00000), normal));
  result = arith::OrIOp::create(b, loc, result, sign);
  return arith::BitcastOp::create(b, loc, e.f32, result);
}

/// The nearest number, ties to even. Numbers behind the largest become it, as
/// `cvt.satfinite` has it.
static Value emitF32ToE4M3(OpBuilder &b, Location loc, Value value) {
  Type i32 = b.getI32Type();
  if (auto vector = dyn_cast<VectorType>(value.getType()))
    i32 = vector.clone(i32);
  Value bits = arith::BitcastOp::create(b, loc, i32, value);
  Bits e(b, loc, bits);
  auto shiftRight = [&](Value x, int64_t digits) -> Value {
    return arith::ShRUIOp::create(b, loc, x, e.constant(digits));
  };
  auto add = [&](Value x, Value y) -> Value {
    return arith::AddIOp::create(b, loc, x, y);
  };
  Value sign = shiftRight(e.keep(bits, 0x80000000), 24),
        magnitude = e.keep(bits, 0x7fffffff);
  // Three digits of the mantissa stay.
  constexpr int64_t lost = 20, biases = int64_t(127 - 7) << 3;
  Value isOdd = e.keep(shiftRight(magnitude, lost), 1);
  Value rounded =
      add(add(magnitude, isOdd), e.constant((int64_t(1) << (lost - 1)) - 1));
  Value normal = add(shiftRight(rounded, lost), e.constant(-biases));
  // Below the least normal number the last digit is 2^-9, which is that of 2^14
  // in f32.
  Value large = e.splat(e.f32, b.getF32FloatAttr(0x1p14));
  Value small = arith::AddFOp::create(
      b, loc, arith::BitcastOp::create(b, loc, e.f32, magnitude), large);
  small = arith::SubIOp::create(b, loc,
                                arith::BitcastOp::create(b, loc, e.i32, small),
                                arith::BitcastOp::create(b, loc, e.i32, large));
  constexpr int64_t leastNormal = 0x3c800000, behindLargest = 0x43e00000,
                    infinity = 0x7f800000;
  Value result = e.select(
      e.compare(arith::CmpIPredicate::slt, magnitude, leastNormal), small,
      e.select(e.compare(arith::CmpIPredicate::sge, magnitude, behindLargest),
               e.constant(0x7e), normal));
  result = e.select(e.compare(arith::CmpIPredicate::sgt, magnitude, infinity),
                    e.constant(0x7f), result);
  return arith::OrIOp::create(b, loc, result, sign);
}

static constexpr ElementType elementTypes[] = {
    {"f16", 16, 16, nullptr, nullptr},
    {"bf16", 16, 16, nullptr, nullptr},
    // Products are of tf32.
    {"f32", 32, 8, nullptr, nullptr},
    {"f8E4M3FN", 8, 32, emitE4M3ToF32, emitF32ToE4M3},
    {"i8", 8, 0, nullptr, nullptr},
};

const ElementType *ElementType::find(Type type) {
  std::string name;
  llvm::raw_string_ostream(name) << getElementTypeOrSelf(type);
  const ElementType *found = llvm::find_if(
      elementTypes, [&](const ElementType &each) { return each.name == name; });
  return found == std::end(elementTypes) ? nullptr : found;
}

bool flash::isQuantized(Type type) {
  const ElementType *element = ElementType::find(type);
  return element && element->bits == 8;
}

Value flash::emitWiden(OpBuilder &b, Location loc, Value element) {
  Type type = element.getType(), f32 = b.getF32Type();
  if (auto shaped = dyn_cast<ShapedType>(type))
    f32 = shaped.clone(f32);
  if (isa<IntegerType>(getElementTypeOrSelf(type)))
    return arith::SIToFPOp::create(b, loc, f32, element);
  return arith::ExtFOp::create(b, loc, f32, element);
}
