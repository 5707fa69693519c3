//===- CHeaderTensorMaps.cpp - Tensor maps of a call, as C ----------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CHeaderText.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace flash;
using namespace flash::runtime;
using llvm::formatv;
using llvm::StringRef;
using llvm::Twine;

static StringRef getDataType(TensorMapElement element) {
  switch (element) {
  case TensorMapElement::I8:
    return "UINT8";
  case TensorMapElement::I32:
    return "INT32";
  case TensorMapElement::I64:
    return "INT64";
  case TensorMapElement::F16:
    return "FLOAT16";
  case TensorMapElement::F32:
    return "FLOAT32";
  case TensorMapElement::F64:
    return "FLOAT64";
  case TensorMapElement::BF16:
    return "BFLOAT16";
  }
  llvm_unreachable("an element type without a name");
}

/// "128B", the end of the driver's names for sizes; "NONE" for 0.
static std::string getSizeName(StringRef prefix, int bytes) {
  return bytes ? formatv("{0}{1}B", prefix, bytes).str() : "NONE";
}

static std::string getProblem(const HostProgram::Launch &launch,
                              const HostProgram::Field &field) {
  return formatv("@{0}, {1} cannot have a tensor map: ", launch.kernel,
                 field.owner);
}

/// The variable of a size or stride, behind the two values of the address.
static std::string getSize(unsigned first, size_t d) {
  return formatv("v[{0}]", first + 2 + d);
}

bool TensorMapPrinter::hasTensorMaps() const {
  return llvm::any_of(program.launches, [](const HostProgram::Launch &launch) {
    return launch.hasTensorMaps();
  });
}

std::string TensorMapPrinter::getAddress(const HostProgram::Field &field,
                                         unsigned first) {
  return formatv("(CUdeviceptr)v[{0}] + (CUdeviceptr)v[{1}] * {2}", first,
                 first + 1, field.elementBytes);
}

void TensorMapPrinter::printTensorMapChecks(const HostProgram::Launch &launch,
                                            const HostProgram::Field &field,
                                            unsigned first) {
  std::string problem = getProblem(launch, field), hasElements;
  const HostProgram::TensorMapRecipe &map = launch.tensorMaps[field.tensorMap];
  size_t rank = map.box.size();
  for (size_t d = 0; d != rank; ++d)
    hasElements += (d ? " && " : "") + getSize(first, d) + " != 0";
  line("  if (" + hasElements + ") {");
  for (size_t d = 0; d != rank; ++d) {
    std::string size = getSize(first, d), stride = getSize(first, rank + d);
    line(formatv("    if ({0} < 0 || {0} > {1})", size,
                 literal(maxTensorMapSize)));
    returnFailure("      ", formatv("{0}the size of dimension {1} is not in "
                                    "the range from 1 to 2^32",
                                    problem, d));
    if (d + 1 == rank) {
      line(formatv("    if ({0} > 1 && {1} != 1)", size, stride));
      returnFailure("      ",
                    formatv("{0}the stride of dimension {1} is not 1: the "
                            "innermost dimension must be contiguous",
                            problem, d));
      continue;
    }
    line(formatv("    if ({0} > 1 && !$_steps({1}, {2}))", size, stride,
                 getBytes(map.element)));
    returnFailure("      ", formatv("{0}the stride of dimension {1} is not a "
                                    "multiple of {2} bytes below 2^40",
                                    problem, d, tensorMapAlignment));
  }
  line(formatv("    if (call->inputs[0] && ({0}) % {1} != 0)",
               getAddress(field, first), tensorMapAlignment));
  returnFailure("      ", formatv("{0}its address is not a multiple of {1}",
                                  problem, tensorMapAlignment));
  line("  }");
}

