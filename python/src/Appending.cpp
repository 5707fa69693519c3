//===- Appending.cpp - New keys of a cache --------------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Appending.h"

#include <algorithm>

using namespace flash::python;

/// Makes of rows of 8 bits rows of half as many elements of 16 bits, which are
/// copied alike; false where these would not lie at multiples of their size.
static bool widen(Array &array) {
  int64_t &columns = array.sizes[array.rank - 1];
  if (columns % 2 || reinterpret_cast<uintptr_t>(array.data) % 2)
    return false;
  columns /= 2;
  for (int d = 0; d < array.rank - 1; ++d) {
    if (array.strides[d] % 2)
      return false;
    array.strides[d] /= 2;
  }
  array.element = FLASH_F16;
  return true;
}

/// What the kernel is called with for some arrays.
struct Appending::Launch {
  Array arrays[NumOperands];
  nb::object owners[NumOperands];
  FlashTensor tensors[NumOperands], places[numResults];
  Destination destinations[numResults] = {};
  size_t count = 0;

  /// False if no kernel is for these arrays.
  bool read(const nb::handle *given);
};

bool Appending::Launch::read(const nb::handle *given) {
  constexpr int numRows = 4;
  constexpr uintptr_t alignment = 16; // Where a result may start.
  constexpr const char *names[] = {"k",       "v",           "k_cache",
                                   "v_cache", "block_table", "cache_seqlens"};
  for (int i = 0; i < NumOperands; ++i) {
    if (given[i].is_none())
      continue;
    Array &array = arrays[i];
    array = readArray(given[i], names[i], owners[i]);
    // Into a copy nothing is appended.
    if (!array.hasMemory || !array.isTorch || array.device < 0 ||
        array.device != arrays[Key].device || !owners[i].is(given[i]))
      return false;
    int64_t &last = array.strides[array.rank - 1];
    if (array.sizes[array.rank - 1] <= 1)
      last = 1; // It means nothing.
    if (last != 1)
      return false;
    array.setUnitStrides();
    if (i >= numRows) {
      tensors[count++] = array.getTensor();
      continue;
    }
    // Values that are columns of keys are written behind these.
    if (i == ValueCache && array.data == arrays[KeyCache].data)
      return false;
    bool isByte = array.element == FLASH_I8 || array.element == FLASH_F8E4M3FN;
    bool isRepeated = std::find(array.strides, array.strides + array.rank, 0) !=
                      array.strides + array.rank;
    if (array.rank != 4 || array.isEmpty() || (i >= KeyCache && isRepeated) ||
        (isByte ? !widen(array) : array.element > FLASH_F32) ||
        array.sizes[3] % 8 || array.element != arrays[Key].element ||
        reinterpret_cast<uintptr_t>(array.data) % alignment)
      return false;
    array.putHeadsFirst();
    tensors[count++] = array.getTensor();
  }
  for (int i : {0, 1}) {
    const Array &cache = arrays[KeyCache + i];
    places[i] = cache.getTensor();
    destinations[i].given = given[KeyCache + i];
    destinations[i].data = cache.data;
  }
  // Like the lengths before.
  static const int64_t dense = 1;
  const Array &lengths = arrays[Lengths];
  places[2] = {nullptr, 1, lengths.sizes, &dense};
  destinations[2] = {1, {lengths.sizes[0]}, lengths.prototype};
  return true;
}

Kernel &Appending::getKernel(const Launch &launch, bool hasTable) {
  const Array &key = launch.arrays[Key];
  std::array<int64_t, 5> wanted = {key.element, key.sizes[3],
                                   launch.arrays[Value].sizes[3], hasTable,
                                   key.device};
  nb::object &kernel = kernels[wanted];
  if (!kernel)
    kernel = compile(getMlirName(key.element), wanted[1], wanted[2], hasTable,
                     key.device);
  return nb::cast<Kernel &>(kernel);
}

/// Whether values are no columns of keys; calls of one signature may differ in
/// that.
static bool haveCachesApart(const Signature &signature) {
  return signature.getAddress(Appending::KeyCache) !=
         signature.getAddress(Appending::ValueCache);
}

