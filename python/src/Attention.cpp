//===- Attention.cpp - The function of an attention variant ---------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attention.h"

#include "Places.h"
#include "flash/Support/HeadDim.h"

using namespace flash::python;
using flash::largestHeadDim;

/// Element i of offsets on the host.
static int64_t getOffset(const Array &offsets, int64_t i) {
  return offsets.element == FLASH_I32
             ? static_cast<const int32_t *>(offsets.data)[i]
             : static_cast<const int64_t *>(offsets.data)[i];
}

/// Element i of int32 on the host.
static int64_t getInt(const Array &array, int64_t i) {
  return static_cast<const int32_t *>(array.data)[i];
}

std::vector<PositionSizes> Attention::getSizes(const Arguments &arguments,
                                               int64_t numSequences) const {
  const Array &query = arguments.arrays[0], &key = arguments.arrays[1];
  PositionSizes sizes = {numSequences, getHeads(query, 0), getLength(query, 0),
                         getLength(key, 1)};
  if (packsQueries)
    sizes.queries = -1;
  if (keyRows != KeyRows::Batch)
    sizes.keys = -1;
  std::vector<PositionSizes> found = {sizes};
  // The device alone knows what offsets and lengths there are.
  if (!areSequences() || query.device >= 0)
    return found;
  for (int64_t b = 0; b < numSequences; ++b) {
    for (auto [offsets, length] :
         {std::pair(arguments.queryOffsets, &sizes.queries),
          {arguments.keyOffsets, &sizes.keys}})
      if (offsets)
        *length = getOffset(*offsets, b + 1) - getOffset(*offsets, b);
    if (arguments.keyLengths)
      sizes.keys = getInt(*arguments.keyLengths, b);
    found.push_back(sizes);
  }
  return found;
}

void Attention::checkOffsets(const Arguments &arguments, int side) const {
  const char *name = side ? "key_offsets" : "query_offsets";
  const Array &offsets =
      *(side ? arguments.keyOffsets : arguments.queryOffsets);
  const Array &rows = arguments.arrays[side];
  int64_t count = countSequences(arguments, side);
  if (count < 0)
    raise(PyExc_ValueError, name, " is ", offsets.describe(),
          "; expected where each sequence starts and the last one ends, "
          "which is a number more than there are sequences");
  int64_t before = 0;
  for (int64_t i = 0; rows.device < 0 && i <= count; ++i) {
    int64_t offset = getOffset(offsets, i);
    if (offset < before || offset > rows.sizes[0])
      raise(PyExc_ValueError, name, "[", i, "] is ", offset,
            offset < before && i ? ", after " + std::to_string(before) : "",
            "; offsets do not decrease and are from 0 to ", rows.sizes[0],
            ", the rows of ", side ? "key" : "query");
    before = offset;
  }
}

void Attention::checkKeyLengths(const Arguments &arguments,
                                int64_t numSequences) const {
  const Array &lengths = *arguments.keyLengths, &key = arguments.arrays[1];
  if (lengths.sizes[0] != numSequences)
    raise(PyExc_ValueError, "key_lengths is ", lengths.describe(),
          "; expected one for each of the ", numSequences, " sequences");
  int64_t room = getLength(key, 1);
  if (arguments.pageTable)
    room *= arguments.pageTable->sizes[1];
  for (int64_t b = 0; key.device < 0 && b < numSequences; ++b)
    if (int64_t length = getInt(lengths, b); length < 0 || length > room)
      raise(PyExc_ValueError, "key_lengths[", b, "] is ", length,
            "; lengths are from 0 to ", room, ", the rows that ",
            arguments.pageTable ? "page_table has room for" : "key has");
}

void Attention::checkPages(const Arguments &arguments) const {
  const Array &table = *arguments.pageTable, &key = arguments.arrays[1];
  int64_t pages = key.sizes[0], page = getLength(key, 1),
          columns = table.sizes[1];
  if (pages == 0 && columns > 0 && table.sizes[0] > 0)
    raise(PyExc_ValueError, "page_table is ", table.describe(),
          ", and key has no pages");
  for (int64_t b = 0; key.device < 0 && b < table.sizes[0]; ++b)
    for (int64_t i = 0; i * page < getInt(*arguments.keyLengths, b); ++i)
      if (int64_t at = getInt(table, b * columns + i); at < 0 || at >= pages)
        raise(PyExc_ValueError, "page_table[", b, ", ", i, "] is ", at,
              ", of a page in which there are keys; such pages are from 0 to ",
              pages - 1);
}

int64_t Attention::checkSequences(const Arguments &arguments) const {
  const Array &query = arguments.arrays[0];
  if (!areSequences())
    return query.rank == 4 ? query.sizes[0] : 1;
  for (int side : {0, 1})
    if (packs(side))
      checkOffsets(arguments, side);
  int64_t queries = countSequences(arguments, 0),
          keys = countSequences(arguments, 1);
  if (queries != keys)
    raise(PyExc_ValueError, "queries are of ", queries,
          " sequences and keys of ", keys,
          "; offsets have a number more than there are sequences, page_table a "
          "row for each, and what is not packed has a batch for each");
  if (arguments.keyLengths)
    checkKeyLengths(arguments, queries);
  if (arguments.pageTable)
    checkPages(arguments);
  return queries;
}

static void checkPlace(const char *name, const Array &array,
                       const Array &query) {
  if (array.device != query.device)
    raise(PyExc_ValueError, name, " is on ", array.describeDevice(),
          ", query on ", query.describeDevice(),
          "; they must be on one device");
}

/// Head dimensions of kernels are multiples of it.
static constexpr int64_t dimStep = 8;

/// Kernels for GPUs copy so many bytes at a time.
static constexpr int64_t alignment = 16;

static void checkStrides(const char *name, const Array &array) {
  int64_t bytes = getBytes(array.element);
  if (array.strides[array.rank - 1] != 1)
    raise(PyExc_ValueError, name, " has stride ", array.strides[array.rank - 1],
          " in its last dimension, which must be contiguous (1)");
  for (int d = 0; d + 1 < array.rank; ++d)
    if (array.strides[d] * bytes % alignment)
      raise(PyExc_ValueError, name, " has stride ", array.strides[d],
            " in dimension ", d, "; on a GPU it must be a multiple of ",
            alignment / bytes, " elements (", alignment, " bytes)");
  if (reinterpret_cast<uintptr_t>(array.data) % alignment)
    raise(PyExc_ValueError, name,
          " starts at an address that is not a multiple of ", alignment,
          " bytes, which a GPU needs");
}

