//===- HostTensor.cpp - Tensors in host memory ----------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Run/HostTensor.h"

#include "flash/Run/Float16.h"
#include "flash/Run/Float8.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <cstring>

using namespace flash::run;

template <typename T> static T load(const void *data, int64_t element) {
  T value;
  std::memcpy(&value, static_cast<const char *>(data) + element * sizeof(T),
              sizeof(T));
  return value;
}

template <typename T> static void store(void *data, int64_t element, T value) {
  std::memcpy(static_cast<char *>(data) + element * sizeof(T), &value,
              sizeof(T));
}

template <typename T> static T toInteger(double value) {
  if (std::isnan(value))
    return 0;
  // The bounds of i64 are no doubles: comparing with >= keeps the cast defined.
  if (value >= static_cast<double>(std::numeric_limits<T>::max()))
    return std::numeric_limits<T>::max();
  if (value <= static_cast<double>(std::numeric_limits<T>::min()))
    return std::numeric_limits<T>::min();
  return static_cast<T>(std::nearbyint(value));
}

double HostTensor::get(int64_t element) const {
  switch (spec.dtype) {
  case DType::F16:
    return decodeF16(load<uint16_t>(data, element));
  case DType::BF16:
    return decodeBF16(load<uint16_t>(data, element));
  case DType::F32:
    return load<float>(data, element);
  case DType::F64:
    return load<double>(data, element);
  case DType::I8:
    return load<int8_t>(data, element);
  case DType::I16:
    return load<int16_t>(data, element);
  case DType::I32:
    return load<int32_t>(data, element);
  case DType::I64:
    return static_cast<double>(load<int64_t>(data, element));
  case DType::F8E4M3FN:
    return decodeE4M3(load<uint8_t>(data, element));
  }
  llvm_unreachable("unknown dtype");
}

void HostTensor::set(int64_t element, double value) {
  switch (spec.dtype) {
  case DType::F16:
    return store(data, element, encodeF16(value));
  case DType::BF16:
    return store(data, element, encodeBF16(value));
  case DType::F32:
    return store(data, element, static_cast<float>(value));
  case DType::F64:
    return store(data, element, value);
  case DType::I8:
    return store(data, element, toInteger<int8_t>(value));
  case DType::I16:
    return store(data, element, toInteger<int16_t>(value));
  case DType::I32:
    return store(data, element, toInteger<int32_t>(value));
  case DType::I64:
    return store(data, element, toInteger<int64_t>(value));
  case DType::F8E4M3FN:
    return store(data, element, encodeE4M3(value));
  }
  llvm_unreachable("unknown dtype");
}

llvm::Expected<HostTensor> HostTensor::convert(DType dtype,
                                               Placement placement) const {
  auto copy = allocate(TensorSpec{dtype, spec.shape}, placement);
  if (!copy)
    return copy.takeError();
  if (dtype == spec.dtype) {
    if (!getBytes().empty())
      std::memcpy(copy->getData(), data, getBytes().size());
    return copy;
  }
  for (int64_t i = 0, e = spec.getNumElements(); i != e; ++i)
    copy->set(i, get(i));
  return copy;
}
