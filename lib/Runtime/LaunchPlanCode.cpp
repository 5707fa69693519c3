//===- LaunchPlanCode.cpp - Plan instructions as C ------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LaunchPlanCode.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
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

std::optional<int64_t> CodePrinter::getConstant(Register value) const {
  const Instruction &instruction = plan.instructions[value];
  if (instruction.opcode != Opcode::Constant)
    return std::nullopt;
  return instruction.value;
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

std::string CodePrinter::operand(Register value) const {
  if (std::optional<int64_t> constant = getConstant(value))
    return literal(*constant);
  return formatv("r[{0}]", value);
}

std::string CodePrinter::operands(llvm::ArrayRef<Register> values) const {
  std::string text;
  for (Register value : values)
    text += (text.empty() ? "" : ", ") + operand(value);
  return text;
}

std::string CodePrinter::getAddress(const LaunchPlan::Field &field) const {
  std::string root = field.isArgument
                         ? formatv("arguments[{0}]->address", field.root).str()
                         : formatv("buffers[{0}]", field.root).str();
  if (getConstant(field.value) == 0)
    return root;
  return formatv("{0} + (CUdeviceptr)({1} * {2})", root, operand(field.value),
                 field.elementBytes);
}

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

/// The body of the helper of an operation that can fail: `a` and `b` to
/// `*result`. Empty for others.
static StringRef getHelper(Opcode opcode) {
  switch (opcode) {
  case Opcode::Add:
    return "  if (b >= 0 ? a > INT64_MAX - b : a < INT64_MIN - b)\n"
           "    return 0;\n"
           "  *result = a + b;\n";
  case Opcode::Sub:
    return "  if (b >= 0 ? a < INT64_MIN + b : a > INT64_MAX + b)\n"
           "    return 0;\n"
           "  *result = a - b;\n";
  case Opcode::Mul:
    return "  if (a > 0 ? (b > 0 ? a > INT64_MAX / b : b < INT64_MIN / a)\n"
           "            : (b > 0 ? a < INT64_MIN / b\n"
           "                     : a != 0 && b < INT64_MAX / a))\n"
           "    return 0;\n"
           "  *result = a * b;\n";
  case Opcode::DivS:
    return "  if (b == 0 || (a == INT64_MIN && b == -1))\n"
           "    return 0;\n"
           "  *result = a / b;\n";
  case Opcode::CeilDivS:
    return "  if (b == 0 || (a == INT64_MIN && b == -1))\n"
           "    return 0;\n"
           "  *result = a / b + (a % b != 0 && (a < 0) == (b < 0));\n";
  case Opcode::FloorDivS:
    return "  if (b == 0 || (a == INT64_MIN && b == -1))\n"
           "    return 0;\n"
           "  *result = a / b - (a % b != 0 && (a < 0) != (b < 0));\n";
  case Opcode::RemS:
    return "  if (b == 0)\n"
           "    return 0;\n"
           "  *result = b == -1 ? 0 : a % b;\n";
  case Opcode::DivU:
    return "  if (b == 0)\n"
           "    return 0;\n"
           "  *result = (int64_t)((uint64_t)a / (uint64_t)b);\n";
  case Opcode::CeilDivU:
    return "  if (b == 0)\n"
           "    return 0;\n"
           "  *result = (int64_t)((uint64_t)a / (uint64_t)b +\n"
           "                      ((uint64_t)a % (uint64_t)b != 0));\n";
  case Opcode::RemU:
    return "  if (b == 0)\n"
           "    return 0;\n"
           "  *result = (int64_t)((uint64_t)a % (uint64_t)b);\n";
  default:
    return "";
  }
}

/// The expression of an operation that cannot fail.
static std::string getExpression(Opcode opcode, StringRef a, StringRef b,
                                 StringRef c) {
  auto choose = [&](StringRef format) {
    return formatv(format.data(), a, b).str();
  };
  switch (opcode) {
  case Opcode::MinS:
    return choose("{0} < {1} ? {0} : {1}");
  case Opcode::MaxS:
    return choose("{0} > {1} ? {0} : {1}");
  case Opcode::MinU:
    return choose("(uint64_t){0} < (uint64_t){1} ? {0} : {1}");
  case Opcode::MaxU:
    return choose("(uint64_t){0} > (uint64_t){1} ? {0} : {1}");
  case Opcode::And:
    return choose("{0} & {1}");
  case Opcode::Or:
    return choose("{0} | {1}");
  case Opcode::Xor:
    return choose("{0} ^ {1}");
  case Opcode::Equal:
    return choose("{0} == {1}");
  case Opcode::NotEqual:
    return choose("{0} != {1}");
  case Opcode::LessS:
    return choose("{0} < {1}");
  case Opcode::LessU:
    return choose("(uint64_t){0} < (uint64_t){1}");
  case Opcode::LessEqualS:
    return choose("{0} <= {1}");
  case Opcode::LessEqualU:
    return choose("(uint64_t){0} <= (uint64_t){1}");
  case Opcode::Select:
    return formatv("{0} ? {1} : {2}", a, b, c);
  default:
    llvm_unreachable("not an expression");
  }
}

void CodePrinter::printInstruction(Register index,
                                   const Instruction &instruction) {
  unsigned count = getNumOperands(instruction.opcode);
  std::string a = count > 0 ? operand(instruction.a) : "";
  std::string b = count > 1 ? operand(instruction.b) : "";
  std::string c = count > 2 ? operand(instruction.c) : "";
  switch (instruction.opcode) {
  case Opcode::Constant:
    return;
  case Opcode::Size:
    return line(formatv("  r[{0}] = arguments[{1}]->sizes[{2}];", index,
                        instruction.a, instruction.b));
  case Opcode::Stride:
    return line(formatv("  r[{0}] = $_stride(arguments[{1}], {2});", index,
                        instruction.a, instruction.b));
  case Opcode::ResultStride:
    return line(
        formatv("  r[{0}] = results ? $_stride(results[{1}], {2}) : {3};",
                index, instruction.b, instruction.c, a));
  case Opcode::Assert:
    line("  if (!" + a + ")");
    return returnFailure("    ", plan.messages[instruction.value]);
  case Opcode::ToI32:
    line("  if (" + a + " < INT32_MIN || " + a + " > INT32_MAX)");
    returnFailure("    ", "a value does not fit in an i32");
    return line(formatv("  r[{0}] = {1};", index, a));
  default:
    break;
  }
  if (getHelper(instruction.opcode).empty())
    return line(formatv("  r[{0}] = {1};", index,
                        getExpression(instruction.opcode, a, b, c)));
  line(formatv("  if (!$_{0}({1}, {2}, &r[{3}]))", getName(instruction.opcode),
               a, b, index));
  returnFailure("    ", instruction.opcode <= Opcode::Mul
                            ? getName(instruction.opcode) +
                                  " of two values does not fit in 64 bits"
                            : "a value is divided by 0");
}

void CodePrinter::printInstructions() {
  for (auto [i, instruction] : llvm::enumerate(plan.instructions))
    printInstruction(i, instruction);
}

void CodePrinter::printHelpers() {
  line("static inline CUresult $_fail(const char **message, const char *text,");
  line("                              CUresult result) {");
  line("  if (message)");
  line("    *message = text;");
  line("  return result;\n}");
  llvm::SmallVector<Opcode> opcodes = {Opcode::Add, Opcode::Mul};
  for (const Instruction &instruction : plan.instructions)
    if (!llvm::is_contained(opcodes, instruction.opcode))
      opcodes.push_back(instruction.opcode);
  for (Opcode opcode : opcodes) {
    StringRef body = getHelper(opcode);
    if (body.empty())
      continue;
    line("\nstatic inline int $_" + getName(opcode) +
         "(int64_t a, int64_t b, int64_t *result) {");
    line(body + "  return 1;\n}");
  }
  printTensorHelpers();
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
  line("\nstatic inline int $_bytes(const int64_t *sizes, int rank, int64_t "
       "elementBytes,");
  line("                          int64_t *bytes) {");
  line("  int d, isEmpty = 0, overflows = 0;");
  line("  *bytes = elementBytes;");
  line("  for (d = 0; d < rank; ++d) {");
  line("    if (sizes[d] < 0)");
  line("      return 0;");
  line("    isEmpty |= sizes[d] == 0;");
  line("    overflows |= !$_mul(*bytes, sizes[d], bytes);");
  line("  }");
  line("  if (isEmpty)");
  line("    *bytes = 0;");
  line("  return isEmpty || !overflows;\n}");
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
  if (plan.results.empty())
    return;
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