/// Whether a kernel for GPUs takes these rows as they are.
static bool hasKernelStrides(const Array &array) {
  bool fits = array.strides[array.rank - 1] == 1 &&
              reinterpret_cast<uintptr_t>(array.data) % alignment == 0;
  for (int d = 0; d + 1 < array.rank; ++d)
    fits &= array.strides[d] > 0 &&
            array.strides[d] * getBytes(array.element) % alignment == 0;
  return fits;
}

/// A flash_mlir.Attention, and functions of other libraries' names, take none.
static constexpr char takesScales[] =
    "the function flash_mlir.attention takes one";

void Attention::checkAttention(const Array &query, const Array &key,
                               const Array &value) const {
  bool isFloat = query.element <= FLASH_F64;
  if (query.element == FLASH_F8E4M3FN)
    raise(PyExc_TypeError, "query is ", query.describe(),
          ", and query_scale, by which it is dequantized, is missing; ",
          takesScales);
  if (!isFloat || (query.element == FLASH_F64 && query.device >= 0))
    raise(PyExc_TypeError, "query is ", query.describe(),
          "; float16, bfloat16 and float32 are possible",
          isFloat ? ", and float64 on the CPU, for checks" : "");
  checkRank(0, "query", query, query);
  for (auto [name, array] : {std::pair("key", &key), {"value", &value}}) {
    checkPlace(name, *array, query);
    if (array->element == FLASH_F8E4M3FN || array->hasType(FLASH_I8))
      raise(PyExc_TypeError, name, " is ", array->describe(), ", and ", name,
            "_scale, by which it is dequantized, is missing; ", takesScales);
    if (!array->hasType(query.element))
      raise(PyExc_TypeError, name, " is ", array->describe(), ", query ",
            query.describe(), "; the dtypes must agree: cast ", name,
            array->isTorch ? " by .to(query.dtype)"
                           : " by .astype(query.dtype)",
            ", or all of them, as torch.autocast does");
    checkRank(1, name, *array, query);
    // Offsets and tables have a say in the others.
    const Array &of = areSequences() ? key : query;
    if (array->rank == 4 && array->sizes[0] != of.sizes[0])
      raise(PyExc_ValueError, name, " is ", array->describe(),
            areSequences() ? ", key " : ", query ", of.describe(), "; the ",
            isInPages(1) ? "numbers of pages" : "batch sizes", " must agree");
  }
  int64_t queryHeads = getHeads(query, 0), keyHeads = getHeads(key, 1);
  if (getHeads(value, 1) != keyHeads)
    raise(PyExc_ValueError, "value has ", getHeads(value, 1),
          " heads, key has ", keyHeads, "; they must agree");
  if (keyHeads ? queryHeads % keyHeads : queryHeads)
    raise(PyExc_ValueError, "query has ", queryHeads, " heads, key has ",
          keyHeads, "; the former must be a multiple of the latter");
  if (getLength(value, 1) != getLength(key, 1))
    raise(PyExc_ValueError, "value has length ", getLength(value, 1),
          ", key has ", getLength(key, 1), "; they must agree");
  if (key.sizes[key.rank - 1] != query.sizes[query.rank - 1])
    raise(PyExc_ValueError, "key has head dimension ", key.sizes[key.rank - 1],
          ", query has ", query.sizes[query.rank - 1], "; they must agree");
  for (auto [name, array] :
       {std::pair("query", &query), {"key", &key}, {"value", &value}}) {
    int64_t size = array->sizes[array->rank - 1];
    if (size < 1 || size > largestHeadDim)
      raise(PyExc_ValueError, name, " has head dimension ", size, "; 1 to ",
            largestHeadDim, " are possible");
    if (isInPages(1) && size % dimStep)
      raise(PyExc_ValueError, name, " has head dimension ", size,
            "; with page_table multiples of ", dimStep,
            " are possible, as pages are not copied to be padded");
    // What is padded is copied.
    if (array->device >= 0 && size % dimStep == 0)
      checkStrides(name, *array);
  }
}

void Attention::checkRank(int operand, const char *name, const Array &array,
                          const Array &query) const {
  const char *offsets = operand ? "key_offsets" : "query_offsets";
  if (isInPages(operand)) {
    if (array.rank != 4)
      raise(PyExc_ValueError, name, " is ", array.describe(),
            "; with page_table it is (pages, rows of a page, heads, head "
            "dimension)");
  } else if (packs(operand)) {
    if (array.rank != 3)
      raise(PyExc_ValueError, name, " is ", array.describe(), "; with ",
            offsets, " it is (rows of all sequences, heads, head dimension)");
  } else if (areSequences()) {
    if (array.rank != 4)
      raise(PyExc_ValueError, name, " is ", array.describe(),
            "; expected (sequences, heads, length, head dimension), or ",
            offsets, " beside it");
  } else if (operand ? array.rank != query.rank
                     : array.rank != 3 && array.rank != 4) {
    if (operand)
      raise(PyExc_ValueError, name, " is ", array.describe(), ", query ",
            query.describe(), "; the ranks must agree");
    raise(PyExc_ValueError, "query is ", query.describe(),
          "; expected (batch, heads, length, head dimension) or the last three "
          "of these");
  }
}

