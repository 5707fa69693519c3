//===- HostProgramPrint.cpp - Host programs as text -----------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Runtime/HostProgram.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace flash;
using namespace flash::runtime;

static void print(llvm::ArrayRef<int64_t> values, llvm::raw_ostream &os) {
  os << "[";
  llvm::interleaveComma(values, os, [&](int64_t value) {
    if (value == HostProgram::dynamic)
      os << "?";
    else
      os << value;
  });
  os << "]";
}

template <typename Tensor>
static void printTensor(llvm::StringRef kind, unsigned index,
                        const Tensor &tensor, llvm::raw_ostream &os) {
  os << "  " << kind << " " << index << " " << tensor.elementType << " sizes ";
  print(tensor.sizes, os);
  os << " strides ";
  print(tensor.strides, os);
  os << (tensor.isDense ? " dense" : "") << " align " << tensor.alignment
     << "\n";
}

static void print(const HostProgram::Launch &launch,
                  const HostProgram::Field &field, llvm::raw_ostream &os) {
  static constexpr llvm::StringLiteral types[] = {"ptr", "i32", "i64",
                                                  "f32", "f64", "tensormap"};
  os << "    " << field.byteOffset << ": "
     << types[static_cast<int>(field.abi.type)];
  if (field.abi.type == AbiType::TensorMap) {
    const HostProgram::TensorMapRecipe &map =
        launch.tensorMaps[field.tensorMap];
    os << " " << getName(map.element) << " box ";
    print(map.box, os);
    os << " swizzle " << map.swizzleBytes << " l2promo "
       << map.l2PromotionBytes;
  }
  os << "\n";
}

void HostProgram::print(llvm::raw_ostream &os) const {
  os << "program @" << name << "\n";
  for (auto [i, argument] : llvm::enumerate(arguments))
    printTensor("argument", i, argument, os);
  for (auto [i, result] : llvm::enumerate(results))
    printTensor("result", i, result, os);
  for (auto [i, launch] : llvm::enumerate(launches)) {
    os << "  launch " << i << " @" << launch.module << "::@" << launch.kernel
       << " parameters " << launch.parameterBytes
       << (launch.isDependent ? " dependent" : "") << "\n";
    for (const Field &field : launch.fields)
      ::print(launch, field, os);
  }
}
