//===- CHeaderChecks.cpp - Checks of a call, as C -------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CHeaderText.h"
#include "flash/Runtime/LaunchLimits.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace flash;
using namespace flash::runtime;
using llvm::formatv;
using llvm::StringRef;
using llvm::Twine;

void CheckPrinter::printStrideChecks(StringRef tensor, StringRef who,
                                     llvm::ArrayRef<int64_t> strides,
                                     bool isDense, int64_t elementBytes) {
  StringRef whole = tensor.drop_back(2);
  auto fail = [&](const Twine &what) {
    returnFailure("      ", who + ": " + what);
  };
  if (isDense && !strides.empty())
    line("    int64_t dense = 1;");
  for (size_t d = strides.size(); d-- > 0;) {
    int64_t stride = strides[d];
    bool isOpen = stride == HostProgram::dynamic;
    if (!isOpen || isDense) {
      line(formatv("    if ({0}sizes[{1}] > 1 && {0}strides[{1}] != {2})",
                   tensor, d, isOpen ? "dense" : literal(stride)));
      fail(formatv("the stride of dimension {0} is not {1}{2}", d,
                   isOpen ? "that of a dense tensor" : std::to_string(stride),
                   d + 1 == strides.size() && stride == 1
                       ? ": the innermost dimension must be contiguous"
                       : "")
               .str());
    }
    if (isDense) {
      line(formatv("    if (!$_mul(dense, {0}sizes[{1}], &dense))", tensor, d));
      fail("the number of elements does not fit in 64 bits");
    }
  }
  line(formatv("    if (!$_span({0}, {1}))", whole, elementBytes));
  fail("the bytes that its strides span do not fit in 64 bits");
}

void CheckPrinter::printArgumentChecks(unsigned index) {
  const HostProgram::Argument &argument = program.arguments[index];
  size_t rank = argument.sizes.size();
  std::string tensor = formatv("arguments[{0}]->", index);
  std::string who = formatv("argument {0}", index);
  auto fail = [&](const Twine &what) {
    returnFailure("    ", who + ": " + what);
  };
  line("  if (" + tensor + "rank != " + Twine(rank) + ")");
  fail("the rank is not " + Twine(rank));
  for (auto [d, size] : llvm::enumerate(argument.sizes)) {
    bool isOpen = size == HostProgram::dynamic;
    line(formatv("  if ({0}sizes[{1}] {2} {3})", tensor, d,
                 isOpen ? "<" : "!=", literal(isOpen ? 0 : size)));
    fail("the size of dimension " + Twine(d) + " is " +
         (isOpen ? "negative" : "not " + Twine(size)));
  }
  line("  if (!$_empty(arguments[" + Twine(index) + "])) {");
  printStrideChecks(tensor, who, argument.strides, argument.isDense,
                    argument.elementBytes);
  line("  }");
}

void CheckPrinter::printResultChecks(unsigned index) {
  const HostProgram::Result &result = program.results[index];
  std::string tensor = formatv("results[{0}]->", index);
  std::string who = formatv("result {0}", index);
  // Behind the bytes.
  unsigned output = program.getResultOutput(index) + 1;
  for (size_t d = 0; d != result.sizes.size(); ++d) {
    line(formatv("  if ({0}sizes[{1}] != call->outputs[{2}])", tensor, d,
                 output + d));
    returnFailure("    ", formatv("{0}: the size of dimension {1} is not that "
                                  "of {2}_shapes",
                                  who, d, name));
  }
  line(formatv("  if ($_bytes(results[{0}], {1}) != call->outputs[{2}])", index,
               result.elementBytes, output - 1));
  returnFailure("    ", who + " is a part of a tensor, or has gaps; only whole "
                              "tensors can be returned");
  line(formatv("  if (!$_empty(results[{0}])) {{", index));
  printStrideChecks(tensor, who, result.strides, result.isDense,
                    result.elementBytes);
  line(formatv("    if ($_overlaps(results[{0}]))", index));
  returnFailure("      ", who + ": elements may share an address");
  line("  }");
  line(formatv("  if ({0}address % {1} != 0)", tensor, result.alignment));
  returnFailure("    ", formatv("{0}: the address is not a multiple of {1}",
                                who, result.alignment));
}

