//===- Driver.cpp - The CUDA driver, found at run time --------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Runtime/Cuda/Driver.h"

#include "Failures.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/DynamicLibrary.h"
#include "llvm/Support/FormatVariadic.h"

using namespace flash::cuda;
using llvm::formatv;

static constexpr const char *otherTargets =
    "use --target=cpu or --target=emulate";

Driver::Driver() : api(std::make_unique<DriverApi>()) {}
Driver::~Driver() = default;

std::string Driver::getVersionString() const {
  return formatVersion(version, 1000, 10);
}

std::string Driver::describe(int result, llvm::StringRef call) const {
  const char *name = nullptr, *text = nullptr;
  (void)api->cuGetErrorName.function(CUresult(result), &name);
  (void)api->cuGetErrorString.function(CUresult(result), &text);
  call.consume_back("_v2");
  if (!name)
    return formatv("{0} failed with the unknown error {1}", call, result);
  return formatv("{0} failed with {1} ({2})", call, name,
                 text ? text : "no description");
}

/// The library, or why there is none.
static llvm::Expected<llvm::sys::DynamicLibrary>
openLibrary(llvm::StringRef path) {
  std::string why;
  auto library =
      llvm::sys::DynamicLibrary::getPermanentLibrary(path.str().c_str(), &why);
  if (library.isValid())
    return library;
  // dlopen has no codes, only texts, and one of them is by far the commonest.
  if (llvm::StringRef(why).contains("No such file"))
    return fail(ErrorKind::Unavailable,
                formatv("no NVIDIA driver: {0} was not found; {1}", path,
                        otherTargets));
  return fail(ErrorKind::Unavailable,
              formatv("the NVIDIA driver cannot be loaded: {0}; {1}", why,
                      otherTargets));
}

/// What to do when the driver does not start.
static const char *getAdvice(CUresult result) {
  switch (result) {
  case CUDA_ERROR_NO_DEVICE:
    return "see whether nvidia-smi lists a GPU and whether "
           "CUDA_VISIBLE_DEVICES hides it";
  case CUDA_ERROR_STUB_LIBRARY:
    return "this libcuda.so.1 is the CUDA toolkit's stub; put the driver's "
           "before it in the library path";
  case CUDA_ERROR_DEVICE_UNAVAILABLE:
    return "another process may use the GPU exclusively";
  case CUDA_ERROR_SYSTEM_NOT_READY:
    return "see whether the fabric manager runs (nvidia-fabricmanager)";
  case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
    return "libcuda.so.1 and the kernel module are of different versions; "
           "restart the machine or the container after an update";
  case CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
    return "this libcuda.so.1 is a forward compatibility package that does not "
           "support the GPU; remove it from the library path";
  default:
    return "see whether nvidia-smi works";
  }
}

llvm::Expected<std::shared_ptr<Driver>> Driver::load(llvm::StringRef path) {
  auto library = openLibrary(path);
  if (!library)
    return library.takeError();

  std::shared_ptr<Driver> driver(new Driver);
  DriverApi &api = *driver->api;
  llvm::SmallVector<llvm::StringRef> missing;
  auto resolve = [&](auto &entry, bool optional) {
    void *address = library->getAddressOfSymbol(entry.name);
    entry.function = reinterpret_cast<decltype(entry.function)>(address);
    if (!address && !optional)
      missing.push_back(entry.name);
  };
#define FLASH_CUDA_ENTRY(name, ...) resolve(api.name, /*optional=*/false);
#define FLASH_CUDA_OPTIONAL_ENTRY(name, ...) resolve(api.name, true);
#include "DriverApi.def"
  if (!missing.empty())
    return fail(ErrorKind::DriverTooOld,
                formatv("the NVIDIA driver is too old: {0} has no {1:$[, ]}; "
                        "update the driver (CUDA 12.0 or later), or {2}",
                        path, llvm::make_range(missing.begin(), missing.end()),
                        otherTargets));

  auto start = [&](const auto &entry, auto... arguments) -> llvm::Error {
    CUresult result = entry.function(arguments...);
    if (result == CUDA_SUCCESS)
      return llvm::Error::success();
    return fail(ErrorKind::Unavailable,
                formatv("the NVIDIA driver does not start: {0}; {1}, or {2}",
                        driver->describe(result, entry.name), getAdvice(result),
                        otherTargets));
  };
  if (llvm::Error error = start(api.cuInit, 0u))
    return error;
  if (llvm::Error error = start(api.cuDriverGetVersion, &driver->version))
    return error;
  if (llvm::Error error = start(api.cuDeviceGetCount, &driver->deviceCount))
    return error;
  if (driver->deviceCount <= 0)
    return fail(ErrorKind::Unavailable,
                formatv("the NVIDIA driver sees no device: {0}, or {1}",
                        getAdvice(CUDA_ERROR_NO_DEVICE), otherTargets));
  return driver;
}
