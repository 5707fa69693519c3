//===- LaunchPlanChecks.cpp - Preparing a call, as C ----------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LaunchPlanCode.h"
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
    bool isOpen = stride == LaunchPlan::dynamic;
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
  const LaunchPlan::Argument &argument = plan.arguments[index];
  size_t rank = argument.sizes.size();
  std::string tensor = formatv("arguments[{0}]->", index);
  std::string who = formatv("argument {0}", index);
  auto fail = [&](const Twine &what) {
    returnFailure("    ", who + ": " + what);
  };
  line("  if (" + tensor + "rank != " + Twine(rank) + ")");
  fail("the rank is not " + Twine(rank));
  for (auto [d, size] : llvm::enumerate(argument.sizes)) {
    bool isOpen = size == LaunchPlan::dynamic;
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

/// Of the rank the caller has looked at before instructions read strides.
void CheckPrinter::printResultChecks(unsigned index) {
  const LaunchPlan::Result &result = plan.results[index];
  std::string tensor = formatv("results[{0}]->", index);
  std::string who = formatv("result {0}", index);
  for (auto [d, size] : llvm::enumerate(result.sizes)) {
    line(formatv("  if (results && {0}sizes[{1}] != {2})", tensor, d,
                 operand(size)));
    returnFailure("    ", formatv("{0}: the size of dimension {1} is not that "
                                  "of {2}_shapes",
                                  who, d, name));
  }
  line(formatv("  if (results && !$_empty(results[{0}])) {{", index));
  llvm::SmallVector<int64_t, 4> strides(result.sizes.size(),
                                        LaunchPlan::dynamic);
  if (!result.openStrides.empty())
    strides = result.openStrides;
  printStrideChecks(tensor, who, strides, result.isDense,
                    plan.buffers[result.buffer].elementBytes);
  line(formatv("    if ($_overlaps(results[{0}]))", index));
  returnFailure("      ", who + ": elements may share an address");
  line("  }");
}

void CheckPrinter::printBuffers() {
  for (auto [i, buffer] : llvm::enumerate(plan.buffers)) {
    line("  {");
    line("    const int64_t sizes[] = {" +
         (buffer.sizes.empty() ? "0" : operands(buffer.sizes)) + "};");
    line(formatv("    if (!$_bytes(sizes, {0}, {1}, &bytes[{2}]))",
                 buffer.sizes.size(), buffer.elementBytes, i));
    returnFailure("      ", formatv("buffer {0}: a size is negative, or the "
                                    "number of bytes does not fit in 64 bits",
                                    i));
    line("  }");
  }
}

std::string CheckPrinter::getHasBlocks(const LaunchPlan::Launch &launch) {
  std::string text;
  for (Register size : launch.grid) {
    std::optional<int64_t> known = getConstant(size);
    if (known && *known > 0)
      continue;
    text += (text.empty() ? "" : " && ") + operand(size) + " > 0";
  }
  return text.empty() ? "1" : text;
}

void CheckPrinter::printLaunchChecks(const LaunchPlan::Launch &launch) {
  std::string prefix = "@" + launch.kernel;
  auto require = [&](StringRef indent, Register value, int64_t low,
                     int64_t high, const Twine &what) {
    std::optional<int64_t> known = getConstant(value);
    if (known && low <= *known && *known <= high)
      return;
    line(indent + "if (" + operand(value) + " < " + literal(low) + " || " +
         operand(value) + " > " + literal(high) + ")");
    returnFailure((indent + "  ").str(), prefix + what);
  };
  std::optional<int64_t> threads = 1;
  for (unsigned d = 0; d != 3; ++d) {
    require("  ", launch.grid[d], 0, maxGrid[d],
            formatv(": the grid's {0} is not in the range from 0 to {1}",
                    "xyz"[d], maxGrid[d])
                .str());
    require("  ", launch.block[d], 1, maxBlock[d],
            formatv(": the block's {0} is not in the range from 1 to {1}",
                    "xyz"[d], maxBlock[d])
                .str());
    std::optional<int64_t> size = getConstant(launch.block[d]);
    if (threads)
      threads = size && *size <= maxThreads ? std::optional(*threads * *size)
                                            : std::nullopt;
  }
  if (!threads || *threads > maxThreads) {
    line("  if (" + operand(launch.block[0]) + " * " +
         operand(launch.block[1]) + " * " + operand(launch.block[2]) + " > " +
         Twine(maxThreads) + ")");
    returnFailure("    ", prefix + ": a block has more than " +
                              Twine(maxThreads) + " threads");
  }
  require("  ", launch.sharedBytes, 0, maxSharedBytes,
          ": the dynamic shared memory is negative or too large");

  line("  if (" + getHasBlocks(launch) + ") {");
  for (const LaunchPlan::Field &field : launch.fields) {
    std::string where = formatv(", operand {0}: ", field.operand);
    if (field.abi.role == AbiRole::Size)
      require("    ", field.value, 0, INT32_MAX,
              formatv("{0}the size of dimension {1} is not in the range from 0 "
                      "to {2}",
                      where, field.abi.dimension, INT32_MAX)
                  .str());
    else if (field.abi.type == AbiType::I32)
      require("    ", field.value, INT32_MIN, INT32_MAX,
              where + "the value does not fit in the kernel's 32 bits");
    int64_t bytes;
    std::optional<int64_t> offset = getConstant(field.value);
    bool isMap = field.abi.type == AbiType::TensorMap;
    if (isMap)
      printTensorMapChecks(launch, field);
    if ((!isMap && field.abi.type != AbiType::Pointer) ||
        (offset && !llvm::MulOverflow(*offset, field.elementBytes, bytes)))
      continue;
    line(formatv("    if (!$_mul({0}, {1}, &unused))", operand(field.value),
                 field.elementBytes));
    returnFailure("      ",
                  prefix + where + "the offset does not fit in 64 bits");
  }
  line("  }");
}

void CheckPrinter::printPrepare() {
  line("\n/* Everything that follows from sizes and strides: r has the values "
       "of the");
  line(" * plan, bytes the sizes of its buffers. Without results, they are "
       "dense. */");
  line("static inline CUresult $_prepare(const $_tensor *const *arguments,");
  line("                                 const $_tensor *const *results, "
       "int64_t "
       "*r,");
  line("                                 int64_t *bytes, const char **message) "
       "{");
  line("  int64_t unused = 0;");
  line("  (void)arguments, (void)results, (void)r, (void)bytes, (void)unused;");
  line("  if (message)");
  line("    *message = NULL;");
  for (unsigned i = 0; i != plan.arguments.size(); ++i)
    printArgumentChecks(i);
  for (auto [i, result] : llvm::enumerate(plan.results)) {
    size_t rank = result.sizes.size();
    line(formatv("  if (results && results[{0}]->rank != {1})", i, rank));
    returnFailure("    ", formatv("result {0}: the rank is not {1}", i, rank));
  }
  printInstructions();
  for (unsigned i = 0; i != plan.results.size(); ++i)
    printResultChecks(i);
  printBuffers();
  for (const LaunchPlan::Launch &launch : plan.launches)
    printLaunchChecks(launch);
  line("  return CUDA_SUCCESS;\n}");
}
