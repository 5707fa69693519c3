//===- Exchange.h - Tensors of PyTorch without its methods ------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The C interface by which array libraries exchange tensors, as DLPack 1.3
// defines it (dlpack.h, DLPackExchangeAPI): PyTorch has it from 2.10 on, as a
// capsule in the type of its tensors. A call through it takes a tenth of the
// time of the same through Python's methods.
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_PYTHON_EXCHANGE_H
#define FLASH_PYTHON_EXCHANGE_H

#include <cstdint>

namespace flash::python {

struct DLDevice {
  int32_t type;
  int32_t id;
};
/// Pinned memory of the host is memory of the host.
enum : int32_t { dlCpu = 1, dlCuda = 2, dlCudaHost = 3 };

struct DLDataType {
  uint8_t code, bits;
  uint16_t lanes;
};
enum : uint8_t {
  dlInt = 0,
  dlUInt = 1,
  dlFloat = 2,
  dlBfloat = 4,
  dlBool = 6,
  dlFloat8E4M3FN = 10
};

struct DLTensor {
  void *data;
  DLDevice device;
  int32_t rank;
  DLDataType dtype;
  int64_t *sizes;
  /// In elements.
  int64_t *strides;
  uint64_t byteOffset;
};

struct DLPackVersion {
  uint32_t major, minor;
};

struct DLManagedTensor {
  DLPackVersion version;
  void *context;
  void (*destroy)(DLManagedTensor *);
  uint64_t flags;
  DLTensor tensor;
};

struct ExchangeApi {
  DLPackVersion version;
  ExchangeApi *previous;
  /// Memory for a tensor with the type, sizes and device of another, which is
  /// foreign to the library's own allocator.
  int (*allocate)(DLTensor *prototype, DLManagedTensor **tensor, void *context,
                  void (*setError)(void *context, const char *kind,
                                   const char *message));
  int (*shareTensor)(void *object, DLManagedTensor **tensor);
  /// Takes the tensor.
  int (*makeObject)(DLManagedTensor *tensor, void **object);
  /// What it writes is valid until Python runs again. May be null.
  int (*readTensor)(void *object, DLTensor *tensor);
  int (*getCurrentStream)(int32_t deviceType, int32_t device, void **stream);
};

} // namespace flash::python

#endif // FLASH_PYTHON_EXCHANGE_H
