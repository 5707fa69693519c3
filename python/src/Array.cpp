//===- Array.cpp - NumPy arrays and PyTorch tensors as the C library has them
//===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Array.h"

#include <algorithm>
#include <cstring>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

using namespace flash::python;

static std::string getTypeName(nb::handle object) {
  return nb::cast<std::string>(object.type().attr("__name__"));
}

static constexpr const char *names[] = {"float16", "bfloat16", "float32",
                                        "float64", "int8",     "int16",
                                        "int32",   "int64",    "float8_e4m3fn"};
static constexpr const char *mlirNames[] = {
    "f16", "bf16", "f32", "f64", "i8", "i16", "i32", "i64", "f8E4M3FN"};
static constexpr int64_t bytes[] = {2, 2, 4, 8, 1, 2, 4, 8, 1};

/// Integers with signs have types without.
static bool isInteger(int element) {
  return element >= FLASH_I8 && element <= FLASH_I64;
}

const char *flash::python::getName(FlashElementType element) {
  return names[element];
}

const char *flash::python::getMlirName(FlashElementType element) {
  return mlirNames[element];
}

int64_t flash::python::getBytes(FlashElementType element) {
  return bytes[element];
}

//===----------------------------------------------------------------------===//
// Array
//===----------------------------------------------------------------------===//

bool Array::isEmpty() const {
  return std::any_of(sizes, sizes + rank, [](int64_t n) { return n == 0; });
}

/// Whether strides are row-major where there is more than one element, or
/// everywhere.
static bool haveOrder(const Array &array, bool everywhere) {
  int64_t expected = 1;
  bool ordered = true;
  for (int d = array.rank; d-- > 0; expected *= array.sizes[d])
    ordered &=
        (array.sizes[d] <= 1 && !everywhere) || array.strides[d] == expected;
  return ordered;
}

bool Array::isDense() const {
  return haveOrder(*this, /*everywhere=*/false) || isEmpty();
}

bool Array::isRowMajor() const { return haveOrder(*this, /*everywhere=*/true); }

bool Array::isAligned() const {
  return reinterpret_cast<uintptr_t>(data) % getBytes(element) == 0;
}

void Array::setUnitStrides() {
  for (int d = rank - 1; d-- > 0;)
    if (sizes[d] <= 1)
      strides[d] = std::max<int64_t>(sizes[d + 1], 1) * strides[d + 1];
}

void Array::putHeadsFirst() {
  std::swap(sizes[1], sizes[2]);
  std::swap(strides[1], strides[2]);
  setUnitStrides();
  prototype = {};
}

std::string Array::describe() const {
  return describeType() + " of shape " + describeShape();
}

std::string Array::describeType() const {
  return std::string(isUnsigned ? "u" : "") +
         (isBool ? "bool" : getName(element));
}

std::string Array::describeShape() const {
  std::string text = "(";
  for (int d = 0; d < rank; ++d)
    text += (d ? ", " : "") + std::to_string(sizes[d]);
  return text + (rank == 1 ? ",)" : ")");
}

std::string Array::describeDevice() const {
  return device < 0 ? "the CPU" : "cuda:" + std::to_string(device);
}

//===----------------------------------------------------------------------===//
// PyTorch
//===----------------------------------------------------------------------===//

/// An attribute, or a method's result, by an interned name.
static nb::object getAttribute(nb::handle object, PyObject *name) {
  return steal(PyObject_GetAttr(object.ptr(), name));
}
static nb::object callMethod(nb::handle object, PyObject *name) {
  // As PyObject_CallMethodNoArgs, which is not in the stable ABI.
  PyObject *self = object.ptr();
  return steal(PyObject_VectorcallMethod(name, &self, 1, nullptr));
}

static PyObject *intern(const char *name) {
  return PyUnicode_InternFromString(name);
}

static DLDataType getDtype(FlashElementType element) {
  uint8_t code = element == FLASH_BF16       ? dlBfloat
                 : element == FLASH_F8E4M3FN ? dlFloat8E4M3FN
                 : element <= FLASH_F64      ? dlFloat
                                             : dlInt;
  return {code, uint8_t(8 * bytes[element]), 1};
}

