//===- CHeaderText.h - Parts of C headers -----------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_RUNTIME_CHEADERTEXT_H
#define FLASH_LIB_RUNTIME_CHEADERTEXT_H

#include "flash/Runtime/HostProgram.h"
#include "llvm/Support/raw_ostream.h"

namespace flash::runtime {

/// What the functions of a C header are written with.
class CodePrinter {
public:
  CodePrinter(const HostProgram &program, llvm::StringRef name,
              llvm::raw_ostream &os)
      : program(program), name(name), os(os) {}

protected:
  /// Writes a line in which each `$` stands for the name.
  void line(const llvm::Twine &text);
  /// Writes a literal of these characters.
  void string(llvm::StringRef text);
  void returnFailure(llvm::StringRef indent, const llvm::Twine &message);
  static std::string literal(int64_t value);

  /// What functions that the code of the program calls need, and they.
  void printHelpers();

  const HostProgram &program;
  llvm::StringRef name;
  llvm::raw_ostream &os;

private:
  void printTensorHelpers();
  void printMemoryHelpers();
};

/// Writes what tensor maps need. The values of a field are `v[first]` and the
/// ones behind it.
class TensorMapPrinter : public CodePrinter {
protected:
  using CodePrinter::CodePrinter;
  bool hasTensorMaps() const;
  /// The functions that the others call, if there are maps.
  void printTensorMapHelpers();
  /// Checks sizes, strides and, where it is known, the address.
  void printTensorMapChecks(const HostProgram::Launch &launch,
                            const HostProgram::Field &field, unsigned first);
  /// Encodes the map that parameter p<index> of a launch points to.
  void printTensorMap(const HostProgram::Launch &launch, unsigned index,
                      unsigned first);
  /// What a pointer is, or a tensor map begins with.
  static std::string getAddress(const HostProgram::Field &field,
                                unsigned first);
};

/// Writes the checks of a call.
class CheckPrinter : public TensorMapPrinter {
protected:
  using TensorMapPrinter::TensorMapPrinter;
  /// NAME_begin: of what is known before the program has run.
  void printBegin();
  /// NAME_accept: of the results that a call is given.
  void printAccept();
  /// Checks of the values of a launch.
  void printLaunchChecks(const HostProgram::Launch &launch);

private:
  void printArgumentChecks(unsigned index);
  void printResultChecks(unsigned index);
  /// Checks of `tensor`, an expression that ends in ->, which `who` names.
  void printStrideChecks(llvm::StringRef tensor, llvm::StringRef who,
                         llvm::ArrayRef<int64_t> strides, bool isDense,
                         int64_t elementBytes);
};

} // namespace flash::runtime

#endif // FLASH_LIB_RUNTIME_CHEADERTEXT_H