void CheckPrinter::printAccept() {
  line("\n/* Whether the program can write to the results, whose sizes it has "
       "said. */");
  line("static inline CUresult $_accept(const $_call *call,");
  line("                                const $_tensor *const *arguments,");
  line("                                const $_tensor *const *results,");
  line("                                const char **message) {");
  line("  (void)call, (void)arguments, (void)results, (void)message;");
  for (auto [i, argument] : llvm::enumerate(program.arguments)) {
    if (argument.alignment <= 1)
      continue;
    line(formatv("  if (arguments[{0}]->address % {1} != 0)", i,
                 argument.alignment));
    returnFailure("    ",
                  formatv("argument {0}: the address is not a multiple of {1}",
                          i, argument.alignment));
  }
  for (unsigned i = 0; i != program.results.size(); ++i)
    printResultChecks(i);
  line("  return CUDA_SUCCESS;\n}");
}

void CheckPrinter::printLaunchChecks(const HostProgram::Launch &launch) {
  std::string prefix = "@" + launch.kernel;
  auto require = [&](unsigned value, int64_t low, int64_t high,
                     const Twine &what) {
    line("  if (v[" + Twine(value) + "] < " + literal(low) + " || v[" +
         Twine(value) + "] > " + literal(high) + ")");
    returnFailure("    ", prefix + what);
  };
  for (unsigned d = 0; d != 3; ++d) {
    require(d, 0, maxGrid[d],
            formatv(": the grid's {0} is not in the range from 0 to {1}",
                    "xyz"[d], maxGrid[d])
                .str());
    require(3 + d, 1, maxBlock[d],
            formatv(": the block's {0} is not in the range from 1 to {1}",
                    "xyz"[d], maxBlock[d])
                .str());
  }
  line("  if (v[3] * v[4] * v[5] > " + Twine(maxThreads) + ")");
  returnFailure("    ", prefix + ": a block has more than " +
                            Twine(maxThreads) + " threads");
  require(6, 0, maxSharedBytes,
          ": the dynamic shared memory is negative or too large");
  line("  if (v[0] == 0 || v[1] == 0 || v[2] == 0)");
  line("    return CUDA_SUCCESS;");

  unsigned first = 7;
  for (const HostProgram::Field &field : launch.fields) {
    std::string where = ", " + field.owner + ": ";
    bool isMap = field.abi.type == AbiType::TensorMap;
    if (field.abi.role == AbiRole::Size)
      require(first, 0, INT32_MAX,
              formatv("{0}the size of dimension {1} is not in the range from 0 "
                      "to {2}",
                      where, field.abi.dimension, INT32_MAX)
                  .str());
    else if (field.abi.type == AbiType::I32)
      require(first, INT32_MIN, INT32_MAX,
              where + "the value does not fit in the kernel's 32 bits");
    if (isMap || field.abi.type == AbiType::Pointer) {
      line(formatv("  if (!$_mul(v[{0}], {1}, &unused))", first + 1,
                   field.elementBytes));
      returnFailure("    ",
                    prefix + where + "the offset does not fit in 64 bits");
    }
    if (isMap)
      printTensorMapChecks(launch, field, first);
    first += field.numValues;
  }
}

void CheckPrinter::printBegin() {
  line(
      "\n/* Checks what is known before the program runs, and gives it what it "
      "reads. Without");
  line(" * results, they are dense. */");
  line("static inline CUresult $_begin($_call *call, const $_tensor *const "
       "*arguments,");
  line("                               const $_tensor *const *results,");
  line("                               const char **message) {");
  line("  (void)arguments;");
  line("  memset(call, 0, sizeof *call);");
  line("  call->message = message;");
  line("  if (message)");
  line("    *message = NULL;");
  for (unsigned i = 0; i != program.arguments.size(); ++i)
    printArgumentChecks(i);
  for (unsigned i = 0; i != program.arguments.size(); ++i)
    line(formatv("  $_pack(call->inputs + {0}, arguments[{1}]);",
                 program.getArgumentInput(i), i));
  line("  if (!results)");
  line("    return CUDA_SUCCESS;");
  line("  call->inputs[0] = 1;");
  for (auto [i, result] : llvm::enumerate(program.results)) {
    size_t rank = result.sizes.size();
    line(formatv("  if (results[{0}]->rank != {1})", i, rank));
    returnFailure("    ", formatv("result {0}: the rank is not {1}", i, rank));
    line(formatv("  $_pack(call->inputs + {0}, results[{1}]);",
                 program.getResultInput(i), i));
  }
  line("  return CUDA_SUCCESS;\n}");
}