void Attention::checkCapture(const Capture &capture, const Array &array,
                             const Array &query,
                             const std::vector<PositionSizes> &sizes) const {
  const char *name = capture.name.c_str();
  checkPlace(name, array, query);
  if (array.element != capture.element || array.isBool != capture.isBool ||
      array.isUnsigned != capture.isUnsigned || array.rank != capture.rank)
    raise(PyExc_ValueError, name, " is ", array.describe(),
          ", which is not what it was when the function was traced");
  if (array.device >= 0 && !array.isAligned())
    raise(PyExc_ValueError, name,
          " starts at an address that is no multiple of "
          "its elements' size, which a GPU needs");
  for (const IndexRange &range : capture.ranges)
    for (const PositionSizes &each : sizes) {
      auto found = range.evaluate(each);
      if (!found)
        continue;
      auto [lo, hi] = *found;
      int64_t size = array.sizes[range.dimension];
      bool isOfAll = &each == sizes.data();
      // A negative constant counts from the end.
      if (hi < size && lo >= (range.isConstant() ? -size : 0)) {
        if (isOfAll)
          break;
        continue;
      }
      if (range.isConstant())
        raise(PyExc_ValueError, name, " has size ", size, " in dimension ",
              range.dimension, ", where it is indexed with ", lo);
      std::string sequence;
      if (!isOfAll)
        sequence = " in sequence " + std::to_string(&each - sizes.data() - 1);
      raise(PyExc_ValueError, name, " has size ", size, " in dimension ",
            range.dimension, ", where ", range.text, " goes from ", lo, " to ",
            hi, sequence, "; that must be in range also where it is hidden");
    }
}

int64_t Attention::countSequences(const Arguments &arguments,
                                  int operand) const {
  if (isInPages(operand))
    return arguments.pageTable->sizes[0];
  const Array *offsets =
      operand ? arguments.keyOffsets : arguments.queryOffsets;
  return offsets ? offsets->sizes[0] - 1 : arguments.arrays[operand].sizes[0];
}

int64_t Attention::getMeanLength(const Arguments &arguments,
                                 int operand) const {
  int64_t length = arguments.arrays[operand].sizes[2];
  if (isInPages(operand))
    return length * arguments.pageTable->sizes[1];
  if (!packs(operand))
    return length;
  int64_t count = std::max<int64_t>(countSequences(arguments, operand), 1);
  return (length + count - 1) / count;
}

bool Attention::areShort(const Arguments &arguments) const {
  return packsQueries && getMeanLength(arguments, 0) <= mostShortRows;
}

bool Attention::haveClasses(const Arguments &arguments) const {
  if (arguments.arrays[0].device < 0)
    return !packs(0) && !packs(1);
  return packs(0) ? areShort(arguments) : !packs(1);
}

Attention::KernelSizes
Attention::getKernelSizes(const Arguments &arguments) const {
  const Array &query = arguments.arrays[0], &key = arguments.arrays[1];
  int rank = query.rank;
  bool onDevice = query.device >= 0;
  if (!haveClasses(arguments))
    return onDevice ? KernelSizes{query.sizes[1], key.sizes[1]} : KernelSizes{};
  if (areSequences() && !onDevice)
    return {0, 0, 0, flashGetCpuLength(getMeanLength(arguments, 0)),
            flashGetCpuLength(getMeanLength(arguments, 1))};
  if (areSequences())
    return {query.sizes[1], key.sizes[1],
            flashGetSizeClass(countSequences(arguments, 0)),
            flashGetSizeClass(getMeanLength(arguments, 0)),
            flashGetSizeClass(getMeanLength(arguments, 1))};
  if (!onDevice)
    return {0, 0, 0, flashGetCpuLength(query.sizes[rank - 2]),
            flashGetCpuLength(key.sizes[rank - 2])};
  return {query.sizes[rank - 3], key.sizes[rank - 3],
          flashGetSizeClass(rank == 4 ? query.sizes[0] : 1),
          flashGetSizeClass(query.sizes[rank - 2]),
          flashGetSizeClass(key.sizes[rank - 2])};
}

Attention::Specialization
Attention::getSpecialization(const Arguments &arguments) const {
  const Array &query = arguments.arrays[0];
  return {query.element,      areSequences() ? 4 : query.rank,
          query.device,       arguments.headDim,
          arguments.valueDim, getKernelSizes(arguments)};
}

template <typename Compile>
Kernel &Attention::getKernel(std::vector<KnownKernel> &known,
                             const Specialization &wanted,
                             const Arguments &arguments,
                             Compile compile) const {
  for (KnownKernel &each : known)
    if (each.specialization == wanted) {
      // The next call is probably alike.
      std::swap(each, known.front());
      return *known.front().kernel;
    }
  nb::list shapes;
  for (int i = 0; i < 3; ++i) {
    nb::list shape;
    const Array &array = arguments.arrays[i];
    std::vector<int64_t> sizes(array.sizes, array.sizes + array.rank);
    // Sequences of the mean length stand for packed rows; long sequences have a
    // kernel for all. Pages stay what they are: of them the table, whose
    // sizes follow, says the rest.
    if (areSequences()) {
      bool isOpen = !haveClasses(arguments);
      sizes[0] = isOpen ? FLASH_DYNAMIC : countSequences(arguments, i);
      if (!isInPages(i))
        sizes[2] = isOpen ? FLASH_DYNAMIC : getMeanLength(arguments, i);
    }
    for (int64_t size : sizes)
      shape.append(size);
    shapes.append(shape);
  }
  if (const Array *table = arguments.pageTable) {
    bool isOpen = !haveClasses(arguments);
    nb::list shape;
    for (int64_t size : {table->sizes[0], table->sizes[1]})
      shape.append(isOpen ? FLASH_DYNAMIC : size);
    shapes.append(shape);
  }
  nb::object owner = compile(shapes);
  auto *kernel = nb::cast<Kernel *>(owner);
  known.push_back({wanted, owner, kernel});
  return *kernel;
}

/// lengths and sink: one element for each of the rows.
static void checkVector(const char *name, const Array &array, bool hasType,
                        const char *type, int64_t size, const char *what,
                        const Array &query) {
  checkPlace(name, array, query);
  if (!hasType || array.rank != 1 || array.sizes[0] != size)
    raise(!hasType ? PyExc_TypeError : PyExc_ValueError, name, " is ",
          array.describe(), "; expected ", type, " of shape (", size,
          ",), one for each ", what);
}

static nb::object callOperands(const char *function, nb::handle object) {
  return nb::module_::import_("flash_mlir.operands").attr(function)(object);
}

/// The array as `cast` of flash_mlir.operands has it.
static nb::object castTo(nb::handle object, FlashElementType element) {
  return nb::module_::import_("flash_mlir.operands")
      .attr("cast")(object, getName(element));
}

/// Reads what stands in for an array.
static void replace(Array &array, const nb::object &object, const char *name,
                    nb::object &owner) {
  array = readDense(object, name, owner);
  array.setUnitStrides();
}

