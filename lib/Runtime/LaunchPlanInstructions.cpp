//===- LaunchPlanInstructions.cpp - The arithmetic of launch plans --------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LaunchPlanSteps.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace flash::runtime;
using llvm::ArrayRef;
using llvm::createStringError;
using llvm::Error;
using llvm::formatv;

llvm::StringRef flash::runtime::getName(Opcode opcode) {
  static constexpr llvm::StringLiteral names[] = {
      "constant", "size", "stride", "resultstride", "add",      "sub",
      "mul",      "divs", "divu",   "ceildivs",     "ceildivu", "floordivs",
      "rems",     "remu", "mins",   "minu",         "maxs",     "maxu",
      "and",      "or",   "xor",    "eq",           "ne",       "lts",
      "ltu",      "les",  "leu",    "select",       "toi32",    "assert"};
  return names[static_cast<int>(opcode)];
}

unsigned flash::runtime::getNumOperands(Opcode opcode) {
  switch (opcode) {
  case Opcode::Constant:
  case Opcode::Size:
  case Opcode::Stride:
    return 0;
  case Opcode::ResultStride:
  case Opcode::ToI32:
  case Opcode::Assert:
    return 1;
  case Opcode::Select:
    return 3;
  default:
    return 2;
  }
}

static bool divides(int64_t a, int64_t b) {
  return b != 0 && !(a == INT64_MIN && b == -1);
}

static inline bool computeInline(const Instruction &instruction, int64_t a,
                                 int64_t b, int64_t c, int64_t &result) {
  uint64_t ua = a, ub = b;
  switch (instruction.opcode) {
  case Opcode::Constant:
    result = instruction.value;
    return true;
  case Opcode::Add:
    return !llvm::AddOverflow(a, b, result);
  case Opcode::Sub:
    return !llvm::SubOverflow(a, b, result);
  case Opcode::Mul:
    return !llvm::MulOverflow(a, b, result);
  case Opcode::DivS:
    return divides(a, b) && (result = a / b, true);
  case Opcode::DivU:
    return b != 0 && (result = ua / ub, true);
  case Opcode::CeilDivS:
    return divides(a, b) && (result = llvm::divideCeilSigned(a, b), true);
  case Opcode::CeilDivU:
    return b != 0 && (result = ua / ub + (ua % ub != 0), true);
  case Opcode::FloorDivS:
    return divides(a, b) && (result = llvm::divideFloorSigned(a, b), true);
  case Opcode::RemS:
    return b != 0 && (result = b == -1 ? 0 : a % b, true);
  case Opcode::RemU:
    return b != 0 && (result = ua % ub, true);
  case Opcode::MinS:
    result = std::min(a, b);
    return true;
  case Opcode::MinU:
    result = std::min(ua, ub);
    return true;
  case Opcode::MaxS:
    result = std::max(a, b);
    return true;
  case Opcode::MaxU:
    result = std::max(ua, ub);
    return true;
  case Opcode::And:
    result = a & b;
    return true;
  case Opcode::Or:
    result = a | b;
    return true;
  case Opcode::Xor:
    result = a ^ b;
    return true;
  case Opcode::Equal:
    result = a == b;
    return true;
  case Opcode::NotEqual:
    result = a != b;
    return true;
  case Opcode::LessS:
    result = a < b;
    return true;
  case Opcode::LessU:
    result = ua < ub;
    return true;
  case Opcode::LessEqualS:
    result = a <= b;
    return true;
  case Opcode::LessEqualU:
    result = ua <= ub;
    return true;
  case Opcode::Select:
    result = a ? b : c;
    return true;
  case Opcode::ToI32:
    result = a;
    return llvm::isInt<32>(a);
  case Opcode::Size:
  case Opcode::Stride:
  case Opcode::ResultStride:
  case Opcode::Assert:
    break;
  }
  llvm_unreachable("not an instruction to compute");
}

bool flash::runtime::compute(const Instruction &instruction, int64_t a,
                             int64_t b, int64_t c, int64_t &result) {
  return computeInline(instruction, a, b, c, result);
}

static Error explainFailure(Opcode opcode, int64_t a, int64_t b) {
  if (opcode == Opcode::ToI32)
    return createStringError(formatv("{0} does not fit in an i32", a));
  if (opcode != Opcode::Add && opcode != Opcode::Sub && opcode != Opcode::Mul &&
      b == 0)
    return createStringError(formatv("{0} is divided by 0", a));
  return createStringError(formatv("{0} of {1} and {2} does not fit in 64 bits",
                                   getName(opcode), a, b));
}

Error flash::runtime::runInstructions(const LaunchPlan &plan,
                                      ArrayRef<TensorArgument> arguments,
                                      int64_t *r) {
  int64_t *result = r;
  for (const Instruction &instruction : plan.instructions) {
    switch (instruction.opcode) {
    case Opcode::Size:
      *result = arguments[instruction.a].sizes[instruction.b];
      break;
    case Opcode::Stride:
      *result = arguments[instruction.a].strides[instruction.b];
      break;
    case Opcode::Assert:
      *result = 0;
      if (!r[instruction.a])
        return createStringError(plan.messages[instruction.value]);
      break;
    case Opcode::Constant:
      *result = instruction.value;
      break;
    case Opcode::ResultStride:
      *result = r[instruction.a];
      break;
    default:
      // Operands that the opcode lacks are 0: register 0 is written by then.
      int64_t a = r[instruction.a], b = r[instruction.b];
      if (!computeInline(instruction, a, b, r[instruction.c], *result))
        return explainFailure(instruction.opcode, a, b);
    }
    ++result;
  }
  return Error::success();
}
