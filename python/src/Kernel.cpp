//===- Kernel.cpp - Kernels and their calls -------------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernel.h"

#include <algorithm>
#include <memory>

using namespace flash::python;

Kernel::~Kernel() {
  for (auto &[device, list] : calls)
    for (FlashCall *call : list)
      flashCallDestroy(call);
  flashKernelDestroy(handle);
}

/// Whether a handler of signals has raised an exception, such as
/// KeyboardInterrupt; it is that of the thread then. A compilation calls it,
/// and one thread compiles at a time, so whatever waits for the compiler must
/// have released the GIL.
static int hasRaised() {
  nb::gil_scoped_acquire gil;
  return PyErr_CheckSignals();
}

/// The status of a function that may wait for the compiler. The message is the
/// thread's, and stays until its next call.
template <typename Function> static FlashStatus withoutGil(Function function) {
  nb::gil_scoped_release release;
  return function();
}

namespace {
/// The options of a compilation; refers to the texts that it was made from.
struct Options {
  /// `machine` is the text of a target, or a compiler.Machine.
  Options(nb::handle machine, const std::string &function,
          const std::string &schedule, const std::string &versions = "")
      : isTarget(nb::isinstance<nb::str>(machine)),
        target(nb::cast<std::string>(isTarget ? machine : machine[0])) {
    if (!isTarget) {
      device = nb::cast<std::string>(machine[1]);
      all.multiprocessors = nb::cast<int64_t>(machine[2]);
      tuning = nb::cast<std::string>(machine[3]);
    }
    auto given = [](const std::string &text) {
      return text.empty() ? nullptr : text.c_str();
    };
    all.struct_size = sizeof(all);
    all.target = target.c_str();
    all.function = given(function);
    all.schedule = given(schedule);
    all.versions = given(versions);
    all.device = given(device);
    all.tuning_file = given(tuning);
    all.is_interrupted = hasRaised;
  }

  bool isTarget;
  std::string target, device, tuning;
  FlashCompileOptions all = {};
};
} // namespace

/// Tensors that have only sizes.
static std::vector<FlashTensor>
getShapes(const std::vector<std::vector<int64_t>> &sizes) {
  std::vector<FlashTensor> tensors;
  for (const std::vector<int64_t> &each : sizes)
    tensors.push_back({nullptr, int32_t(each.size()), each.data(), nullptr});
  return tensors;
}

Kernel *Kernel::compile(const std::string &text, nb::handle machine,
                        const std::string &function,
                        const std::string &schedule,
                        const std::string &versions) {
  Options options(machine, function, schedule, versions);
  FlashKernel *handle = nullptr;
  check(withoutGil([&] {
    return flashKernelCompile(text.data(), text.size(), &options.all, &handle);
  }));
  return new Kernel(handle);
}

Kernel *Kernel::deserialize(nb::bytes bytes) {
  FlashKernel *handle = nullptr;
  check(withoutGil([&] {
    return flashKernelDeserialize(bytes.c_str(), bytes.size(), &handle);
  }));
  return new Kernel(handle);
}

nb::str Kernel::specialize(const std::string &text, nb::handle machine,
                           const std::string &function,
                           const std::string &schedule,
                           const std::vector<std::vector<int64_t>> &sizes) {
  Options options(machine, function, schedule);
  std::vector<FlashTensor> arguments = getShapes(sizes);
  const char *version = nullptr;
  size_t length = 0;
  check(withoutGil([&] {
    return flashProgramSpecialize(text.data(), text.size(), &options.all,
                                  arguments.data(), arguments.size(), &version,
                                  &length);
  }));
  return nb::str(version, length);
}

nb::tuple Kernel::specializeEach(
    const std::string &text, nb::handle machine,
    const std::vector<std::vector<std::vector<int64_t>>> &calls) {
  Options options(machine, "", "");
  std::vector<FlashTensor> arguments;
  for (const std::vector<std::vector<int64_t>> &sizes : calls) {
    std::vector<FlashTensor> ofCall = getShapes(sizes);
    arguments.insert(arguments.end(), ofCall.begin(), ofCall.end());
  }
  size_t numArguments = calls.empty() ? 0 : arguments.size() / calls.size();
  // Many calls have the same version.
  std::map<std::string, size_t> numbers;
  std::vector<const std::string *> versions;
  std::vector<size_t> ofCalls(calls.size());
  auto take = [&](size_t call, const char *version, size_t length) {
    auto [found, isNew] =
        numbers.try_emplace(std::string(version, length), versions.size());
    if (isNew)
      versions.push_back(&found->first);
    ofCalls[call] = found->second;
  };
  check(withoutGil([&] {
    return flashProgramSpecializeEach(
        text.data(), text.size(), &options.all, arguments.data(), numArguments,
        calls.size(),
        [](void *data, size_t call, const char *version, size_t length) {
          (*static_cast<decltype(take) *>(data))(call, version, length);
        },
        &take);
  }));
  nb::list texts, found;
  for (const std::string *version : versions)
    texts.append(nb::str(version->data(), version->size()));
  for (size_t number : ofCalls)
    found.append(number);
  return nb::make_tuple(texts, found);
}