/// A kernel, and what it is launched with.
struct Attention::Launch {
  /// Of arguments that are adapted; `out` is what `canWrite` is true of, or
  /// null.
  Launch(Attention &attention, const Arguments &arguments, nb::handle out);
  const FlashTensor *getPlaces() const {
    return hasPlaces ? places.get() : nullptr;
  }

  Kernel &kernel;
  size_t count;
  FlashTensor tensors[maxArguments];
  Places places;
  bool hasPlaces;
};

static constexpr size_t numOperands = 3;
static constexpr const char *noteOfOperands =
    "; arguments 0, 1 and 2 are query, key and value";

Attention::Given::Given(nb::handle query, nb::handle key, nb::handle value,
                        nb::handle lengths, nb::handle sink,
                        nb::handle captured, nb::handle out)
    : all{query, key, value, lengths, sink} {
  size_t numCaptured = PyTuple_Size(captured.ptr());
  // Others are read one by one.
  if (count + numCaptured + 1 > std::size(all)) {
    count = 0;
    return;
  }
  for (size_t i = 0; i < numCaptured; ++i)
    all[count++] = PyTuple_GetItem(captured.ptr(), i);
  all[count++] = out;
}

nb::object Attention::repeat(Torch &torch, const Given &given, bool areRows,
                             Signature &signature) {
  if (!given.count || !signature.read(torch, given.all, given.count))
    return {};
  return repeatRead(torch, given, areRows, signature);
}

nb::object Attention::repeatRead(Torch &torch, const Given &given, bool areRows,
                                 const Signature &signature) {
  RepeatedCalls &calls = repeated[areRows];
  std::shared_ptr<RepeatedCall> call = calls.find(signature);
  if (!call) {
    if (!calls.wasSeen(signature) || !torch.currentStream.is_valid() ||
        torch.getCurrentDevice() != signature.getDevice())
      return {};
    call = record(given, areRows, signature);
    if (!call) {
      calls.refuse(signature);
      return {};
    }
    calls.add(call);
  }
  if (call->isInUse() || torch.getCurrentDevice() != signature.getDevice())
    return {};
  return call->launch(torch, signature, given.all);
}

std::shared_ptr<RepeatedCall> Attention::record(const Given &given,
                                                bool areRows,
                                                const Signature &signature) {
  const nb::handle *all = given.all;
  nb::handle out = all[given.count - 1];
  nb::list captured;
  for (size_t i = 5; i + 1 < given.count; ++i)
    captured.append(all[i]);
  Arguments arguments;
  arguments.areRows = areRows;
  Obstacle obstacle = read(arguments, all[0], all[1], all[2], all[3], all[4],
                           nb::tuple(captured));
  const Array *lengths = arguments.lengths, *sink = arguments.sink;
  if (obstacle.kind != Obstacle::None || (areRows && (packs(0) || packs(1))) ||
      (arguments.headDim | arguments.valueDim) % dimStep ||
      (lengths && !lengths->hasType(FLASH_I32)) ||
      (sink && !sink->hasType(FLASH_F32)) ||
      getHeads(arguments.arrays[0], 0) == 0 ||
      (!out.is_none() && !canWrite(out, arguments)))
    return nullptr;
  adapt(arguments);
  Launch launch(*this, arguments, out.is_none() ? nb::handle() : out);
  std::vector<ResultMemory> memories;
  FlashCall *call =
      launch.kernel.prepare(launch.tensors, launch.count, arguments.arrays,
                            numOperands, noteOfOperands, launch.getPlaces(),
                            launch.places.getDestinations(), memories);
  return std::make_shared<RepeatedCall>(signature, all, launch.count, call,
                                        memories, int(given.count) - 1,
                                        noteOfOperands);
}

nb::object Attention::call(nb::handle query, nb::handle key, nb::handle value,
                           nb::handle lengths, nb::handle sink,
                           nb::handle captured) {
  Torch *torch = Torch::get();
  bool isPlain = false;
  bool isTensor = torch && torch->isTensor(query);
  if (!isTensor || !torch->isWatched()) {
    Signature signature;
    if (isTensor)
      if (nb::object done =
              repeat(*torch, {query, key, value, lengths, sink, captured},
                     /*areRows=*/false, signature))
        return done;
    Arguments arguments;
    Obstacle obstacle =
        read(arguments, query, key, value, lengths, sink, captured);
    if (obstacle.kind == Obstacle::None)
      return execute(arguments, /*out=*/{}, signature);
    isPlain = obstacle.kind == Obstacle::Gradient;
  }
  // Of arrays of other libraries autograd and operators know nothing.
  auto convert = [&](nb::handle object) -> nb::object {
    if (object.is_none() || torch->isTensor(object))
      return nb::borrow(object);
    return callOperands("to_tensor", object);
  };
  size_t numCaptured = PyTuple_Size(captured.ptr());
  nb::object tensors = nb::borrow(captured);
  for (size_t i = 0; i < numCaptured; ++i)
    if (!torch->isTensor(PyTuple_GetItem(captured.ptr(), i))) {
      nb::list all;
      for (nb::handle each : captured)
        all.append(convert(each));
      tensors = nb::tuple(all);
      break;
    }
  return dispatch(convert(query), convert(key), convert(value),
                  convert(lengths), convert(sink), tensors, isPlain);
}

nb::object Attention::callRows(nb::handle query, nb::handle key,
                               nb::handle value, nb::handle lengths,
                               nb::handle sink, nb::handle captured,
                               nb::handle out) {
  Torch *torch = Torch::get();
  if (!torch || !torch->isTensor(query) || torch->isWatched() || packs(0) ||
      packs(1))
    return nb::none();
  Signature signature;
  if (nb::object done =
          repeat(*torch, {query, key, value, lengths, sink, captured, out},
                 /*areRows=*/true, signature))
    return done;
  Arguments arguments;
  arguments.areRows = true;
  Obstacle obstacle =
      read(arguments, query, key, value, lengths, sink, captured);
  bool isPadded = (arguments.headDim | arguments.valueDim) % dimStep != 0;
  if (obstacle.kind != Obstacle::None || isPadded ||
      arguments.arrays[0].device < 0 || getHeads(arguments.arrays[0], 0) == 0)
    return nb::none();
  if (out.is_none())
    return execute(arguments, /*out=*/{}, signature);
  return canWrite(out, arguments) ? execute(arguments, out, signature)
                                  : nb::none();
}

