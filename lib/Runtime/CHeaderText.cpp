//===- CHeaderText.cpp - Helpers of C headers -----------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CHeaderText.h"

#include "llvm/Support/FormatVariadic.h"

using namespace flash;
using namespace flash::runtime;
using llvm::formatv;
using llvm::StringRef;
using llvm::Twine;

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

void CodePrinter::line(const Twine &text) {
  std::string characters = text.str();
  for (char c : characters) {
    if (c == '$')
      os << name;
    else
      os << c;
  }
  os << "\n";
}

void CodePrinter::string(StringRef text) {
  os << '"';
  for (char c : text) {
    // Two question marks could start a trigraph.
    if (c == '?')
      os << "\\?";
    else
      os.write_escaped(StringRef(&c, 1));
  }
  os << '"';
}

void CodePrinter::returnFailure(StringRef indent, const Twine &message) {
  os << indent << "return " << name << "_fail(message, ";
  string(message.str());
  os << ",\n" << indent << "    CUDA_ERROR_INVALID_VALUE);\n";
}

std::string CodePrinter::literal(int64_t value) {
  if (value == INT64_MIN)
    return "INT64_MIN";
  if (value == INT32_MIN)
    return "INT32_MIN";
  if (value == INT32_MAX)
    return "INT32_MAX";
  std::string digits = formatv("INT64_C({0})", value);
  return value < 0 ? "(" + digits + ")" : digits;
}

//===----------------------------------------------------------------------===//
// Helpers
//===----------------------------------------------------------------------===//

void CodePrinter::printHelpers() {
  line("static inline CUresult $_fail(const char **message, const char *text,");
  line("                              CUresult result) {");
  line("  if (message)");
  line("    *message = text;");
  line("  return result;\n}");
  auto arithmetic = [&](StringRef operation, StringRef fails, char sign) {
    line("\nstatic inline int $_" + operation +
         "(int64_t a, int64_t b, int64_t *result) {");
    line("  if (" + fails + ")");
    line("    return 0;");
    line("  *result = a " + Twine(sign) + " b;");
    line("  return 1;\n}");
  };
  arithmetic("add", "b >= 0 ? a > INT64_MAX - b : a < INT64_MIN - b", '+');
  arithmetic("sub", "b >= 0 ? a < INT64_MIN + b : a > INT64_MAX + b", '-');
  arithmetic("mul",
             "a > 0 ? (b > 0 ? a > INT64_MAX / b : b < INT64_MIN / a)\n"
             "            : (b > 0 ? a < INT64_MIN / b\n"
             "                     : a != 0 && b < INT64_MAX / a)",
             '*');
  printTensorHelpers();
  printMemoryHelpers();
}

void CodePrinter::printMemoryHelpers() {
  line("\nstatic inline int64_t $_input(const $_call *call, int index) {");
  line("  return call->inputs[index];\n}");
  line("\n/* Memory of the workspace. Where it does not fit in 64 bits, nobody "
       "has so much. */");
  line("static inline int64_t $_allocate($_call *call, int64_t bytes) {");
  line("  int64_t first = call->used;");
  line(formatv("  if (!$_add(first, bytes, &call->used) ||\n"
               "      !$_add(call->used, {0}, &call->used))",
               HostProgram::alignment - 1));
  line("    call->used = INT64_MAX;");
  line(formatv("  call->used -= call->used % {0};", HostProgram::alignment));
  line("  if (call->total < call->used)");
  line("    call->total = call->used;");
  line("  return (int64_t)(call->workspace + (CUdeviceptr)first);\n}");
  line(
      "\nstatic inline int64_t $_mark(const $_call *call) { return call->used; "
      "}");
  line("\nstatic inline void $_release($_call *call, int64_t used) {");
  line("  call->used = used;\n}");
}

void CodePrinter::printTensorHelpers() {
  line("\nstatic inline int $_empty(const $_tensor *tensor) {");
  line("  int d;");
  line("  for (d = 0; d < tensor->rank; ++d)");
  line("    if (tensor->sizes[d] == 0)");
  line("      return 1;");
  line("  return 0;\n}");
  line("\n/* Whether the bytes from the first to the last element can be "
       "counted. */");
  line("static inline int $_span(const $_tensor *tensor, int64_t elementBytes) "
       "{");
  line("  int64_t low = 0, high = elementBytes, step;");
  line("  int d;");
  line("  for (d = 0; d < tensor->rank; ++d)");
  line("    if (tensor->sizes[d] > 1 &&");
  line("        (!$_mul(tensor->strides[d], elementBytes, &step) ||");
  line("         !$_mul(step, tensor->sizes[d] - 1, &step) ||");
  line("         !$_add(step < 0 ? low : high, step, step < 0 ? &low : "
       "&high)))");
  line("      return 0;");
  line("  return low >= high - INT64_MAX;\n}");
  line("\n/* Where a stride does not matter, that of a dense tensor. */");
  line("static inline int64_t $_stride(const $_tensor *tensor, int d) {");
  line("  int64_t stride = 1;");
  line("  int k;");
  line("  if (tensor->sizes[d] > 1 && !$_empty(tensor))");
  line("    return tensor->strides[d];");
  line("  for (k = d + 1; k < tensor->rank; ++k)");
  line("    if (tensor->sizes[k] > 1 && !$_mul(stride, tensor->sizes[k], "
       "&stride))");
  line("      return 0;");
  line("  return stride;\n}");
  line("\n/* As the program reads it. */");
  line("static inline void $_pack(int64_t *inputs, const $_tensor *tensor) {");
  line("  int d;");
  line("  *inputs++ = (int64_t)tensor->address;");
  line("  for (d = 0; d < tensor->rank; ++d)");
  line("    *inputs++ = tensor->sizes[d];");
  line("  for (d = 0; d < tensor->rank; ++d)");
  line("    *inputs++ = $_stride(tensor, d);\n}");
  if (program.results.empty())
    return;
  line("\n/* Of the elements; -1 if there are too many. */");
  line(
      "static inline int64_t $_bytes(const $_tensor *tensor, int64_t bytes) {");
  line("  int d;");
  line("  for (d = 0; d < tensor->rank; ++d)");
  line("    if (!$_mul(bytes, tensor->sizes[d], &bytes))");
  line("      return $_empty(tensor) ? 0 : -1;");
  line("  return bytes;\n}");
  line("\n/* Whether elements may share an address: each stride has to exceed "
       "what the");
  line(" * smaller ones span. */");
  line("static inline int $_overlaps(const $_tensor *tensor) {");
  line("  int d, k;");
  line("  for (d = 0; d < tensor->rank; ++d) {");
  line("    int64_t stride = tensor->strides[d], span = 0;");
  line("    stride = stride < 0 ? -stride : stride;");
  line("    if (tensor->sizes[d] <= 1)");
  line("      continue;");
  line("    for (k = 0; k < tensor->rank; ++k) {");
  line("      int64_t other = tensor->strides[k];");
  line("      other = other < 0 ? -other : other;");
  line("      if (tensor->sizes[k] > 1 &&");
  line("          (other < stride || (other == stride && k > d)))");
  line("        span += (tensor->sizes[k] - 1) * other;");
  line("    }");
  line("    if (stride <= span)");
  line("      return 1;");
  line("  }");
  line("  return 0;\n}");
}
