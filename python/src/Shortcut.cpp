//===- Shortcut.cpp - From a function's arguments to a call ---------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Shortcut.h"

#include <algorithm>
#include <cstring>

using namespace flash::python;

/// Whether two options are the same to a function.
static bool areEqual(PyObject *left, PyObject *right) {
  if (left == right)
    return true;
  if (Py_TYPE(left) != Py_TYPE(right))
    return false;
  if (PyFloat_CheckExact(left)) {
    double values[] = {PyFloat_AsDouble(left), PyFloat_AsDouble(right)};
    // Of zeros the sign counts, and a NaN is equal to itself.
    return std::memcmp(values, values + 1, sizeof(double)) == 0;
  }
  if (!PyTuple_CheckExact(left)) {
    int areSame = PyObject_RichCompareBool(left, right, Py_EQ);
    if (areSame < 0)
      throw nb::python_error();
    return areSame;
  }
  if (PyTuple_Size(left) != PyTuple_Size(right))
    return false;
  for (Py_ssize_t i = 0; i < PyTuple_Size(left); ++i)
    if (!areEqual(PyTuple_GetItem(left, i), PyTuple_GetItem(right, i)))
      return false;
  return true;
}

bool Shortcut::haveOptions(const Entry &entry, PyObject *const *options,
                           size_t count) {
  if (entry.options.size() != count)
    return false;
  for (size_t i = 0; i < count; ++i)
    if (!areEqual(entry.options[i].ptr(), options[i]))
      return false;
  return true;
}

bool Shortcut::Arrays::read(Torch &torch, PyObject *const *arguments) {
  nb::handle *all = given.all;
  size_t count = 0;
  for (int i = 0; i < NumArrays; ++i) {
    nb::handle array = arguments[i];
    places[i] = -1;
    if (i > Sink && i < Out && array.is_none())
      continue;
    places[i] = int(count);
    all[count++] = array;
  }
  given.count = count;
  if (!signature.read(torch, all, count))
    return false;
  for (int i = 0; i < NumArrays; ++i)
    if (places[i] >= 0)
      kinds.kinds[i] = signature.getKind(places[i]);
  // Pages are of rank 4, or an error.
  if (places[PageTable] >= 0 && (kinds.kinds[Key] & 0xff) == 4)
    kinds.page = signature.getSize(Key, 1);
  return true;
}

nb::object Shortcut::call(PyObject *const *arguments, size_t count) {
  Torch *torch = Torch::get();
  if (!torch || count < NumArrays)
    return {};
  Arrays arrays;
  std::shared_ptr<const Entry> entry = find(*torch, arguments, count, arrays);
  if (!entry)
    return {};
  return entry->attention->repeatRead(*torch, arrays.given, areRows,
                                      arrays.signature);
}

std::shared_ptr<const Shortcut::Entry>
Shortcut::find(Torch &torch, PyObject *const *arguments, size_t count,
               Arrays &arrays) {
  PyObject *const *options = arguments + NumArrays;
  bool isRead = false;
  // Comparisons may run code of Python, and other threads meanwhile.
  for (size_t i = 0; i < entries.size(); ++i) {
    std::shared_ptr<const Entry> entry = entries[i];
    if (!haveOptions(*entry, options, count - NumArrays))
      continue;
    if (!isRead && (torch.isWatched() || torch.isAutocastEnabled() ||
                    !arrays.read(torch, arguments)))
      return {};
    isRead = true;
    if (!(entry->kinds == arrays.kinds))
      continue;
    if (i < entries.size())
      std::swap(entries[i], entries.front());
    return entry;
  }
  return {};
}

void Shortcut::keep(nb::handle attention, const nb::args &given) {
  Torch *torch = Torch::get();
  if (!torch || given.size() < NumArrays)
    return;
  std::vector<PyObject *> arguments;
  for (nb::handle each : given)
    arguments.push_back(each.ptr());
  Arrays arrays;
  if (!arrays.read(*torch, arguments.data()))
    return;
  auto entry = std::make_shared<Entry>();
  entry->kinds = arrays.kinds;
  entry->owner = nb::borrow(attention);
  entry->attention = nb::cast<Attention *>(attention);
  entry->attention->checkCount(arrays.given.getNumCaptured());
  for (size_t i = NumArrays; i < arguments.size(); ++i)
    entry->options.push_back(nb::borrow(arguments[i]));
  for (size_t i = 0; i < entries.size(); ++i)
    if (entries[i]->kinds == entry->kinds &&
        haveOptions(*std::shared_ptr<const Entry>(entries[i]),
                    arguments.data() + NumArrays, entry->options.size()))
      return;
  if (entries.size() == maxEntries)
    entries.pop_back();
  entries.push_back(std::move(entry));
  std::swap(entries.back(), entries.front());
}

nb::object Shortcut::getFunction(nb::handle self) {
  return makeFastFunction<Shortcut, &Shortcut::call>(self);
}