/// The interface in the type of tensors; null if it is not there, or has
/// another layout.
static const ExchangeApi *findExchange(nb::handle type) {
  // The second name is that of DLPack 1.2.
  for (const char *name :
       {"__dlpack_c_exchange_api__", "__c_dlpack_exchange_api__"}) {
    if (!nb::hasattr(type, name))
      continue;
    nb::object capsule = type.attr(name);
    auto *api = static_cast<const ExchangeApi *>(
        PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
    if (api && api->version.major == 1)
      return api;
    PyErr_Clear();
  }
  return nullptr;
}

Torch *Torch::get() {
  // Never destroyed: the interpreter may be gone by then.
  static Torch *torch = nullptr;
  if (torch)
    return torch;
  PyObject *module = PyImport_GetModule(nb::str("torch").ptr());
  if (!module)
    return nullptr;
  nb::object imported = nb::steal(module);
  // While PyTorch is being imported, it is there but not complete.
  if (!nb::hasattr(imported, "Tensor") || !nb::hasattr(imported, "library"))
    return nullptr;
  auto *result = new Torch;
  result->tensorType = imported.attr("Tensor");
  result->empty = imported.attr("empty");
  result->emptyLike = imported.attr("empty_like");
  result->emptyStrided = imported.attr("empty_strided");
  result->boolType = imported.attr("bool");
  result->gradEnabled = imported.attr("is_grad_enabled");
  result->autocastEnabled = imported.attr("is_autocast_enabled");
  result->isNegated = result->tensorType.attr("is_neg");
  auto find = [](nb::handle object, const char *name) {
    return nb::object(nb::getattr(object, name, nb::none()));
  };
  result->parameterType = find(find(imported, "nn"), "Parameter");
  result->strided = find(imported, "strided");
  result->jagged = find(imported, "jagged");
  result->disabledDispatch = find(result->tensorType, "__torch_dispatch__");
  for (int i = 0; i < numElementTypes; ++i) {
    result->dtypes[i] = find(imported, names[i]);
    result->unsignedDtypes[i] =
        !isInteger(i) || i == FLASH_I64
            ? nb::none()
            : find(imported, ("u" + std::string(names[i])).c_str());
  }
  nb::object native = imported.attr("_C");
  result->countModes = find(native, "_len_torch_dispatch_stack");
  result->isTracing = find(native, "_is_tracing");
  result->forwardAd = find(find(imported, "autograd"), "forward_ad");
  // Builds for the CPU lack these.
  if (nb::hasattr(native, "_cuda_getCurrentRawStream")) {
    result->currentStream = native.attr("_cuda_getCurrentRawStream");
    result->currentDevice = native.attr("_cuda_getDevice");
    result->deviceGuard = imported.attr("cuda").attr("device");
  }
  result->exchange = findExchange(result->tensorType);
  return torch = result;
}

bool Torch::requiresGrad(nb::handle tensor) {
  static PyObject *name = intern("requires_grad");
  return getAttribute(tensor, name).ptr() == Py_True;
}

bool Torch::isWatched() const {
  static PyObject *level = intern("_current_level");
  if (!countModes.is_none() &&
      PyLong_AsLong(steal(PyObject_CallNoArgs(countModes.ptr())).ptr()) > 0)
    return true;
  if (!isTracing.is_none() &&
      steal(PyObject_CallNoArgs(isTracing.ptr())).ptr() == Py_True)
    return true;
  return !forwardAd.is_none() &&
         PyLong_AsLong(getAttribute(forwardAd, level).ptr()) >= 0;
}

/// A tensor that PyTorch has made, and its address.
static nb::object finish(const Torch &torch, PyObject *made, void *&address) {
  static PyObject *dataPtr = intern("data_ptr");
  nb::object tensor = steal(made);
  DLTensor read;
  if (torch.exchange && torch.exchange->readTensor &&
      torch.exchange->readTensor(tensor.ptr(), &read) == 0) {
    address = static_cast<char *>(read.data) + read.byteOffset;
    return tensor;
  }
  PyErr_Clear();
  address = PyLong_AsVoidPtr(callMethod(tensor, dataPtr).ptr());
  return tensor;
}

static nb::object makeTuple(const int64_t *numbers, int32_t count) {
  nb::object tuple = steal(PyTuple_New(count));
  for (int32_t i = 0; i < count; ++i)
    PyTuple_SetItem(tuple.ptr(), i, PyLong_FromLongLong(numbers[i]));
  return tuple;
}

/// The names of the last arguments of functions that make tensors.
static PyObject *getNames() {
  static PyObject *names = PyTuple_Pack(2, intern("dtype"), intern("device"));
  return names;
}

nb::object Torch::allocateLike(nb::handle tensor, void *&address) {
  PyObject *prototype = tensor.ptr();
  return finish(*this,
                PyObject_Vectorcall(emptyLike.ptr(), &prototype, 1, nullptr),
                address);
}

nb::object Torch::allocate(const int64_t *sizes, int32_t rank,
                           FlashElementType element, void *&address) {
  static PyObject *cuda = intern("cuda");
  nb::object shape = makeTuple(sizes, rank);
  PyObject *arguments[] = {shape.ptr(), dtypes[element].ptr(), cuda};
  return finish(*this,
                PyObject_Vectorcall(empty.ptr(), arguments, 1, getNames()),
                address);
}

nb::object Torch::allocateStrided(const FlashTensor &shape,
                                  FlashElementType element, void *&address) {
  static PyObject *cuda = intern("cuda");
  nb::object sizes = makeTuple(shape.sizes, shape.rank);
  nb::object strides = makeTuple(shape.strides, shape.rank);
  PyObject *arguments[] = {sizes.ptr(), strides.ptr(), dtypes[element].ptr(),
                           cuda};
  return finish(
      *this, PyObject_Vectorcall(emptyStrided.ptr(), arguments, 2, getNames()),
      address);
}

void *Torch::getCurrentStream(int device) {
  void *stream = nullptr;
  if (!exchange)
    return PyLong_AsVoidPtr(nb::object(currentStream(device)).ptr());
  if (exchange->getCurrentStream(dlCuda, device, &stream))
    throw nb::python_error();
  return stream;
}

int Torch::getCurrentDevice() {
  return int(
      PyLong_AsLong(steal(PyObject_CallNoArgs(currentDevice.ptr())).ptr()));
}

bool Torch::isNegative(nb::handle tensor) const {
  PyObject *self = tensor.ptr();
  return steal(PyObject_Vectorcall(isNegated.ptr(), &self, 1, nullptr)).ptr() ==
         Py_True;
}

/// Reads by the exchange interface; false where it does not serve.
static bool readFast(const Torch &torch, nb::handle object, Array &array) {
  DLTensor tensor;
  // Tensors of other types may stand for what has no memory.
  if (!torch.exchange || !torch.exchange->readTensor || !torch.isPlain(object))
    return false;
  if (torch.exchange->readTensor(object.ptr(), &tensor)) {
    PyErr_Clear();
    return false;
  }
  if (tensor.rank > maxRank || tensor.dtype.lanes != 1 || !tensor.strides ||
      tensor.device.type < dlCpu || tensor.device.type > dlCudaHost)
    return false;
  array.isBool = tensor.dtype.code == dlBool;
  array.isUnsigned = tensor.dtype.code == dlUInt;
  int element = 0;
  for (; element < numElementTypes; ++element) {
    DLDataType known = getDtype(FlashElementType(element));
    bool isInteger = array.isBool || array.isUnsigned;
    if (known.bits == tensor.dtype.bits &&
        known.code == (isInteger ? dlInt : tensor.dtype.code))
      break;
  }
  // Integers have 64 bits at most, with a sign.
  if (element == numElementTypes || (array.isUnsigned && element == FLASH_I64))
    return false;
  array.element = FlashElementType(element);
  array.data = static_cast<char *>(tensor.data) + tensor.byteOffset;
  array.rank = tensor.rank;
  std::copy_n(tensor.sizes, tensor.rank, array.sizes);
  std::copy_n(tensor.strides, tensor.rank, array.strides);
  array.device = tensor.device.type == dlCuda ? tensor.device.id : -1;
  array.hasMemory = tensor.data || array.isEmpty();
  return true;
}

/// Copies a tuple of integers.
static int32_t readInts(nb::handle tuple, int64_t *values, const char *name) {
  Py_ssize_t count = PyTuple_Size(tuple.ptr());
  if (count > maxRank)
    raise(PyExc_ValueError, name, " has ", count, " dimensions; up to ",
          maxRank, " are possible");
  for (Py_ssize_t i = 0; i < count; ++i) {
    values[i] = PyLong_AsLongLong(PyTuple_GetItem(tuple.ptr(), i));
    if (values[i] == -1 && PyErr_Occurred())
      throw nb::python_error();
  }
  return int32_t(count);
}

static Array readTensor(Torch &torch, nb::handle object, const char *name) {
  static PyObject *shape = intern("shape"), *stride = intern("stride"),
                  *dtype = intern("dtype"), *dataPtr = intern("data_ptr"),
                  *getDevice = intern("get_device"),
                  *isCuda = intern("is_cuda"), *layout = intern("layout"),
                  *isNested = intern("is_nested"),
                  *deviceName = intern("device"),
                  *dispatch = intern("__torch_dispatch__");
  Array array;
  array.isTorch = true;
  if (readFast(torch, object, array))
    return array;
  array = Array();
  array.isTorch = true;
  if (!torch.strided.is_none()) {
    nb::object found = getAttribute(object, layout);
    bool nested = getAttribute(object, isNested).ptr() == Py_True;
    if (nested && found.is(torch.jagged)) {
      array.isJagged = true;
      array.hasMemory = false;
      return array;
    }
    if (nested || !found.is(torch.strided))
      raise(PyExc_TypeError, name, " is a ",
            nested ? "nested" : nb::str(found).c_str(),
            " tensor; a dense one is needed");
  }
  nb::object device = getAttribute(object, deviceName);
  nb::str deviceType = nb::str(device.attr("type"));
  bool isMeta = std::strcmp(deviceType.c_str(), "meta") == 0;
  bool isOnCuda = getAttribute(object, isCuda).ptr() == Py_True;
  if (!isMeta && !isOnCuda && std::strcmp(deviceType.c_str(), "cpu") != 0)
    raise(PyExc_TypeError, name, " is on the device ", nb::str(device).c_str(),
          "; the CPU and CUDA devices are possible");
  array.device =
      isOnCuda ? int(PyLong_AsLong(callMethod(object, getDevice).ptr())) : -1;
  nb::object type = getAttribute(object, dtype);
  int element = 0;
  while (element < numElementTypes && !type.is(torch.dtypes[element]) &&
         !type.is(torch.unsignedDtypes[element]))
    ++element;
  if (type.is(torch.boolType)) {
    array.isBool = true;
    element = FLASH_I8;
  }
  if (element == numElementTypes)
    raise(PyExc_TypeError, name, " has dtype ", nb::str(type).c_str(),
          "; float16, bfloat16, float32, float64, int8 to int64, uint8 to "
          "uint32, bool and float8_e4m3fn are possible");
  array.isUnsigned = type.is(torch.unsignedDtypes[element]);
  array.element = FlashElementType(element);
  array.hasMemory =
      !isMeta &&
      (torch.disabledDispatch.is_none() ||
       getAttribute(object.type(), dispatch).is(torch.disabledDispatch));
  nb::object sizes = getAttribute(object, shape);
  // Sizes and strides may be symbols there, which a look would make numbers.
  if (!array.hasMemory) {
    array.rank = int32_t(PyTuple_Size(sizes.ptr()));
    return array;
  }
  array.rank = readInts(sizes, array.sizes, name);
  readInts(callMethod(object, stride), array.strides, name);
  PyObject *self = object.ptr();
  PyObject *pointer = PyObject_VectorcallMethod(dataPtr, &self, 1, nullptr);
  if (!pointer) {
    // Such as tensors of vmap.
    if (!PyErr_ExceptionMatches(PyExc_RuntimeError))
      throw nb::python_error();
    PyErr_Clear();
  } else {
    array.data = PyLong_AsVoidPtr(nb::steal(pointer).ptr());
    if (PyErr_Occurred())
      throw nb::python_error();
  }
  array.hasMemory = array.data || (pointer && array.isEmpty());
  return array;
}

//===----------------------------------------------------------------------===//
// NumPy
//===----------------------------------------------------------------------===//

/// Divides strides in bytes.
static void setStrides(Array &array, const char *name) {
  for (int d = 0; d < array.rank; ++d) {
    // A stride that no element is at means nothing.
    if (array.sizes[d] > 1 && array.strides[d] % bytes[array.element])
      raise(PyExc_ValueError, name, ": the stride of dimension ", d, " is ",
            array.strides[d], " bytes, no multiple of an element's ",
            bytes[array.element]);
    array.strides[d] /= bytes[array.element];
  }
}

/// The element type for a format of the buffer protocol; false if there is
/// none.
static bool readFormat(const char *format, Py_ssize_t size, Array &array) {
  // Unaligned elements of this machine's byte order have such a sign.
  if (format && (format[0] == '=' || format[0] == '^'))
    ++format;
  if (!format || std::strlen(format) != 1)
    return false;
  switch (format[0]) {
  case 'e':
    array.element = FLASH_F16;
    return true;
  case 'f':
    array.element = FLASH_F32;
    return true;
  case 'd':
    array.element = FLASH_F64;
    return true;
  case '?':
    array.isBool = true;
    array.element = FLASH_I8;
    return true;
  case 'b':
  case 'h':
  case 'i':
  case 'l':
  case 'q':
  case 'B':
  case 'H':
  case 'I':
  case 'L':
  case 'Q':
    array.element = size == 1   ? FLASH_I8
                    : size == 2 ? FLASH_I16
                    : size == 4 ? FLASH_I32
                                : FLASH_I64;
    array.isUnsigned = format[0] < 'a';
    // Integers have 64 bits at most, with a sign.
    return !array.isUnsigned || array.element != FLASH_I64;
  default:
    return false;
  }
}

/// The array of a library that is neither, as NumPy has it: what DLPack calls a
/// producer, such as JAX's arrays.
static nb::object convert(nb::handle object, const char *name) {
  auto ask = [&](auto question) -> nb::object {
    try {
      return question();
    } catch (nb::python_error &error) {
      // Such as what jax.jit and jax.grad call functions with.
      nb::raise_from(error, PyExc_TypeError,
                     "%s is a %s, which gives no elements; what stands for an "
                     "array while a function is traced or transformed does not "
                     "either: call this with arrays, outside of jax.jit, "
                     "jax.grad and jax.vmap, or inside by jax.pure_callback, "
                     "which has no gradients",
                     name, getTypeName(object).c_str());
      throw nb::python_error();
    }
  };
  nb::object place = ask([&] { return object.attr("__dlpack_device__")(); });
  long type = PyLong_AsLong(nb::object(nb::int_(place[0])).ptr());
  if (type != dlCpu && type != dlCudaHost)
    raise(PyExc_TypeError, name, " is a ", getTypeName(object),
          " that is not on the CPU; ",
          type == dlCuda
              ? "on CUDA PyTorch's tensors are taken: torch.from_dlpack(array)"
              : "the CPU and CUDA devices are possible");
  nb::object numpy = nb::module_::import_("numpy");
  // DLPack as NumPy reads it has no bfloat16.
  bool hasOwn = nb::hasattr(object, "__array__");
  return ask(
      [&] { return numpy.attr(hasOwn ? "asarray" : "from_dlpack")(object); });
}

/// `owner` becomes what the memory belongs to.
static Array readNumpy(nb::handle object, const char *name, nb::object &owner) {
  Array array;
  Py_buffer buffer;
  if (PyObject_GetBuffer(object.ptr(), &buffer, PyBUF_STRIDES | PyBUF_FORMAT) ==
      0) {
    bool known = readFormat(buffer.format, buffer.itemsize, array) &&
                 buffer.ndim <= maxRank;
    array.data = buffer.buf;
    array.rank = buffer.ndim;
    for (int d = 0; known && d < buffer.ndim; ++d) {
      array.sizes[d] = buffer.shape[d];
      array.strides[d] = buffer.strides[d];
    }
    PyBuffer_Release(&buffer);
    if (known) {
      setStrides(array, name);
      return array;
    }
  }
  PyErr_Clear();
  // What torch.fx traces with stands for a tensor, and has every attribute.
  if (Torch::get() && nb::hasattr(object.type(), "__torch_function__")) {
    array = Array();
    array.hasMemory = false;
    return array;
  }
  // Types that NumPy does not know itself, such as ml_dtypes', have no buffers.
  if (!nb::hasattr(object, "__array_interface__")) {
    if (!nb::hasattr(object, "__dlpack__"))
      raise(PyExc_TypeError, name, " is a ", getTypeName(object),
            "; a NumPy array, a PyTorch tensor, or an array that has "
            "__dlpack__ is needed");
    owner = convert(object, name);
    return readNumpy(owner, name, owner);
  }
  nb::object dtype = object.attr("dtype");
  nb::str type = nb::str(dtype.attr("name"));
  if (!nb::cast<bool>(dtype.attr("isnative")))
    raise(PyExc_TypeError, name, " has dtype ", nb::str(dtype).c_str(),
          ", the byte order of another machine; convert it by "
          "astype(array.dtype.newbyteorder('='))");
  bool isBf16 = std::strcmp(type.c_str(), names[FLASH_BF16]) == 0;
  if (!isBf16 && std::strcmp(type.c_str(), names[FLASH_F8E4M3FN]) != 0)
    raise(PyExc_TypeError, name, " has dtype ", type.c_str(),
          "; float16, bfloat16 and float8_e4m3fn (of ml_dtypes), float32, "
          "float64, int8 to int64, uint8 to uint32 and bool are possible");
  array = Array();
  array.element = isBf16 ? FLASH_BF16 : FLASH_F8E4M3FN;
  nb::dict interface = nb::cast<nb::dict>(object.attr("__array_interface__"));
  array.data = PyLong_AsVoidPtr(nb::object(interface["data"][0]).ptr());
  array.rank = readInts(nb::object(interface["shape"]), array.sizes, name);
  readInts(nb::object(object.attr("strides")), array.strides, name);
  setStrides(array, name);
  return array;
}

Array flash::python::readArray(nb::handle object, const char *name,
                               nb::object &owner) {
  owner = nb::borrow(object);
  Torch *torch = Torch::get();
  if (!torch || !torch->isTensor(object))
    return readNumpy(object, name, owner);
  Array array = readTensor(*torch, object, name);
  // The memory holds the elements with the other sign. Complex numbers, which
  // can be conjugated like that, are no element type.
  if (array.hasMemory && torch->isNegative(object)) {
    owner = object.attr("resolve_neg")();
    array = readTensor(*torch, owner, name);
  }
  if (array.hasMemory && torch->isPlain(owner) && array.isRowMajor())
    array.prototype = owner;
  return array;
}

Array flash::python::readDense(nb::handle object, const char *name,
                               nb::object &owner) {
  Array array = readArray(object, name, owner);
  if (!array.hasMemory || (array.isDense() && array.isAligned()))
    return array;
  // PyTorch's "clone" keeps strides, and its "contiguous" copies nothing for
  // the sake of alignment.
  const char *copy = !array.isTorch    ? "copy"
                     : array.isDense() ? "clone"
                                       : "contiguous";
  nb::object copied = owner.attr(copy)();
  return readArray(copied, name, owner);
}

void flash::python::raiseNoMemory(nb::handle object, const char *name) {
  std::string type = getTypeName(object);
  if (!Torch::get()->isTensor(object))
    raise(PyExc_TypeError, name, " is a ", type,
          ", which stands for a tensor; the elements are needed here");
  if (nb::cast<bool>(object.attr("is_nested")))
    raise(PyExc_TypeError, name, " is a nested tensor; a dense one is needed");
  nb::object place = object.attr("device");
  std::string device = nb::str(place).c_str();
  raise(PyExc_ValueError, name, " is a ", type, " on the device ", device,
        " without memory: a kernel needs the elements, which it has none of "
        "(or its storage was freed)");
}

std::string flash::python::describeNoBackward(const std::string &what) {
  return what +
         " requires gradients, and this does not compute them; call it under "
         "torch.no_grad(), or detach() what it is given";
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

/// A tensor on the host that owns the buffer.
static nb::object makeTensor(const ExchangeApi &exchange, FlashBuffer *buffer,
                             FlashElementType element) {
  FlashTensor tensor = flashBufferGetTensor(buffer);
  auto *managed = new DLManagedTensor{};
  managed->version = exchange.version;
  managed->context = buffer;
  // Any thread may call it.
  managed->destroy = [](DLManagedTensor *owned) {
    flashBufferDestroy(static_cast<FlashBuffer *>(owned->context));
    delete owned;
  };
  managed->tensor.data = tensor.data;
  managed->tensor.device = {dlCpu, 0};
  managed->tensor.rank = tensor.rank;
  managed->tensor.dtype = getDtype(element);
  managed->tensor.sizes = const_cast<int64_t *>(tensor.sizes);
  managed->tensor.strides = const_cast<int64_t *>(tensor.strides);
  void *object = nullptr;
  if (exchange.makeObject(managed, &object))
    throw nb::python_error();
  return nb::steal(static_cast<PyObject *>(object));
}

nb::object flash::python::makeArray(FlashBuffer *buffer,
                                    FlashElementType element,
                                    const Array &like) {
  if (like.isTorch)
    if (const ExchangeApi *exchange = Torch::get()->exchange)
      return makeTensor(*exchange, buffer, element);
  FlashTensor tensor = flashBufferGetTensor(buffer);
  nb::capsule owner(buffer, [](void *owned) noexcept {
    flashBufferDestroy(static_cast<FlashBuffer *>(owned));
  });
  size_t sizes[maxRank];
  std::copy_n(tensor.sizes, tensor.rank, sizes);
  DLDataType type = getDtype(element);
  nb::dlpack::dtype dtype = {type.code, type.bits, type.lanes};
  if (like.isTorch)
    return nb::cast(nb::ndarray<nb::pytorch>(tensor.data, tensor.rank, sizes,
                                             owner, tensor.strides, dtype));
  // NumPy gets the bits, and its type from the package that has it.
  bool isOfPackage = element == FLASH_BF16 || element == FLASH_F8E4M3FN;
  if (isOfPackage)
    dtype =
        element == FLASH_BF16 ? nb::dtype<uint16_t>() : nb::dtype<uint8_t>();
  nb::object array = nb::cast(nb::ndarray<nb::numpy>(
      tensor.data, tensor.rank, sizes, owner, tensor.strides, dtype));
  if (!isOfPackage)
    return array;
  return array.attr("view")(
      nb::module_::import_("ml_dtypes").attr(getName(element)));
}

void flash::python::check(FlashStatus status, const char *note) {
  if (status == FLASH_SUCCESS)
    return;
  const char *message = flashGetErrorMessage();
  auto getError = [](const char *name) {
    return nb::module_::import_("flash_mlir.errors").attr(name).ptr();
  };
  switch (status) {
  case FLASH_INTERRUPTED:
    throw nb::python_error();
  case FLASH_INVALID_PROGRAM:
    raise(getError("CompileError"), message);
  case FLASH_UNAVAILABLE:
    raise(getError("DeviceError"), message);
  case FLASH_OUT_OF_MEMORY:
    raise(PyExc_MemoryError, message);
  case FLASH_FAILURE:
    raise(PyExc_RuntimeError, message);
  case FLASH_INVALID_TENSOR:
    raise(PyExc_ValueError, message, note);
  default:
    raise(PyExc_ValueError, message);
  }
}
