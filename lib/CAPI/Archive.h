//===- Archive.h - Values as bytes, and back --------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One description of a type, a function `describe(archive, value)` that calls
// the archive with the members, both writes and reads it.
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_CAPI_ARCHIVE_H
#define FLASH_LIB_CAPI_ARCHIVE_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

namespace flash::capi {

/// What writing and reading have in common; `Derived::bytes` moves raw bytes
/// and `Derived::resize` the number of elements of a container.
template <typename Derived> class Archive {
public:
  template <typename... Values> void operator()(Values &...values) {
    (handle(values), ...);
  }

private:
  Derived &derived() { return static_cast<Derived &>(*this); }

  template <typename T>
  std::enable_if_t<std::is_arithmetic_v<T> || std::is_enum_v<T>>
  handle(T &value) {
    derived().bytes(&value, sizeof(T));
  }
  template <typename T> std::enable_if_t<std::is_class_v<T>> handle(T &value) {
    describe(derived(), value);
  }
  template <typename T, size_t n> void handle(T (&values)[n]) {
    for (T &value : values)
      handle(value);
  }
  void handle(std::string &text) {
    derived().resize(text, 1);
    derived().bytes(text.data(), text.size());
  }
  template <typename T> void handle(std::vector<T> &values) {
    handleList(values);
  }
  template <typename T, unsigned n>
  void handle(llvm::SmallVector<T, n> &values) {
    handleList(values);
  }
  template <typename List> void handleList(List &values) {
    // No element is written in less than a byte.
    derived().resize(values, 1);
    for (auto &value : values)
      handle(value);
  }
};

class Writer : public Archive<Writer> {
public:
  explicit Writer(std::string &output) : output(output) {}

  void bytes(const void *data, size_t count) {
    output.append(static_cast<const char *>(data), count);
  }
  template <typename List> void resize(List &list, size_t) {
    uint64_t count = list.size();
    bytes(&count, sizeof(count));
  }

private:
  std::string &output;
};

/// Past the end it reads zeros and fails.
class Reader : public Archive<Reader> {
public:
  explicit Reader(llvm::StringRef input) : input(input) {}

  void bytes(void *data, size_t count) {
    failed |= count > input.size();
    if (failed) {
      std::memset(data, 0, count);
      return;
    }
    if (count)
      std::memcpy(data, input.data(), count);
    input = input.drop_front(count);
  }
  template <typename List> void resize(List &list, size_t minBytes) {
    uint64_t count = 0;
    bytes(&count, sizeof(count));
    failed |= count > input.size() / minBytes;
    list.resize(failed ? 0 : count);
  }

  /// Whether everything was read and nothing is left.
  bool isComplete() const { return !failed && input.empty(); }

private:
  llvm::StringRef input;
  bool failed = false;
};

} // namespace flash::capi

#endif // FLASH_LIB_CAPI_ARCHIVE_H
