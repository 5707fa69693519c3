//===- RepeatedCall.h - Calls like ones before ------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a call on a device checks and computes depends on its arrays but not on
// what these hold. So all of it is kept under what it depends on, and the next
// such call reads its arrays, makes memory for the results, and launches.
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_PYTHON_REPEATEDCALL_H
#define FLASH_PYTHON_REPEATEDCALL_H

#include "Kernel.h"

#include <array>
#include <memory>

namespace flash::python {

/// What calls that are alike have in common: of each array whether there is
/// one, its type, device, sizes and strides, and its address modulo 256 bytes.
class Signature {
public:
  static constexpr size_t maxArrays = 16;

  /// Reads arrays and leaves out None. False, and no signature, unless
  /// these are plain tensors of one CUDA device that nothing else than a kernel
  /// has to look at.
  bool read(Torch &torch, const nb::handle *arrays, size_t count);
  bool isRead() const { return device >= 0; }

  bool operator==(const Signature &other) const;
  uint64_t getHash() const;
  int getDevice() const { return device; }
  size_t getCount() const { return count; }
  /// Null for None, and perhaps for arrays without elements.
  void *getAddress(size_t array) const { return addresses[array]; }
  /// The type and the rank of an array in a number; 0 for None.
  uint64_t getKind(size_t array) const { return kinds[array]; }
  int64_t getSize(size_t array, int dim) const {
    return words[starts[array] + dim];
  }
  /// Makes of the array, which has one dimension, one of neighbours elsewhere.
  void setVector(size_t array, void *address);

private:
  bool readAll(Torch &torch, const nb::handle *arrays, size_t numArrays);

  static constexpr size_t maxWords = 128;
  /// The part of an address that counts.
  static constexpr uintptr_t alignment = 256;

  size_t count = 0, numWords = 0;
  int device = -1;
  uint64_t kinds[maxArrays];
  void *addresses[maxArrays];
  /// Of each array the rest of its address, sizes and strides. The second says
  /// where the sizes start.
  int64_t words[maxWords];
  uint8_t starts[maxArrays];
};

/// A call of a kernel that is prepared for arrays of one signature.
class RepeatedCall {
public:
  /// The first `numArguments` of `arrays` that are not None are the kernel's.
  /// Results that are written into arrays that there are have the ones from
  /// `firstGiven` on. The call becomes this one's. `note` follows messages
  /// about tensors.
  RepeatedCall(const Signature &signature, const nb::handle *arrays,
               size_t numArguments, FlashCall *call,
               const std::vector<ResultMemory> &results, int firstGiven,
               const char *note);
  ~RepeatedCall() { flashCallDestroy(call); }
  RepeatedCall(const RepeatedCall &) = delete;

  const Signature &getSignature() const { return signature; }
  /// Another thread may be in it, as PyTorch may let one run while it
  /// allocates.
  bool isInUse() const { return inUse; }
  /// Launches the kernel on arrays of this signature, and returns the result,
  /// or the results.
  nb::object launch(Torch &torch, const Signature &given,
                    const nb::handle *arrays);

private:
  struct Result {
    ResultMemory memory;
    /// The number of the array that it is, or is made like; -1 for none.
    int array;
  };

  Signature signature;
  size_t numArguments;
  FlashCall *call;
  std::vector<Result> results;
  const char *note;
  bool inUse = false;
};

/// The repeated calls of one variant of attention.
class RepeatedCalls {
public:
  /// Null where there is none.
  std::shared_ptr<RepeatedCall> find(const Signature &signature);
  /// Notes that a call of this signature was done.
  void note(const Signature &signature);
  /// Whether there was one, not long ago, which is worth to be prepared: sizes
  /// that come once are not.
  bool wasSeen(const Signature &signature) const;
  void add(std::shared_ptr<RepeatedCall> call);
  /// Notes that such calls need more than a kernel.
  void refuse(const Signature &signature);

private:
  static constexpr size_t maxCalls = 64;

  /// The last one that was found comes first.
  std::vector<std::shared_ptr<RepeatedCall>> calls;
  /// Hashes; new ones replace old ones.
  struct Hashes {
    std::array<uint64_t, 64> hashes = {};
    size_t next = 0;
    bool contains(uint64_t hash) const;
    void add(uint64_t hash) { hashes[next++ % hashes.size()] = hash; }
  };
  Hashes seen, refused;
};

} // namespace flash::python

#endif // FLASH_PYTHON_REPEATEDCALL_H