void Attention::readOrRaise(Arguments &arguments, nb::handle query,
                            nb::handle key, nb::handle value,
                            nb::handle lengths, nb::handle sink,
                            nb::handle captured) const {
  Obstacle obstacle =
      read(arguments, query, key, value, lengths, sink, captured);
  if (obstacle.kind == Obstacle::NoMemory)
    raiseNoMemory(obstacle.array, obstacle.name);
  if (obstacle.kind == Obstacle::Gradient)
    raise(PyExc_NotImplementedError, describeNoBackward(obstacle.name));
}

/// Where results on a device may start.
static constexpr uintptr_t resultAlignment = 256;

/// The array for a result, with its dimensions as attention has them.
static Array readOut(nb::handle object, bool areRows, nb::object &owner) {
  Array out = readArray(object, "out", owner);
  if (areRows && out.rank == 4)
    out.putHeadsFirst();
  return out;
}

bool Attention::canWrite(nb::handle object, const Arguments &arguments) const {
  const Array &query = arguments.arrays[0];
  Torch *torch = Torch::get();
  if (query.device < 0 || arguments.valueDim % dimStep ||
      getHeads(query, 0) == 0 || !torch->isTensor(object) ||
      (torch->isGradEnabled() && Torch::requiresGrad(object)))
    return false;
  nb::object owner;
  Array out = readOut(object, arguments.areRows, owner);
  if (!out.hasMemory || out.device != query.device ||
      !out.hasType(query.element) || out.rank != query.rank ||
      !std::equal(out.sizes, out.sizes + out.rank - 1, query.sizes) ||
      out.sizes[out.rank - 1] != arguments.valueDim ||
      reinterpret_cast<uintptr_t>(out.data) % resultAlignment)
    return false;
  // The last dimension is contiguous, and the others lie in any order. Strides
  // of 0, which are refused, are not expected of tensors without elements.
  int order[maxRank];
  int rank = out.rank;
  std::iota(order, order + rank, 0);
  std::stable_sort(order, order + rank - 1, [&](int left, int right) {
    return out.strides[left] > out.strides[right];
  });
  int64_t expected = 1;
  bool isDense = true;
  for (int i = rank; i-- > 0; expected *= out.sizes[order[i]])
    isDense &= out.sizes[order[i]] == 1 ||
               (out.strides[order[i]] == expected && expected > 0);
  return isDense;
}

static void writeInto(nb::handle out, nb::handle result) {
  nb::module_::import_("flash_mlir.operands").attr("write")(out, result);
}

nb::object Attention::callInto(nb::handle query, nb::handle key,
                               nb::handle value, nb::handle lengths,
                               nb::handle sink, nb::handle captured,
                               nb::handle out) {
  Torch *torch = Torch::get();
  if (torch && torch->isTensor(query) && !torch->isWatched()) {
    Signature signature;
    if (nb::object done =
            repeat(*torch, {query, key, value, lengths, sink, captured, out},
                   /*areRows=*/false, signature))
      return done;
    Arguments arguments;
    Obstacle obstacle =
        read(arguments, query, key, value, lengths, sink, captured);
    if (obstacle.kind == Obstacle::None && canWrite(out, arguments))
      return execute(arguments, out, signature);
  }
  nb::object results = call(query, key, value, lengths, sink, captured);
  writeInto(out, returnLse ? nb::object(results[0]) : results);
  if (!returnLse)
    return nb::borrow(out);
  return nb::make_tuple(out, results[1]);
}

nb::object Attention::run(nb::handle query, nb::handle key, nb::handle value,
                          nb::handle lengths, nb::handle sink,
                          nb::handle captured) {
  Arguments arguments;
  readOrRaise(arguments, query, key, value, lengths, sink, captured);
  return execute(arguments);
}

nb::tuple Attention::check(nb::handle query, nb::handle key, nb::handle value,
                           nb::handle lengths, nb::handle sink,
                           nb::handle captured) {
  Arguments arguments;
  readOrRaise(arguments, query, key, value, lengths, sink, captured);
  Specialization found = getSpecialization(arguments);
  return nb::make_tuple(getMlirName(found.element), found.rank, found.headDim,
                        found.valueDim, found.device);
}

void Attention::checkCount(size_t numCaptured) const {
  if (numCaptured != captures.size() || numCaptured > maxCaptures)
    raise(PyExc_ValueError, "the variant has ", captures.size(),
          " captured tensors, ", numCaptured, " are given, and up to ",
          maxCaptures, " are possible");
}

