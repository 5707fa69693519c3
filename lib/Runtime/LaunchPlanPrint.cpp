//===- LaunchPlanPrint.cpp - Launch plans as text -------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Runtime/LaunchPlan.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace flash;
using namespace flash::runtime;

namespace {
struct Printer {
  const LaunchPlan &plan;
  llvm::raw_ostream &os;

  /// Constants are printed where they are used.
  void operand(Register value) {
    const Instruction &instruction = plan.instructions[value];
    if (instruction.opcode == Opcode::Constant)
      os << instruction.value;
    else
      os << "r" << value;
  }

  void operands(llvm::ArrayRef<Register> values) {
    os << "[";
    llvm::interleaveComma(values, os, [&](Register value) { operand(value); });
    os << "]";
  }

  void openSizes(llvm::ArrayRef<int64_t> values) {
    os << "[";
    llvm::interleaveComma(values, os, [&](int64_t value) {
      if (value == LaunchPlan::dynamic)
        os << "?";
      else
        os << value;
    });
    os << "]";
  }

  void string(llvm::StringRef text) {
    os << '"';
    os.write_escaped(text) << '"';
  }

  void print(Register index, const Instruction &instruction) {
    if (instruction.opcode == Opcode::Constant)
      return;
    os << "  ";
    if (instruction.opcode != Opcode::Assert)
      os << "r" << index << " = ";
    os << getName(instruction.opcode) << " ";
    if (instruction.opcode == Opcode::Size ||
        instruction.opcode == Opcode::Stride) {
      os << instruction.b << " of argument " << instruction.a;
    } else if (instruction.opcode == Opcode::ResultStride) {
      os << instruction.c << " of result " << instruction.b << " or ";
      operand(instruction.a);
    } else {
      Register all[] = {instruction.a, instruction.b, instruction.c};
      llvm::ArrayRef used(all, getNumOperands(instruction.opcode));
      llvm::interleaveComma(used, os, [&](Register value) { operand(value); });
    }
    if (instruction.opcode == Opcode::Assert) {
      os << ", ";
      string(plan.messages[instruction.value]);
    }
    os << "\n";
  }

  void print(const LaunchPlan::Field &field) {
    static constexpr llvm::StringLiteral types[] = {"ptr", "i32", "i64",
                                                    "f32", "f64", "tensormap"};
    os << "    " << field.byteOffset << ": "
       << types[static_cast<int>(field.abi.type)] << " ";
    bool isMap = field.abi.type == AbiType::TensorMap;
    if (isMap || field.abi.type == AbiType::Pointer)
      os << (field.isArgument ? "argument " : "buffer ") << field.root << " + ";
    operand(field.value);
    if (isMap)
      print(plan.tensorMaps[field.tensorMap]);
    os << "\n";
  }

  void print(const LaunchPlan::TensorMapRecipe &recipe) {
    os << " " << getName(recipe.element) << " sizes ";
    operands(recipe.sizes);
    os << " strides ";
    operands(recipe.strides);
    os << " box ";
    openSizes(recipe.box);
    os << " swizzle " << recipe.swizzleBytes << " l2promo "
       << recipe.l2PromotionBytes;
  }

  void print(const LaunchPlan::Launch &launch) {
    os << "  launch @" << launch.module << "::@" << launch.kernel << " grid ";
    operands(launch.grid);
    os << " block ";
    operands(launch.block);
    os << " shared ";
    operand(launch.sharedBytes);
    os << " parameters " << launch.parameterBytes << "\n";
    for (const LaunchPlan::Field &field : launch.fields)
      print(field);
  }

  void print() {
    os << "plan @" << plan.name << "\n";
    for (auto [i, argument] : llvm::enumerate(plan.arguments)) {
      os << "  argument " << i << " " << argument.elementType << " sizes ";
      openSizes(argument.sizes);
      os << " strides ";
      openSizes(argument.strides);
      os << (argument.isDense ? " dense" : "") << " align "
         << argument.alignment << "\n";
    }
    for (auto [i, instruction] : llvm::enumerate(plan.instructions))
      print(i, instruction);
    for (auto [i, buffer] : llvm::enumerate(plan.buffers)) {
      os << "  buffer " << i << " " << buffer.elementType << " sizes ";
      operands(buffer.sizes);
      os << "\n";
    }
    for (auto [i, result] : llvm::enumerate(plan.results)) {
      os << "  result " << i << " buffer " << result.buffer << " sizes ";
      operands(result.sizes);
      os << " strides ";
      operands(result.strides);
      os << " open ";
      openSizes(result.openStrides);
      os << (result.isDense ? " dense" : "") << " align " << result.alignment
         << "\n";
    }
    for (const LaunchPlan::Launch &launch : plan.launches)
      print(launch);
  }
};
} // namespace

void LaunchPlan::print(llvm::raw_ostream &os) const {
  Printer{*this, os}.print();
}