nb::object Kernel::plan(const std::string &text, nb::handle machine,
                        const std::string &function,
                        const std::string &schedule,
                        const std::vector<std::vector<int64_t>> &sizes) {
  Options options(machine, function, schedule);
  std::vector<FlashTensor> arguments = getShapes(sizes);
  const char *planned = nullptr, *ofPlan = nullptr;
  check(withoutGil([&] {
    return flashProgramPlan(text.data(), text.size(), &options.all,
                            arguments.data(), arguments.size(), &planned,
                            &ofPlan);
  }));
  if (!planned)
    return nb::none();
  return nb::make_tuple(planned, ofPlan);
}

static nb::tuple describe(const FlashTensorType &type) {
  nb::list sizes;
  for (int32_t d = 0; d < type.rank; ++d)
    sizes.append(type.sizes[d] == FLASH_DYNAMIC
                     ? nb::object(nb::none())
                     : nb::object(nb::int_(type.sizes[d])));
  return nb::make_tuple(getName(type.element), nb::tuple(sizes));
}

nb::list Kernel::getArguments() const {
  nb::list list;
  for (size_t i = 0; i < flashKernelGetNumArguments(handle); ++i)
    list.append(describe(flashKernelGetArgument(handle, i)));
  return list;
}

nb::list Kernel::getResults() const {
  nb::list list;
  for (size_t i = 0; i < flashKernelGetNumResults(handle); ++i)
    list.append(describe(flashKernelGetResult(handle, i)));
  return list;
}

nb::str Kernel::getText(const std::string &stage) {
  const char *text = nullptr;
  size_t length = 0;
  check(withoutGil([&] {
    std::lock_guard<std::mutex> lock(ofTexts);
    return flashKernelGetText(handle, stage.c_str(), &text, &length);
  }));
  return nb::str(text, length);
}

nb::tuple
Kernel::countTiles(const std::vector<std::vector<int64_t>> &sizes) const {
  std::vector<FlashTensor> arguments = getShapes(sizes);
  FlashTileCounts counts;
  check(withoutGil([&] {
    return flashKernelCountTiles(handle, arguments.data(), arguments.size(),
                                 &counts);
  }));
  return nb::make_tuple(counts.skipped, counts.unmasked, counts.masked,
                        counts.query_tile, counts.key_tile);
}

void Kernel::save(const std::string &path) {
  check(withoutGil([&] {
    std::lock_guard<std::mutex> lock(ofTexts);
    return flashKernelSave(handle, path.c_str());
  }));
}