void TensorMapPrinter::printTensorMap(const HostProgram::Launch &launch,
                                      unsigned index, unsigned first) {
  const HostProgram::Field &field = launch.fields[index];
  const HostProgram::TensorMapRecipe &map = launch.tensorMaps[field.tensorMap];
  size_t rank = map.box.size();
  // C99 has no means to align it.
  line(formatv("  unsigned char storage{0}[sizeof(CUtensorMap) + {1}];", index,
               alignof(TensorMap)));
  line(formatv("  CUtensorMap *p{0} = $_align(storage{0});", index));
  line("  if (result == CUDA_SUCCESS) {");
  os << "    const cuuint32_t box[] = {";
  llvm::interleaveComma(map.box, os);
  line("};");
  line(formatv("    result = $_map(p{0}, CU_TENSOR_MAP_DATA_TYPE_{1}, {2},",
               index, getDataType(map.element), getBytes(map.element)));
  line(formatv("                   {0}, {1}, v + {2}, v + {3}, box,", rank,
               getAddress(field, first), first + 2, first + 2 + rank));
  line(formatv("                   CU_TENSOR_MAP_SWIZZLE_{0},",
               getSizeName("", map.swizzleBytes)));
  line(formatv("                   CU_TENSOR_MAP_L2_PROMOTION_{0});",
               getSizeName("L2_", map.l2PromotionBytes)));
  line("    if (result != CUDA_SUCCESS)");
  os << "      failure = ";
  string(getProblem(launch, field) + "the driver refuses it");
  line(";\n  }");
}

void TensorMapPrinter::printTensorMapHelpers() {
  if (!hasTensorMaps())
    return;
  line("\n/* Whether a tensor map can have the stride. */");
  line("static inline int $_steps(int64_t stride, int64_t elementBytes) {");
  line("  int64_t bytes;");
  line("  return $_mul(stride, elementBytes, &bytes) && bytes >= 0 &&");
  line(formatv("         bytes % {0} == 0 && bytes < {1};\n}",
               tensorMapAlignment, literal(tensorMapStrideLimit)));
  line("\n/* The first aligned address for a tensor map. */");
  line("static inline CUtensorMap *$_align(unsigned char *storage) {");
  line(formatv("  return (CUtensorMap *)(storage +\n"
               "                         ((0 - (uintptr_t)storage) & {0}));\n}",
               alignof(TensorMap) - 1));
  line("\n/* Has the driver write a tensor map, for which it wants the "
       "innermost dimension");
  line(" * first. A tensor without elements may be anywhere and is never read; "
       "strides");
  line(" * of dimensions of size 1 do not matter. */");
  line("static inline CUresult $_map(");
  line("    CUtensorMap *map, CUtensorMapDataType type, int64_t elementBytes, "
       "int "
       "rank,");
  line(
      "    CUdeviceptr address, const int64_t *sizes, const int64_t *strides,");
  line("    const cuuint32_t *box, CUtensorMapSwizzle swizzle,");
  line("    CUtensorMapL2promotion promotion) {");
  line(formatv("  cuuint64_t lengths[{0}], steps[{0}] = {{0};",
               maxTensorMapRank));
  line(formatv("  cuuint32_t boxes[{0}], ones[{0}];", maxTensorMapRank));
  line("  int d, isEmpty = 0;");
  line("  for (d = 0; d < rank; ++d)");
  line("    isEmpty |= sizes[d] == 0;");
  line("  for (d = 0; d < rank; ++d) {");
  line("    int from = rank - 1 - d;");
  line("    lengths[d] = isEmpty ? 1 : (cuuint64_t)sizes[from];");
  line("    boxes[d] = box[from];");
  line("    ones[d] = 1;");
  line("    if (d > 0)");
  line(formatv("      steps[d - 1] = lengths[d] == 1 ? {0}",
               tensorMapAlignment));
  line("                                     : (cuuint64_t)(strides[from] * "
       "elementBytes);");
  line("  }");
  line("  if (isEmpty)");
  line(formatv("    address = {0};", tensorMapAlignment));
  line("  return cuTensorMapEncodeTiled(");
  line("      map, type, (cuuint32_t)rank, (void *)(uintptr_t)address, "
       "lengths, steps,");
  line("      boxes, ones, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, promotion,");
  line("      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);\n}");
}
