//===- LaunchPlanCode.h - Plan instructions as C ----------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_RUNTIME_LAUNCHPLANCODE_H
#define FLASH_LIB_RUNTIME_LAUNCHPLANCODE_H

#include "flash/Runtime/LaunchPlan.h"
#include "llvm/Support/raw_ostream.h"
#include <optional>

namespace flash::runtime {

/// What the functions of a C header are written with.
class CodePrinter {
public:
  CodePrinter(const LaunchPlan &plan, llvm::StringRef name,
              llvm::raw_ostream &os)
      : plan(plan), name(name), os(os) {}

protected:
  /// Writes a line in which each `$` stands for the name.
  void line(const llvm::Twine &text);
  /// Writes a literal of these characters.
  void string(llvm::StringRef text);
  void returnFailure(llvm::StringRef indent, const llvm::Twine &message);

  std::optional<int64_t> getConstant(Register value) const;
  static std::string literal(int64_t value);
  /// A register, or the literal of a constant.
  std::string operand(Register value) const;
  /// Several of them, with commas.
  std::string operands(llvm::ArrayRef<Register> values) const;
  /// What the kernel is passed, or its tensor map begins with; arguments are in
  /// `arguments`, the addresses of buffers in `buffers`.
  std::string getAddress(const LaunchPlan::Field &field) const;

  /// The functions that the others call.
  void printHelpers();
  void printInstructions();

  const LaunchPlan &plan;
  llvm::StringRef name;
  llvm::raw_ostream &os;

private:
  void printTensorHelpers();
  void printInstruction(Register index, const Instruction &instruction);
};

/// Writes what tensor maps need.
class TensorMapPrinter : public CodePrinter {
protected:
  using CodePrinter::CodePrinter;
  /// The functions that the others call, if there are maps.
  void printTensorMapHelpers();
  /// Checks of sizes and strides.
  void printTensorMapChecks(const LaunchPlan::Launch &launch,
                            const LaunchPlan::Field &field);
  /// Checks the address, of buffers that itself is aligned.
  void printAddressCheck(const LaunchPlan::Launch &launch,
                         const LaunchPlan::Field &field);
  /// Encodes the map that parameter p<index> of a launch points to.
  void printTensorMap(const LaunchPlan::Launch &launch, unsigned index);

private:
  std::optional<std::string>
  getHasElements(const LaunchPlan::TensorMapRecipe &recipe);
};

/// Writes NAME_prepare, which does what LaunchPlan::prepare does.
class CheckPrinter : public TensorMapPrinter {
protected:
  using TensorMapPrinter::TensorMapPrinter;
  void printPrepare();
  /// "r[4] > 0 && ...", of the grid's sizes that are not known to be positive.
  std::string getHasBlocks(const LaunchPlan::Launch &launch);

private:
  void printArgumentChecks(unsigned index);
  void printResultChecks(unsigned index);
  /// Of `tensor`, an expression that ends in ->, which `who` names.
  void printStrideChecks(llvm::StringRef tensor, llvm::StringRef who,
                         llvm::ArrayRef<int64_t> strides, bool isDense,
                         int64_t elementBytes);
  void printBuffers();
  void printLaunchChecks(const LaunchPlan::Launch &launch);
};

} // namespace flash::runtime

#endif // FLASH_LIB_RUNTIME_LAUNCHPLANCODE_H
