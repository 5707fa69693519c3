//===- LaunchPlanBuilder.h - Writing launch plans ---------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUNTIME_LAUNCHPLANBUILDER_H
#define FLASH_RUNTIME_LAUNCHPLANBUILDER_H

#include "flash/Runtime/LaunchPlan.h"
#include <map>
#include <optional>
#include <tuple>

namespace flash::runtime {

/// Appends instructions to a plan. Equal ones are written once, and those with
/// known results not at all. Arguments, buffers, results and launches are the
/// caller's to append.
class LaunchPlanBuilder {
public:
  LaunchPlan plan;

  Register constant(int64_t value);
  Register size(unsigned argument, unsigned dimension);
  Register stride(unsigned argument, unsigned dimension);
  /// `dense` where the caller gives no other.
  Register resultStride(unsigned result, unsigned dimension, Register dense);
  /// For every other opcode with a result.
  Register create(Opcode opcode, Register a, Register b = 0, Register c = 0);
  /// Adds nothing if the condition is known to hold.
  void assertTrue(Register condition, llvm::StringRef message);

  std::optional<int64_t> getConstant(Register value) const;

  /// Appends a field, at the next aligned byte of the parameter buffer.
  static void addField(LaunchPlan::Launch &launch, LaunchPlan::Field field);

  /// The plan, without instructions that nothing needs.
  LaunchPlan finish();

private:
  Register append(const Instruction &instruction);
  std::optional<Register> simplify(Opcode opcode, Register a, Register b,
                                   Register c);

  std::map<std::tuple<Opcode, uint32_t, uint32_t, uint32_t, int64_t>, Register>
      known;
};

} // namespace flash::runtime

#endif // FLASH_RUNTIME_LAUNCHPLANBUILDER_H