nb::object Appending::append(const nb::args &given) {
  Torch *torch = Torch::get();
  nb::handle arrays[NumOperands];
  if (given.size() != NumOperands)
    raise(PyExc_TypeError, "append takes ", int(NumOperands), " arrays, but ",
          given.size(), " are given");
  for (int i = 0; i < NumOperands; ++i)
    arrays[i] = given[i];
  if (!torch || torch->isWatched())
    return nb::none();
  Signature signature;
  bool mayRepeat = torch->currentStream.is_valid() &&
                   signature.read(*torch, arrays, NumOperands) &&
                   torch->getCurrentDevice() == signature.getDevice() &&
                   haveCachesApart(signature);
  std::shared_ptr<RepeatedCall> call;
  if (mayRepeat)
    call = calls.find(signature);
  if (!call || call->isInUse()) {
    Launch launch;
    if (!launch.read(arrays))
      return nb::none();
    Kernel &kernel = getKernel(launch, !arrays[Table].is_none());
    if (!mayRepeat)
      return kernel.launch(launch.tensors, launch.count, launch.arrays,
                           NumOperands, "", launch.places,
                           launch.destinations)[2];
    std::vector<ResultMemory> memories;
    FlashCall *prepared =
        kernel.prepare(launch.tensors, launch.count, launch.arrays, NumOperands,
                       "", launch.places, launch.destinations, memories);
    call = std::make_shared<RepeatedCall>(signature, arrays, launch.count,
                                          prepared, memories, KeyCache, "");
    if (memories[0].kind != ResultMemory::Given ||
        memories[1].kind != ResultMemory::Given)
      raise(PyExc_RuntimeError,
            "the kernel cannot write into caches of these strides");
    calls.add(call);
  }
  nb::object results = call->launch(*torch, signature, arrays);
  return results[2];
}

nb::object Appending::callAgain(PyObject *const *arguments, size_t count) {
  Torch *torch = Torch::get();
  constexpr size_t numNew = 2;
  if (!torch || count < numNew + Shortcut::NumArrays)
    return {};
  PyObject *const *others = arguments + numNew;
  nb::handle arrays[NumOperands] = {arguments[0],
                                    arguments[1],
                                    others[Shortcut::Key],
                                    others[Shortcut::Value],
                                    others[Shortcut::PageTable],
                                    others[Shortcut::KeyLengths]};
  Shortcut::Arrays ofCall;
  std::shared_ptr<const Shortcut::Entry> entry =
      shortcut->find(*torch, others, count - numNew, ofCall);
  if (!entry || arrays[Lengths].is_none())
    return {};
  // The lengths of that call are a new tensor.
  size_t place = ofCall.places[Shortcut::KeyLengths];
  ofCall.signature.setVector(place, nullptr);
  std::shared_ptr<RepeatedCall> call =
      entry->attention->findRepeated(shortcut->haveRows(), ofCall.signature);
  Signature signature;
  if (!call || call->isInUse() ||
      !signature.read(*torch, arrays, NumOperands) ||
      torch->getCurrentDevice() != signature.getDevice() ||
      !haveCachesApart(signature))
    return {};
  std::shared_ptr<RepeatedCall> appending = calls.find(signature);
  if (!appending || appending->isInUse())
    return {};
  nb::object appended = appending->launch(*torch, signature, arrays);
  nb::object lengths = appended[2];
  ofCall.given.all[place] = lengths;
  if (call->isInUse()) {
    // Another thread came while memory was allocated.
    nb::list captured;
    for (nb::handle each : {arrays[Table], nb::handle(lengths)})
      if (!each.is_none())
        captured.append(each);
    const nb::handle *all = ofCall.given.all;
    return entry->attention->callRows(all[0], all[1], all[2], all[3], all[4],
                                      nb::tuple(captured),
                                      others[Shortcut::Out]);
  }
  Signature made;
  if (!made.read(*torch, &ofCall.given.all[place], 1))
    raise(PyExc_RuntimeError, "PyTorch made no plain tensor");
  ofCall.signature.setVector(place, made.getAddress(0));
  return call->launch(*torch, ofCall.signature, ofCall.given.all);
}