Attention::Obstacle
Attention::read(Arguments &arguments, nb::handle queryObject,
                nb::handle keyObject, nb::handle valueObject,
                nb::handle lengthsObject, nb::handle sinkObject,
                nb::handle captured) const {
  size_t numCaptured = PyTuple_Size(captured.ptr());
  checkCount(numCaptured);

  Array &query = arguments.arrays[0];
  query = readArray(queryObject, "query", arguments.owners[0]);
  bool onDevice = query.device >= 0;
  Torch *torch = Torch::get();
  bool isGradEnabled = torch && torch->isGradEnabled();
  Obstacle obstacle;
  // Null where there is no memory, and nothing else to look at either.
  auto read = [&](nb::handle object, const char *name) -> Array * {
    size_t &count = arguments.count;
    Array &array = arguments.arrays[count];
    // Pages become dense together with the order of their dimensions.
    bool mayHaveGaps = onDevice || (count < 3 && isInPages(count));
    auto *read = mayHaveGaps ? readArray : readDense;
    if (!onDevice || count > 0)
      array = read(object, name, arguments.owners[count]);
    if (!array.hasMemory) {
      // Of operands alone the rows are packed ones.
      if (array.isJagged && count > 2)
        raiseNoMemory(object, name);
      obstacle = {Obstacle::NoMemory, object, name};
      return nullptr;
    }
    if (isGradEnabled && obstacle.kind == Obstacle::None && array.isTorch &&
        torch->requiresGrad(object))
      obstacle = {Obstacle::Gradient, object, name};
    array.setUnitStrides();
    ++count;
    return &array;
  };
  // Of rank 4, as all is where rows come before heads.
  auto swapRows = [&](Array *array) {
    if (arguments.areRows && array->rank == 4)
      array->putHeadsFirst();
  };
  if (!read(queryObject, "query"))
    return obstacle;
  arguments.prototype = query.prototype;
  swapRows(&query);
  Array *key = read(keyObject, "key");
  if (!key)
    return obstacle;
  Array *value = read(valueObject, "value");
  if (!value)
    return obstacle;
  if (!isInPages(1)) {
    swapRows(key);
    swapRows(value);
  }
  checkAttention(query, *key, *value);
  arguments.headDim = query.sizes[query.rank - 1];
  arguments.valueDim = value->sizes[value->rank - 1];
  if (!lengthsObject.is_none()) {
    if (query.rank != 4 && !packsQueries)
      raise(PyExc_ValueError, "lengths are per batch, and query is ",
            query.describe(), ", without one");
    arguments.lengths = read(lengthsObject, "lengths");
    if (!arguments.lengths)
      return obstacle;
  }
  if (!sinkObject.is_none()) {
    arguments.sink = read(sinkObject, "sink");
    if (!arguments.sink)
      return obstacle;
  }
  Array *first = arguments.arrays + arguments.count;
  for (size_t i = 0; i < numCaptured; ++i)
    if (!read(PyTuple_GetItem(captured.ptr(), i), captures[i].name.c_str()))
      return obstacle;
  size_t numOfFunctions = numCaptured - getNumOfSequences();
  Array *next = first + numOfFunctions;
  if (packsQueries)
    arguments.queryOffsets = next++;
  if (keyRows == KeyRows::Packed)
    arguments.keyOffsets = next++;
  if (keyRows == KeyRows::Pages)
    arguments.pageTable = next++;
  if (keyRows == KeyRows::Pages || keyRows == KeyRows::Lengths)
    arguments.keyLengths = next++;

  for (size_t i = numOfFunctions; i < numCaptured; ++i)
    checkCapture(captures[i], first[i], query, {});
  int64_t numSequences = checkSequences(arguments);
  if (const Array *lengths = arguments.lengths) {
    bool isInteger = lengths->element >= FLASH_I8 &&
                     lengths->element <= FLASH_I64 && !lengths->isBool;
    checkVector("lengths", *lengths, isInteger, "integers", numSequences,
                areSequences() ? "sequence" : "batch", query);
  }
  if (const Array *sink = arguments.sink)
    checkVector("sink", *sink, sink->element <= FLASH_F64,
                "floating-point numbers", getHeads(query, 0), "query head",
                query);
  if (numOfFunctions == 0)
    return obstacle;
  std::vector<PositionSizes> sizes = getSizes(arguments, numSequences);
  for (size_t i = 0; i < numOfFunctions; ++i)
    checkCapture(captures[i], first[i], query, sizes);
  return obstacle;
}

/// Makes packed rows a batch of one, with the heads before the rows: a view on
/// a device, and a copy on the host. A log-sum-exp has its heads first as it
/// is.
static void toHeads(Array &array, const char *name, nb::object &owner) {
  if (array.device < 0 && array.rank == 3)
    return replace(array, callOperands("to_heads", owner), name, owner);
  for (int d = array.rank; d-- > 0;) {
    array.sizes[d + 1] = array.sizes[d];
    array.strides[d + 1] = array.strides[d];
  }
  array.sizes[0] = 1;
  if (++array.rank == 4) {
    std::swap(array.sizes[1], array.sizes[2]);
    std::swap(array.strides[1], array.strides[2]);
  }
  array.setUnitStrides();
  array.prototype = {};
}

/// The result on the host that was a batch of one, where its rows were packed:
/// with the rows before the heads.
static void toRows(nb::object &result) {
  result = callOperands("to_rows", result);
}

/// Calls a kernel where query is, the first of `operands`, before key and
/// value.
static std::vector<nb::object> runOrLaunch(Kernel &kernel,
                                           const FlashTensor *tensors,
                                           size_t count, const Array *operands,
                                           const FlashTensor *places,
                                           const Destination *destinations) {
  if (operands->device >= 0)
    return kernel.launch(tensors, count, operands, numOperands, noteOfOperands,
                         places, destinations);
  return kernel.run(tensors, count, *operands, noteOfOperands);
}

void Attention::adaptPages(Arguments &arguments) const {
  Array &key = arguments.arrays[1], &value = arguments.arrays[2];
  auto fits = [](const Array &array) {
    return array.device >= 0 || (array.isDense() && array.isAligned());
  };
  key.putHeadsFirst();
  value.putHeadsFirst();
  if (fits(key) && fits(value))
    return;
  // Of a cache there may be much more than the pages of these sequences.
  nb::object &ofKey = arguments.owners[1], &ofValue = arguments.owners[2],
             &ofTable = arguments.getOwner(arguments.pageTable);
  nb::object gathered =
      nb::module_::import_("flash_mlir.operands")
          .attr("gather_pages")(ofKey, ofValue, ofTable,
                                arguments.getOwner(arguments.keyLengths));
  replace(key, gathered[0], "key", ofKey);
  replace(value, gathered[1], "value", ofValue);
  replace(*arguments.pageTable, gathered[2], "page_table", ofTable);
}

void Attention::adapt(Arguments &arguments) const {
  Array *arrays = arguments.arrays;
  auto cast = [&](Array *array, FlashElementType element, const char *name) {
    if (array->element != element)
      replace(*array, castTo(arguments.getOwner(array), element), name,
              arguments.getOwner(array));
  };
  if (arguments.headDim % dimStep || arguments.valueDim % dimStep)
    for (auto [number, name] :
         {std::pair(0, "query"), {1, "key"}, {2, "value"}})
      replace(arrays[number], callOperands("pad", arguments.owners[number]),
              name, arguments.owners[number]);
  for (auto [number, name] : {std::pair(0, "query"), {1, "key"}, {2, "value"}})
    if (packs(number))
      toHeads(arrays[number], name, arguments.owners[number]);
  if (isInPages(1))
    adaptPages(arguments);
  if (Array *lengths = arguments.lengths;
      lengths && !lengths->hasType(FLASH_I32))
    replace(*lengths, callOperands("to_lengths", arguments.getOwner(lengths)),
            "lengths", arguments.getOwner(lengths));
  bool isReference = arrays[0].element == FLASH_F64;
  if (arguments.sink)
    cast(arguments.sink, isReference ? FLASH_F64 : FLASH_F32, "sink");
  if (!isReference)
    return;
  Array *first = arrays + arguments.count - captures.size();
  for (size_t i = 0; i < captures.size(); ++i)
    if (first[i].element <= FLASH_F32)
      cast(first + i, FLASH_F64, captures[i].name.c_str());
}

