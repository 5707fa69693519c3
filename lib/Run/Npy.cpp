//===- Npy.cpp - Files of numpy arrays ------------------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Run/Npy.h"

#include "flash/Support/OutputFile.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/EndianStream.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cstring>

using namespace flash::run;
using llvm::createStringError;
using llvm::formatv;

static_assert(llvm::endianness::native == llvm::endianness::little,
              "elements are copied to and from files as they are");

/// The descr that is written for a dtype, and the first one accepted.
static llvm::StringRef getDescr(DType dtype) {
  static constexpr llvm::StringLiteral descrs[] = {
      "<f2", "<u2", "<f4", "<f8", "|i1", "<i2", "<i4", "<i8", "|u1"};
  return descrs[static_cast<int>(dtype)];
}

/// For messages: what to give for a dtype.
static std::string describe(DType dtype) {
  if (dtype == DType::BF16)
    return "bf16 ('<u2' or '<V2' with its bits, or '<f4' to be rounded)";
  if (dtype == DType::F8E4M3FN)
    return "f8E4M3FN ('|u1' or '|V1' with its bits)";
  return formatv("{0} ('{1}')", getName(dtype), getDescr(dtype));
}

static std::string shapeStr(llvm::ArrayRef<int64_t> shape) {
  return shape.empty() ? "a scalar"
                       : llvm::join(llvm::map_range(shape,
                                                    [](int64_t s) {
                                                      return std::to_string(s);
                                                    }),
                                    "x");
}

/// Whether elements of `descr` become `dtype`; `rounds` is set if they have to
/// be rounded from f32.
static bool accepts(DType dtype, llvm::StringRef descr, bool &rounds) {
  rounds = dtype == DType::BF16 && descr == "<f4";
  if (rounds || descr == getDescr(dtype))
    return true;
  if (dtype == DType::BF16)
    return descr == "<V2" || descr == "|V2";
  // One byte has no order, and numpy writes either.
  if (dtype == DType::F8E4M3FN)
    return descr == "|V1" || descr == "<V1" || descr == "<u1";
  return dtype == DType::I8 && descr == "<i1";
}

static llvm::Error readData(llvm::StringRef file, const TensorSpec &spec,
                            HostTensor &tensor) {
  auto header = parseNpyHeader(file);
  if (!header)
    return header.takeError();
  bool rounds = false;
  if (!accepts(spec.dtype, header->descr, rounds)) {
    if (llvm::StringRef(header->descr).starts_with(">"))
      return createStringError(
          formatv("is big-endian ('{0}'); expected {1}: convert it with "
                  "a.astype('{2}')",
                  header->descr, describe(spec.dtype), getDescr(spec.dtype)));
    return createStringError(formatv("has dtype '{0}'; expected {1}",
                                     header->descr, describe(spec.dtype)));
  }
  if (llvm::ArrayRef<int64_t>(header->shape) != llvm::ArrayRef(spec.shape))
    return createStringError(formatv("has shape {0}; expected {1}",
                                     shapeStr(header->shape),
                                     shapeStr(spec.shape)));
  if (header->fortranOrder && header->shape.size() > 1)
    return createStringError("is in Fortran order; expected C order: convert "
                             "it with numpy.ascontiguousarray");
  size_t expected = spec.getNumElements() *
                    (rounds ? sizeof(float) : size_t(getSize(spec.dtype)));
  llvm::StringRef data = file.substr(header->dataOffset);
  if (data.size() != expected)
    return createStringError(
        formatv("has {0} bytes of data; expected {1} for {2}", data.size(),
                expected, spec.str()));
  if (!rounds) {
    if (!data.empty())
      std::memcpy(tensor.getData(), data.data(), data.size());
    return llvm::Error::success();
  }
  for (int64_t i = 0, e = spec.getNumElements(); i != e; ++i)
    tensor.set(
        i, llvm::support::endian::read<float>(data.data() + i * sizeof(float),
                                              llvm::endianness::little));
  return llvm::Error::success();
}

static llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
openFile(llvm::StringRef path) {
  // Devices may never end, and pipes can be read once only.
  llvm::sys::fs::file_status status;
  if (!llvm::sys::fs::status(path, status) &&
      !llvm::sys::fs::is_regular_file(status) &&
      !llvm::sys::fs::is_directory(status))
    return createStringError(
        formatv("'{0}' is a device or a pipe; expected a .npy file", path));
  auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                          /*RequiresNullTerminator=*/false);
  if (!file)
    return createStringError(
        formatv("'{0}': {1}", path, file.getError().message()));
  return std::move(*file);
}

llvm::Expected<llvm::SmallVector<int64_t, 4>>
flash::run::readNpyShape(llvm::StringRef path) {
  auto file = openFile(path);
  if (!file)
    return file.takeError();
  auto header = parseNpyHeader((*file)->getBuffer());
  if (!header)
    return createStringError(
        formatv("'{0}' {1}", path, llvm::toString(header.takeError())));
  return header->shape;
}

llvm::Expected<HostTensor> flash::run::readNpy(llvm::StringRef path,
                                               const TensorSpec &spec,
                                               Placement placement) {
  auto file = openFile(path);
  if (!file)
    return file.takeError();
  auto tensor = HostTensor::allocate(spec, placement);
  if (!tensor)
    return tensor.takeError();
  if (llvm::Error error = readData((*file)->getBuffer(), spec, *tensor))
    return createStringError(
        formatv("'{0}' {1}", path, llvm::toString(std::move(error))));
  return tensor;
}

llvm::Error flash::run::writeNpy(llvm::StringRef path,
                                 const HostTensor &tensor) {
  const TensorSpec &spec = tensor.getSpec();
  std::string shape;
  for (int64_t size : spec.shape)
    shape += std::to_string(size) + ", ";
  std::string dict =
      formatv("{{'descr': '{0}', 'fortran_order': False, 'shape': ({1}), }",
              getDescr(spec.dtype), shape);
  // numpy aligns the data to 64 bytes by spaces before the final newline.
  size_t length = llvm::alignTo(10 + dict.size() + 1, 64) - 10;
  dict.resize(length - 1, ' ');
  dict += '\n';
  return flash::writeFile(path, [&](llvm::raw_ostream &os) {
    os << llvm::StringRef("\x93NUMPY\1\0", 8);
    llvm::support::endian::write<uint16_t>(os, static_cast<uint16_t>(length),
                                           llvm::endianness::little);
    os << dict;
    os.write(tensor.getBytes().data(), tensor.getBytes().size());
  });
}
