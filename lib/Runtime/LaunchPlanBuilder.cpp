//===- LaunchPlanBuilder.cpp - Writing launch plans -----------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Runtime/LaunchPlanBuilder.h"

#include "llvm/Support/MathExtras.h"

using namespace flash;
using namespace flash::runtime;

Register LaunchPlanBuilder::append(const Instruction &instruction) {
  auto [entry, isNew] = known.try_emplace(
      std::make_tuple(instruction.opcode, instruction.a, instruction.b,
                      instruction.c, instruction.value),
      plan.instructions.size());
  if (isNew)
    plan.instructions.push_back(instruction);
  return entry->second;
}

Register LaunchPlanBuilder::constant(int64_t value) {
  return append({Opcode::Constant, 0, 0, 0, value});
}

Register LaunchPlanBuilder::size(unsigned argument, unsigned dimension) {
  int64_t size = plan.arguments[argument].sizes[dimension];
  if (size != LaunchPlan::dynamic)
    return constant(size);
  return append({Opcode::Size, argument, dimension});
}

Register LaunchPlanBuilder::stride(unsigned argument, unsigned dimension) {
  int64_t stride = plan.arguments[argument].strides[dimension];
  if (stride != LaunchPlan::dynamic)
    return constant(stride);
  return append({Opcode::Stride, argument, dimension});
}

Register LaunchPlanBuilder::resultStride(unsigned result, unsigned dimension,
                                         Register dense) {
  return append({Opcode::ResultStride, dense, result, dimension});
}

std::optional<int64_t> LaunchPlanBuilder::getConstant(Register value) const {
  const Instruction &instruction = plan.instructions[value];
  if (instruction.opcode != Opcode::Constant)
    return std::nullopt;
  return instruction.value;
}

/// What is known without the operands' values.
std::optional<Register> LaunchPlanBuilder::simplify(Opcode opcode, Register a,
                                                    Register b, Register c) {
  auto is = [&](Register operand, int64_t value) {
    return getConstant(operand) == value;
  };
  switch (opcode) {
  case Opcode::Add:
    if (is(a, 0))
      return b;
    [[fallthrough]];
  case Opcode::Sub:
    return is(b, 0) ? std::optional(a) : std::nullopt;
  case Opcode::Mul:
    if (is(a, 0) || is(b, 1))
      return a;
    if (is(b, 0) || is(a, 1))
      return b;
    return std::nullopt;
  case Opcode::Equal:
    return a == b ? std::optional(constant(1)) : std::nullopt;
  case Opcode::Select:
    if (std::optional<int64_t> condition = getConstant(a))
      return *condition ? b : c;
    return b == c ? std::optional(b) : std::nullopt;
  default:
    return std::nullopt;
  }
}

Register LaunchPlanBuilder::create(Opcode opcode, Register a, Register b,
                                   Register c) {
  if (std::optional<Register> simple = simplify(opcode, a, b, c))
    return *simple;
  Instruction instruction{opcode, a, b, c};
  unsigned count = getNumOperands(opcode);
  std::optional<int64_t> x = getConstant(a), y, z;
  y = count < 2 ? 0 : getConstant(b);
  z = count < 3 ? 0 : getConstant(c);
  int64_t result;
  // What fails is left to fail at the call.
  if (x && y && z && compute(instruction, *x, *y, *z, result))
    return constant(result);
  return append(instruction);
}

void LaunchPlanBuilder::assertTrue(Register condition,
                                   llvm::StringRef message) {
  std::optional<int64_t> value = getConstant(condition);
  if (value && *value)
    return;
  plan.instructions.push_back(
      {Opcode::Assert, condition, 0, 0, int64_t(plan.messages.size())});
  plan.messages.push_back(message.str());
}

void LaunchPlanBuilder::addField(LaunchPlan::Launch &launch,
                                 LaunchPlan::Field field) {
  AbiType type = field.abi.type;
  field.byteOffset = llvm::alignTo(launch.parameterBytes, getAlignment(type));
  launch.parameterBytes = field.byteOffset + getBytes(type);
  launch.fields.push_back(field);
}

/// Calls `visit` with every register that something other than an instruction
/// reads.
template <typename Visit> static void visitUses(LaunchPlan &plan, Visit visit) {
  for (LaunchPlan::Buffer &buffer : plan.buffers)
    for (Register &size : buffer.sizes)
      visit(size);
  for (LaunchPlan::Result &result : plan.results) {
    for (Register &size : result.sizes)
      visit(size);
    for (Register &stride : result.strides)
      visit(stride);
  }
  for (LaunchPlan::TensorMapRecipe &recipe : plan.tensorMaps) {
    for (Register &size : recipe.sizes)
      visit(size);
    for (Register &stride : recipe.strides)
      visit(stride);
  }
  for (LaunchPlan::Launch &launch : plan.launches) {
    for (unsigned d = 0; d != 3; ++d) {
      visit(launch.grid[d]);
      visit(launch.block[d]);
    }
    visit(launch.sharedBytes);
    for (LaunchPlan::Field &field : launch.fields)
      visit(field.value);
  }
}

LaunchPlan LaunchPlanBuilder::finish() {
  std::vector<Instruction> &instructions = plan.instructions;
  std::vector<bool> isLive(instructions.size());
  visitUses(plan, [&](Register used) { isLive[used] = true; });
  for (size_t i = instructions.size(); i-- > 0;) {
    const Instruction &instruction = instructions[i];
    if (instruction.opcode == Opcode::Assert)
      isLive[i] = true;
    if (!isLive[i])
      continue;
    Register operands[] = {instruction.a, instruction.b, instruction.c};
    for (unsigned o = 0; o != getNumOperands(instruction.opcode); ++o)
      isLive[operands[o]] = true;
  }

  std::vector<Register> renumbered(instructions.size());
  std::vector<Instruction> kept;
  for (auto [i, instruction] : llvm::enumerate(instructions)) {
    if (!isLive[i])
      continue;
    renumbered[i] = kept.size();
    uint32_t *operands[] = {&instruction.a, &instruction.b, &instruction.c};
    for (unsigned o = 0; o != getNumOperands(instruction.opcode); ++o)
      *operands[o] = renumbered[*operands[o]];
    kept.push_back(instruction);
  }
  instructions = std::move(kept);
  visitUses(plan, [&](Register &used) { used = renumbered[used]; });
  known.clear();
  return std::move(plan);
}