/// A result without the padding of its last dimension.
static void cut(nb::object &result, int64_t dim) {
  if (dim % dimStep)
    result =
        nb::module_::import_("flash_mlir.operands").attr("cut")(result, dim);
}

Kernel &Attention::findKernel(const Arguments &arguments) {
  Specialization wanted = getSpecialization(arguments);
  return getKernel(kernels, wanted, arguments, [&](const nb::list &shapes) {
    return compile(getMlirName(wanted.element), wanted.rank, wanted.headDim,
                   wanted.valueDim, wanted.device, shapes);
  });
}

void Attention::prepare(nb::handle query, nb::handle key, nb::handle value,
                        nb::handle lengths, nb::handle sink,
                        nb::handle captured) {
  Torch *torch = Torch::get();
  if (torch && torch->isTensor(query) && torch->isWatched())
    return;
  Arguments arguments;
  Obstacle obstacle =
      read(arguments, query, key, value, lengths, sink, captured);
  if (obstacle.kind == Obstacle::NoMemory || packs(0) || packs(1) ||
      getHeads(arguments.arrays[0], 0) == 0)
    return;
  // Sizes are all that counts of what `adapt` makes.
  if (isInPages(1)) {
    arguments.arrays[1].putHeadsFirst();
    arguments.arrays[2].putHeadsFirst();
  }
  findKernel(arguments);
}

Attention::Launch::Launch(Attention &attention, const Arguments &arguments,
                          nb::handle out)
    : kernel(attention.findKernel(arguments)),
      count(arguments.count - attention.numOfGradients) {
  bool packsQueries = attention.packsQueries;
  for (size_t i = 0; i < count; ++i)
    tensors[i] = arguments.arrays[i].getTensor();
  const Array &query = arguments.arrays[0], &value = arguments.arrays[2];
  hasPlaces = packsQueries || arguments.areRows || isReordered(query) || out;
  if (hasPlaces) {
    int64_t sizes[maxRank];
    std::copy_n(query.sizes, query.rank, sizes);
    sizes[query.rank - 1] = value.sizes[query.rank - 1];
    nb::handle like;
    if (arguments.headDim == sizes[query.rank - 1] &&
        arguments.valueDim == sizes[query.rank - 1])
      like = arguments.prototype;
    for (int rank = query.rank; rank >= query.rank - attention.returnLse;
         --rank)
      if (out && rank == query.rank) {
        nb::object owner;
        Array array = readOut(out, arguments.areRows, owner);
        array.setUnitStrides();
        if (packsQueries)
          toHeads(array, "out", owner);
        places.addGiven(array, out);
      } else if (packsQueries)
        places.addPacked(sizes, rank, like);
      else if (arguments.areRows && rank == query.rank)
        places.addRows(sizes, like);
      else
        places.add(sizes, rank, rank == query.rank ? &query : nullptr);
  }
}

nb::object Attention::execute(Arguments &arguments, nb::handle out,
                              const Signature &signature) {
  nb::object results = execute(arguments, out);
  if (signature.isRead())
    repeated[arguments.areRows].note(signature);
  return results;
}

