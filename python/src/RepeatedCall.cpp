//===- RepeatedCall.cpp - Calls like ones before --------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RepeatedCall.h"

#include <algorithm>

using namespace flash::python;

//===----------------------------------------------------------------------===//
// Signatures
//===----------------------------------------------------------------------===//

bool Signature::read(Torch &torch, const nb::handle *arrays, size_t numArrays) {
  if (!readAll(torch, arrays, numArrays))
    device = -1;
  return isRead();
}

bool Signature::readAll(Torch &torch, const nb::handle *arrays,
                        size_t numArrays) {
  if (!torch.exchange || !torch.exchange->readTensor || numArrays > maxArrays)
    return false;
  bool isGradEnabled = torch.isGradEnabled();
  count = numArrays;
  numWords = 0;
  for (size_t i = 0; i < count; ++i) {
    nb::handle array = arrays[i];
    kinds[i] = 0;
    addresses[i] = nullptr;
    if (array.is_none())
      continue;
    DLTensor tensor;
    if (!torch.isPlain(array))
      return false;
    if (torch.exchange->readTensor(array.ptr(), &tensor)) {
      PyErr_Clear();
      return false;
    }
    size_t rank = tensor.rank;
    if (tensor.device.type != dlCuda || !tensor.strides ||
        numWords + 1 + 2 * rank > maxWords ||
        (device >= 0 && device != tensor.device.id))
      return false;
    device = tensor.device.id;
    char *address = static_cast<char *>(tensor.data) + tensor.byteOffset;
    bool isEmpty =
        std::find(tensor.sizes, tensor.sizes + rank, 0) != tensor.sizes + rank;
    if ((!tensor.data && !isEmpty) || torch.isNegative(array) ||
        (isGradEnabled && Torch::requiresGrad(array)))
      return false;
    const DLDataType &type = tensor.dtype;
    // Types have bits, so that it is not 0.
    kinds[i] =
        uint64_t(type.lanes) << 24 | type.code << 16 | type.bits << 8 | rank;
    addresses[i] = address;
    words[numWords++] = reinterpret_cast<uintptr_t>(address) % alignment;
    starts[i] = numWords;
    for (const int64_t *numbers : {tensor.sizes, tensor.strides}) {
      std::copy_n(numbers, rank, words + numWords);
      numWords += rank;
    }
  }
  return true;
}

void Signature::setVector(size_t array, void *address) {
  addresses[array] = address;
  int64_t *own = words + starts[array];
  own[-1] = reinterpret_cast<uintptr_t>(address) % alignment;
  own[1] = 1; // The stride.
}

uint64_t Signature::getHash() const {
  uint64_t hash = device;
  auto mix = [&](uint64_t word) {
    hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 32;
  };
  std::for_each(kinds, kinds + count, mix);
  std::for_each(words, words + numWords, mix);
  return hash;
}

bool Signature::operator==(const Signature &other) const {
  return count == other.count && numWords == other.numWords &&
         device == other.device &&
         std::equal(kinds, kinds + count, other.kinds) &&
         std::equal(words, words + numWords, other.words);
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

RepeatedCall::RepeatedCall(const Signature &signature, const nb::handle *arrays,
                           size_t numArguments, FlashCall *call,
                           const std::vector<ResultMemory> &memories,
                           int firstGiven, const char *note)
    : signature(signature), numArguments(numArguments), call(call), note(note) {
  for (const ResultMemory &memory : memories) {
    int array = memory.kind == ResultMemory::Given ? firstGiven++ : -1;
    if (memory.kind == ResultMemory::Like)
      for (size_t i = 0; i < signature.getCount(); ++i)
        if (arrays[i].is(memory.array))
          array = int(i);
    results.push_back({memory, array});
    // It is another one in each call.
    results.back().memory.array = {};
  }
}

nb::object RepeatedCall::launch(Torch &torch, const Signature &given,
                                const nb::handle *arrays) {
  struct Use {
    explicit Use(bool &isInUse) : isInUse(isInUse) { isInUse = true; }
    ~Use() { isInUse = false; }
    bool &isInUse;
  } use(inUse);
  void *addresses[Signature::maxArrays];
  size_t count = 0;
  for (size_t i = 0; count < numArguments; ++i)
    if (given.getKind(i))
      addresses[count++] = given.getAddress(i);
  check(flashCallSetAddresses(call, addresses, count), note);
  constexpr size_t maxResults = 3;
  nb::object made[maxResults];
  void *ofResults[maxResults];
  for (size_t i = 0; i < results.size(); ++i) {
    const auto &[memory, array] = results[i];
    if (memory.kind == ResultMemory::Given) {
      made[i] = nb::borrow(arrays[array]);
      ofResults[i] = given.getAddress(array);
      continue;
    }
    made[i] = memory.allocate(torch, ofResults[i],
                              array < 0 ? nb::handle() : arrays[array]);
  }
  nb::object scratch;
  void *ofScratch = nullptr;
  if (int64_t bytes = flashCallGetScratchBytes(call))
    scratch = torch.allocate(&bytes, 1, FLASH_I8, ofScratch);
  check(flashCallLaunch(call, ofResults, results.size(), ofScratch,
                        torch.getCurrentStream(given.getDevice())),
        note);
  if (results.size() == 1)
    return std::move(made[0]);
  nb::object all = steal(PyTuple_New(results.size()));
  for (size_t i = 0; i < results.size(); ++i)
    PyTuple_SetItem(all.ptr(), i, made[i].release().ptr());
  return all;
}

std::shared_ptr<RepeatedCall> RepeatedCalls::find(const Signature &signature) {
  for (std::shared_ptr<RepeatedCall> &call : calls)
    if (call->getSignature() == signature) {
      std::swap(call, calls.front());
      return calls.front();
    }
  return nullptr;
}

bool RepeatedCalls::Hashes::contains(uint64_t hash) const {
  return std::find(hashes.begin(), hashes.end(), hash) != hashes.end();
}

void RepeatedCalls::note(const Signature &signature) {
  uint64_t hash = signature.getHash();
  if (!seen.contains(hash))
    seen.add(hash);
}

bool RepeatedCalls::wasSeen(const Signature &signature) const {
  uint64_t hash = signature.getHash();
  return seen.contains(hash) && !refused.contains(hash);
}

void RepeatedCalls::refuse(const Signature &signature) {
  refused.add(signature.getHash());
}

void RepeatedCalls::add(std::shared_ptr<RepeatedCall> call) {
  if (calls.size() == maxCalls)
    calls.pop_back();
  calls.push_back(std::move(call));
  std::swap(calls.back(), calls.front());
}