nb::bytes Kernel::serialize() {
  const char *bytes = nullptr;
  size_t length = 0;
  check(withoutGil([&] {
    std::lock_guard<std::mutex> lock(ofTexts);
    return flashKernelSerialize(handle, &bytes, &length);
  }));
  return nb::bytes(bytes, length);
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

class Kernel::Borrowed {
public:
  Borrowed(Kernel &kernel, int device) : free(kernel.calls[device]) {
    if (free.empty()) {
      check(flashCallCreate(kernel.handle, device, &call));
      return;
    }
    call = free.back();
    free.pop_back();
  }
  Borrowed(const Borrowed &) = delete;
  ~Borrowed() { free.push_back(call); }
  operator FlashCall *() const { return call; }

private:
  std::vector<FlashCall *> &free;
  FlashCall *call = nullptr;
};

void Kernel::load(int device) {
  if (!isGpu() || !calls[device].empty())
    return;
  FlashCall *call = nullptr;
  // Gradients are compiled in another thread while the driver assembles.
  check(withoutGil([&] { return flashCallCreate(handle, device, &call); }));
  calls[device].push_back(call);
}

nb::tuple
Kernel::countBytes(int device,
                   const std::vector<std::vector<int64_t>> &argumentSizes) {
  std::vector<FlashTensor> tensors = getShapes(argumentSizes);
  std::vector<std::vector<int64_t>> strides;
  for (FlashTensor &tensor : tensors) {
    std::vector<int64_t> &ofTensor = strides.emplace_back(tensor.rank, 1);
    for (int32_t d = tensor.rank; d-- > 1;)
      ofTensor[d - 1] = ofTensor[d] * std::max<int64_t>(tensor.sizes[d], 1);
    tensor.strides = ofTensor.data();
    // Nothing is read there, nor by the driver.
    constexpr uintptr_t aligned = 1 << 20;
    tensor.data = reinterpret_cast<void *>(aligned);
  }
  Borrowed call(*this, device);
  check(flashCallPrepare(call, tensors.data(), tensors.size()));
  int64_t ofResults = 0;
  for (size_t i = 0; i < flashKernelGetNumResults(handle); ++i) {
    FlashTensor result = flashCallGetResult(call, i);
    int64_t bytes = getBytes(flashKernelGetResult(handle, i).element);
    for (int32_t d = 0; d < result.rank; ++d)
      bytes *= result.sizes[d];
    ofResults += bytes;
  }
  return nb::make_tuple(ofResults, flashCallGetScratchBytes(call));
}

struct Kernel::Arguments {
  Arguments(const Kernel &kernel, const std::vector<nb::object> &arguments);

  std::vector<Array> arrays;
  std::vector<nb::object> owners;
  std::vector<FlashTensor> tensors;
};

Kernel::Arguments::Arguments(const Kernel &kernel,
                             const std::vector<nb::object> &arguments)
    : arrays(arguments.size()), owners(arguments.size()),
      tensors(arguments.size()) {
  size_t expected = flashKernelGetNumArguments(kernel.handle);
  if (arguments.size() != expected)
    raise(PyExc_TypeError, "the function takes ", expected, " arguments, but ",
          arguments.size(), " are given");
  bool onDevice = kernel.isGpu();
  for (size_t i = 0; i < expected; ++i) {
    std::string name = "argument " + std::to_string(i);
    Array &array = arrays[i];
    auto *read = onDevice ? readArray : readDense;
    array = read(arguments[i], name.c_str(), owners[i]);
    if (!array.hasMemory)
      raiseNoMemory(arguments[i], name.c_str());
    FlashElementType element = flashKernelGetArgument(kernel.handle, i).element;
    if (!array.hasType(element))
      raise(PyExc_TypeError, name, " is ", array.describe(),
            "; the program has ", getName(element));
    if (onDevice != (array.device >= 0) || array.device != arrays[0].device)
      raise(PyExc_ValueError, name, " is on ", array.describeDevice(),
            "; the kernel is for ", kernel.getTarget(),
            ", and all arguments must be on one device");
    array.setUnitStrides();
    tensors[i] = array.getTensor();
  }
  if (onDevice && expected == 0)
    raise(PyExc_ValueError, "a kernel without arguments has no device");
}

std::vector<nb::object> Kernel::call(const std::vector<nb::object> &arguments) {
  auto [arrays, owners, tensors] = Arguments(*this, arguments);
  size_t count = tensors.size();
  if (isGpu())
    return launch(tensors.data(), count, arrays.data(), count);
  return run(tensors.data(), count, count ? arrays[0] : Array());
}

void Kernel::checkArguments(const std::vector<nb::object> &arguments) {
  Arguments read(*this, arguments);
  if (!isGpu())
    return;
  Borrowed call(*this, read.arrays[0].device);
  prepare(call, read.tensors.data(), read.tensors.size(), "", nullptr);
}

std::vector<nb::object> Kernel::run(const FlashTensor *arguments, size_t count,
                                    const Array &like, const char *note) {
  size_t numResults = flashKernelGetNumResults(handle);
  std::vector<FlashBuffer *> buffers(numResults);
  check(withoutGil([&] {
          return flashKernelRun(handle, arguments, count, buffers.data());
        }),
        note);
  std::vector<nb::object> results;
  for (size_t i = 0; i < numResults; ++i)
    results.push_back(
        makeArray(buffers[i], flashKernelGetResult(handle, i).element, like));
  return results;
}

std::vector<nb::object> Kernel::launch(const FlashTensor *arguments,
                                       size_t count, const Array *arrays,
                                       size_t numArrays, const char *note,
                                       const FlashTensor *places,
                                       const Destination *destinations) {
  Torch *torch = Torch::get();
  if (!torch || !torch->currentStream.is_valid())
    raise(PyExc_RuntimeError, "this PyTorch has no CUDA");
  int device = arrays->device;
  if (torch->getCurrentDevice() == device)
    return launchHere(arguments, count, arrays, numArrays, *torch, note, places,
                      destinations);
  // A launch makes its device the current one, which is not the caller's.
  nb::object guard = torch->deviceGuard(device);
  guard.attr("__enter__")();
  struct Exit {
    nb::object &guard;
    ~Exit() {
      nb::error_scope pending; // Of a launch that failed.
      try {
        guard.attr("__exit__")(nb::none(), nb::none(), nb::none());
      } catch (nb::python_error &error) {
        error.discard_as_unraisable("leaving a CUDA device");
      }
    }
  } exit{guard};
  return launchHere(arguments, count, arrays, numArrays, *torch, note, places,
                    destinations);
}

/// Whether elements lie alike in two tensors of the same sizes.
static bool haveEqualStrides(const FlashTensor &left,
                             const FlashTensor &right) {
  bool areEqual = true;
  for (int32_t d = 0; d < left.rank; ++d)
    areEqual &= left.sizes[d] <= 1 || left.strides[d] == right.strides[d];
  return areEqual;
}

nb::object ResultMemory::allocate(Torch &torch, void *&address,
                                  nb::handle like) const {
  if (kind == Like)
    return torch.allocateLike(like, address);
  if (kind == Strided)
    return torch.allocateStrided({nullptr, rank, sizes, strides}, element,
                                 address);
  return torch.allocate(sizes, rank, element, address);
}

void Kernel::prepare(FlashCall *call, const FlashTensor *arguments,
                     size_t count, const char *note,
                     const FlashTensor *places) {
  check(places ? flashCallPrepareResults(call, arguments, count, places,
                                         flashKernelGetNumResults(handle))
               : flashCallPrepare(call, arguments, count),
        note);
}

ResultMemory Kernel::chooseMemory(FlashCall *call, size_t result,
                                  const Array *arrays, size_t numArrays,
                                  const FlashTensor *places,
                                  const Destination *destinations) const {
  FlashTensor shape = flashCallGetResult(call, result);
  ResultMemory memory;
  memory.element = flashKernelGetResult(handle, result).element;
  auto make = [&](ResultMemory::Kind kind, nb::handle array = {}) {
    memory.kind = kind;
    memory.array = array;
    return memory;
  };
  // A program may be able to write row-major results alone.
  if (destinations && destinations[result].given &&
      haveEqualStrides(shape, places[result])) {
    memory.data = destinations[result].data;
    return make(ResultMemory::Given, destinations[result].given);
  }
  if (destinations && destinations[result].rank) {
    const Destination &to = destinations[result];
    memory.rank = to.rank;
    std::copy_n(to.sizes, to.rank, memory.sizes);
    return to.prototype ? make(ResultMemory::Like, to.prototype)
                        : make(ResultMemory::Dense);
  }
  memory.rank = shape.rank;
  std::copy_n(shape.sizes, shape.rank, memory.sizes);
  if (places) {
    std::copy_n(shape.strides, shape.rank, memory.strides);
    return make(ResultMemory::Strided);
  }
  // It keeps the strides, too.
  for (const Array *like = arrays; like != arrays + numArrays; ++like)
    if (like->prototype && like->hasType(memory.element) &&
        like->rank == shape.rank &&
        std::equal(shape.sizes, shape.sizes + shape.rank, like->sizes))
      return make(ResultMemory::Like, like->prototype);
  return make(ResultMemory::Dense);
}

FlashCall *Kernel::prepare(const FlashTensor *arguments, size_t count,
                           const Array *arrays, size_t numArrays,
                           const char *note, const FlashTensor *places,
                           const Destination *destinations,
                           std::vector<ResultMemory> &memories) {
  FlashCall *call = nullptr;
  check(flashCallCreate(handle, arrays->device, &call));
  std::unique_ptr<FlashCall, void (*)(FlashCall *)> owner(call,
                                                          flashCallDestroy);
  prepare(call, arguments, count, note, places);
  for (size_t i = 0; i < flashKernelGetNumResults(handle); ++i)
    memories.push_back(
        chooseMemory(call, i, arrays, numArrays, places, destinations));
  return owner.release();
}

std::vector<nb::object> Kernel::launchHere(const FlashTensor *arguments,
                                           size_t count, const Array *arrays,
                                           size_t numArrays, Torch &torch,
                                           const char *note,
                                           const FlashTensor *places,
                                           const Destination *destinations) {
  Borrowed call(*this, arrays->device);
  prepare(call, arguments, count, note, places);
  size_t numResults = flashKernelGetNumResults(handle);
  std::vector<nb::object> results;
  // The gradients of query, key, value, sink and as many arrays as functions
  // may read.
  void *addresses[28];
  if (numResults > std::size(addresses))
    raise(PyExc_ValueError, "the program has ", numResults, " results; up to ",
          std::size(addresses), " are possible on a GPU");
  for (size_t i = 0; i < numResults; ++i) {
    ResultMemory memory =
        chooseMemory(call, i, arrays, numArrays, places, destinations);
    if (memory.kind == ResultMemory::Given) {
      addresses[i] = memory.data;
      results.push_back(nb::borrow(memory.array));
      continue;
    }
    results.push_back(memory.allocate(torch, addresses[i], memory.array));
  }
  // PyTorch gives this memory to nobody before the stream has come by here.
  nb::object scratch;
  void *scratchAddress = nullptr;
  if (int64_t bytes = flashCallGetScratchBytes(call))
    scratch = torch.allocate(&bytes, 1, FLASH_I8, scratchAddress);
  check(flashCallLaunch(call, addresses, numResults, scratchAddress,
                        torch.getCurrentStream(arrays->device)),
        note);
  return results;
}