nb::object Attention::execute(Arguments &arguments, nb::handle out) {
  // Without a query head there is no kernel.
  if (getHeads(arguments.arrays[0], 0) == 0) {
    nb::object results =
        nb::module_::import_("flash_mlir.operands")
            .attr("attend_without_heads")(arguments.owners[0],
                                          arguments.valueDim, packsQueries);
    return returnLse ? results : nb::object(results[0]);
  }
  adapt(arguments);
  const Array &query = arguments.arrays[0];
  Launch launch(*this, arguments, out);
  std::vector<nb::object> results =
      runOrLaunch(launch.kernel, launch.tensors, launch.count, arguments.arrays,
                  launch.getPlaces(), launch.places.getDestinations());
  cut(results[0], arguments.valueDim);
  if (packsQueries && query.device < 0)
    for (nb::object &result : results)
      toRows(result);
  if (out && !results[0].is(out)) {
    writeInto(out, results[0]);
    results[0] = nb::borrow(out);
  }
  if (!returnLse)
    return std::move(results[0]);
  return nb::make_tuple(results[0], results[1]);
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

/// Reads a result of the attention, or the gradient of one; `expected` has its
/// device, type and sizes.
static Array readResult(nb::handle object, const char *name,
                        const Array &expected, bool isGradEnabled,
                        nb::object &owner) {
  auto *read = expected.device >= 0 ? readArray : readDense;
  Array array = read(object, name, owner);
  if (!array.hasMemory)
    raiseNoMemory(object, name);
  if (isGradEnabled && array.isTorch && Torch::requiresGrad(object))
    raise(PyExc_NotImplementedError, describeNoBackward(name));
  checkPlace(name, array, expected);
  if (!array.hasType(expected.element))
    raise(PyExc_TypeError, name, " is ", array.describeType(), "; expected ",
          expected.describeType());
  if (array.rank != expected.rank ||
      !std::equal(array.sizes, array.sizes + array.rank, expected.sizes))
    raise(PyExc_ValueError, name, " has the shape ", array.describeShape(),
          "; expected ", expected.describeShape());
  array.setUnitStrides();
  return array;
}

/// Makes a copy of an array on a device: autograd gives gradients with any
/// strides, of expanded ones 0.
static void copy(Array &array, const char *name, nb::object &owner) {
  nb::object copied = owner.attr(array.isDense() ? "clone" : "contiguous")();
  array = readArray(copied, name, owner);
  array.setUnitStrides();
}

std::vector<nb::object> Attention::differentiate(
    nb::handle queryObject, nb::handle key, nb::handle value,
    nb::handle outputObject, nb::handle lseObject, nb::handle outputGradObject,
    nb::handle lseGradObject, nb::handle lengths, nb::handle sink,
    nb::handle captured, std::vector<int> wrt) {
  Arguments arguments;
  readOrRaise(arguments, queryObject, key, value, lengths, sink, captured);
  const Array &query = arguments.arrays[0];
  FlashElementType elements[maxArguments];
  for (size_t i = 0; i < arguments.count; ++i)
    elements[i] = arguments.arrays[i].element;
  // As they are given.
  Array ofOutput = query, ofLse = query;
  ofOutput.sizes[query.rank - 1] = arguments.valueDim;
  ofLse.rank = query.rank - 1;
  if (packsQueries)
    std::swap(ofLse.sizes[0], ofLse.sizes[1]);
  adapt(arguments);
  Specialization wanted = getSpecialization(arguments);
  wanted.hasLseGrad = !lseGradObject.is_none();
  wanted.wrt = std::move(wrt);

  ofLse.element = query.element == FLASH_F64 ? FLASH_F64 : FLASH_F32;
  bool isGradEnabled = Torch::get() && Torch::get()->isGradEnabled();
  nb::object owners[4];
  Array output =
      readResult(outputObject, "output", ofOutput, isGradEnabled, owners[0]);
  Array lse = readResult(lseObject, "lse", ofLse, isGradEnabled, owners[1]);
  Array outputGrad = readResult(outputGradObject, "output_grad", ofOutput,
                                isGradEnabled, owners[2]);
  Array lseGrad;
  if (wanted.hasLseGrad)
    lseGrad =
        readResult(lseGradObject, "lse_grad", ofLse, isGradEnabled, owners[3]);
  if (wanted.valueDim % dimStep) {
    replace(output, callOperands("pad", owners[0]), "output", owners[0]);
    replace(outputGrad, callOperands("pad", owners[2]), "output_grad",
            owners[2]);
  }
  if (query.device >= 0) {
    if (!hasKernelStrides(output))
      copy(output, "output", owners[0]);
    if (!hasKernelStrides(outputGrad))
      copy(outputGrad, "output_grad", owners[2]);
    if (wanted.hasLseGrad && !lseGrad.isDense())
      copy(lseGrad, "lse_grad", owners[3]);
  }
  if (packsQueries) {
    toHeads(output, "output", owners[0]);
    toHeads(lse, "lse", owners[1]);
    toHeads(outputGrad, "output_grad", owners[2]);
    if (wanted.hasLseGrad)
      toHeads(lseGrad, "lse_grad", owners[3]);
  }

  // Of the captured tensors, the functions' come first.
  size_t numOfFunctions =
      captures.size() - numOfPlan - numOfGradients - getNumOfSequences();
  const Array *first = arguments.arrays + arguments.count - captures.size();
  for (int number : wanted.wrt) {
    if (number < 0 || size_t(number) >= numOfFunctions)
      raise(PyExc_ValueError, "wrt has the number ", number,
            ", and the functions read ", numOfFunctions, " arrays");
    if (first[number].isBool || first[number].isUnsigned ||
        first[number].element > FLASH_F64 ||
        (first[number].element == FLASH_F64 && query.element != FLASH_F64))
      raise(PyExc_TypeError, captures[number].name, " is ",
            first[number].describeType(),
            "; there are gradients of float16, bfloat16 and float32");
  }
  if (query.sizes[query.rank - 3] == 0) {
    std::vector<nb::object> zeros;
    auto add = [&](nb::handle of) {
      zeros.push_back(callOperands("make_zeros", of));
    };
    for (nb::handle operand : {queryObject, key, value})
      add(operand);
    if (!sink.is_none())
      add(sink);
    for (int number : wanted.wrt)
      add(PyTuple_GetItem(captured.ptr(), number));
    return zeros;
  }
  Kernel &kernel = getKernel(
      gradientKernels, wanted, arguments, [&](const nb::list &shapes) {
        nb::list numbers;
        for (int number : wanted.wrt)
          numbers.append(number);
        return compileGradients(getMlirName(wanted.element), wanted.rank,
                                wanted.headDim, wanted.valueDim, wanted.device,
                                shapes, wanted.hasLseGrad, nb::tuple(numbers));
      });

  FlashTensor tensors[maxArguments + 4];
  size_t count = 0;
  auto append = [&](const Array *begin, const Array *end) {
    for (; begin != end; ++begin)
      tensors[count++] = begin->getTensor();
  };
  const Array *end = arguments.arrays + arguments.count;
  append(arguments.arrays, arguments.arrays + 3);
  for (const Array *array : {&output, &lse, &outputGrad})
    append(array, array + 1);
  append(arguments.arrays + 3, first + numOfFunctions);
  append(&lseGrad, &lseGrad + wanted.hasLseGrad);
  append(end - numOfGradients - getNumOfSequences(), end);
  // Gradients are like what they are of.
  Places places;
  bool hasPlaces = false;
  for (int i = 0; i < 3; ++i) {
    const Array &operand = arguments.arrays[i];
    hasPlaces |= packs(i) || isReordered(operand);
    if (packs(i))
      places.addPacked(operand.sizes, operand.rank);
    else
      places.add(operand.sizes, operand.rank, &operand);
  }
  if (arguments.sink)
    places.add(arguments.sink->sizes, 1);
  for (int number : wanted.wrt)
    places.add(first[number].sizes, first[number].rank);
  std::vector<nb::object> results =
      runOrLaunch(kernel, tensors, count, arguments.arrays,
                  hasPlaces ? places.get() : nullptr, places.getDestinations());
  cut(results[0], wanted.headDim);
  cut(results[1], wanted.headDim);
  cut(results[2], wanted.valueDim);
  for (int i = 0; i < 3 && query.device < 0; ++i)
    if (packs(i))
      toRows(results[i]);
  // The others have the types that were given.
  auto cast = [&](nb::object &result, const Array *array) {
    FlashElementType element = elements[array - arguments.arrays];
    if (array->element != element)
      result = castTo(result, element);
  };
  size_t next = 3;
  if (arguments.sink)
    cast(results[next++], arguments.sink);
  for (int number : wanted.wrt)
    cast(results[next++], first + number);
  return results;
}
