//===- Module.cpp - The native part of the package ------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Appending.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

using namespace flash::python;

/// The steps of a range: names and numbers.
static std::vector<IndexRange::Step> readSteps(nb::handle list) {
  std::vector<IndexRange::Step> steps;
  for (nb::handle step : list) {
    bool isName = nb::isinstance<nb::str>(step);
    steps.push_back({isName ? nb::cast<std::string>(step) : "",
                     isName ? 0 : nb::cast<int64_t>(step)});
  }
  return steps;
}

/// As get_kind_of_keys of packing.py has it.
static KeyRows readKeyRows(const std::string &name) {
  if (name == "batch")
    return KeyRows::Batch;
  if (name == "lengths")
    return KeyRows::Lengths;
  return name == "pages" ? KeyRows::Pages : KeyRows::Packed;
}

/// (name, dtype, is bool, is unsigned, rank, [(dimension, steps, text)])
static std::vector<Capture> readCaptures(nb::list list) {
  std::vector<Capture> captures;
  for (nb::handle item : list) {
    Capture capture;
    capture.name = nb::cast<std::string>(item[0]);
    capture.element = FlashElementType(nb::cast<int>(item[1]));
    capture.isBool = nb::cast<bool>(item[2]);
    capture.isUnsigned = nb::cast<bool>(item[3]);
    capture.rank = nb::cast<int>(item[4]);
    for (nb::handle range : item[5])
      capture.ranges.emplace_back(nb::cast<int>(range[0]), readSteps(range[1]),
                                  nb::cast<std::string>(range[2]));
    captures.push_back(std::move(capture));
  }
  return captures;
}

NB_MODULE(_core, m) {
  // The caches of the package keep kernels until the interpreter ends.
  nb::set_leak_warnings(false);
  m.attr("version") = flashGetVersion();
  m.attr("open_size") = FLASH_DYNAMIC;
  m.attr("most_short_rows") = Attention::mostShortRows;
  m.def("get_cpu_length", &flashGetCpuLength);
  m.def("get_size_class", &flashGetSizeClass);
  m.def("get_targets", &flashGetTargets);
  m.def("get_target_number", [](const char *target, const char *key) {
    int64_t value;
    check(flashTargetGetNumber(target, key, &value));
    return value;
  });
  // (target, name, multiprocessors, warning or None)
  m.def("get_device", [](int device) {
    FlashDevice found;
    check(flashGetDevice(device, &found));
    return nb::make_tuple(found.target, found.name, found.multiprocessors,
                          found.warning);
  });
  m.def(
      "set_thread_count",
      [](int64_t count) {
        if (count != unsigned(count))
          raise(PyExc_ValueError, "set_thread_count: ", count,
                " threads are not from 0 to 1024");
        check(flashSetThreadCount(unsigned(count)));
      },
      nb::arg("count"),
      "Threads that kernels use on the CPU, up to 1024; 0, as at the start, is "
      "OMP_NUM_THREADS where that is set, or else one for each processor that "
      "affinity and the quota of the control group allow for. Must not be "
      "called while a kernel runs.");
  // What a captured tensor is: (number of the dtype, is bool, is unsigned,
  // rank).
  m.def("inspect", [](nb::handle object, const std::string &name) {
    nb::object owner;
    Array array = readArray(object, name.c_str(), owner);
    return nb::make_tuple(int(array.element), array.isBool, array.isUnsigned,
                          array.rank);
  });

  nb::class_<Kernel>(m, "Kernel")
      .def_static("compile", &Kernel::compile)
      .def_static("deserialize", &Kernel::deserialize)
      .def_static("specialize", &Kernel::specialize)
      .def_static("specialize_each", &Kernel::specializeEach)
      .def_static("plan", &Kernel::plan)
      .def_prop_ro("target", &Kernel::getTarget)
      .def_prop_ro("arguments", &Kernel::getArguments)
      .def_prop_ro("results", &Kernel::getResults)
      .def("text", &Kernel::getText)
      .def("save", &Kernel::save)
      .def("count_tiles", &Kernel::countTiles)
      .def("serialize", &Kernel::serialize)
      .def("load", &Kernel::load)
      .def("count_bytes", &Kernel::countBytes)
      .def("call", &Kernel::call)
      .def("check", &Kernel::checkArguments);

  nb::class_<Attention>(m, "Attention")
      .def("__init__",
           [](Attention *self, nb::object compile, nb::object compileGradients,
              nb::list captures, bool returnLse, nb::object dispatch,
              size_t numOfPlan, size_t numOfGradients, bool packsQueries,
              const std::string &keyRows) {
             new (self) Attention(
                 std::move(compile), std::move(compileGradients),
                 readCaptures(captures), returnLse, std::move(dispatch),
                 numOfPlan, numOfGradients, packsQueries, readKeyRows(keyRows));
           })
      .def("__call__", &Attention::call, nb::arg("query").none(),
           nb::arg("key").none(), nb::arg("value").none(),
           nb::arg("lengths").none(), nb::arg("sink").none(),
           nb::arg("captured"))
      .def("call_rows", &Attention::callRows, nb::arg("query").none(),
           nb::arg("key").none(), nb::arg("value").none(),
           nb::arg("lengths").none(), nb::arg("sink").none(),
           nb::arg("captured"), nb::arg("out") = nb::none())
      .def("call_into", &Attention::callInto, nb::arg("query").none(),
           nb::arg("key").none(), nb::arg("value").none(),
           nb::arg("lengths").none(), nb::arg("sink").none(),
           nb::arg("captured"), nb::arg("out").none())
      .def("run", &Attention::run, nb::arg("query").none(),
           nb::arg("key").none(), nb::arg("value").none(),
           nb::arg("lengths").none(), nb::arg("sink").none(),
           nb::arg("captured"))
      .def("prepare", &Attention::prepare, nb::arg("query").none(),
           nb::arg("key").none(), nb::arg("value").none(),
           nb::arg("lengths").none(), nb::arg("sink").none(),
           nb::arg("captured"))
      .def("differentiate", &Attention::differentiate, nb::arg("query").none(),
           nb::arg("key").none(), nb::arg("value").none(),
           nb::arg("output").none(), nb::arg("lse").none(),
           nb::arg("output_grad").none(), nb::arg("lse_grad").none(),
           nb::arg("lengths").none(), nb::arg("sink").none(),
           nb::arg("captured"), nb::arg("wrt"))
      .def("check", &Attention::check, nb::arg("query").none(),
           nb::arg("key").none(), nb::arg("value").none(),
           nb::arg("lengths").none(), nb::arg("sink").none(),
           nb::arg("captured"));

  nb::class_<Shortcut>(m, "Shortcut")
      .def(nb::init<bool>())
      .def_prop_ro("call",
                   [](nb::handle self) { return Shortcut::getFunction(self); })
      .def("keep", &Shortcut::keep)
      .def("clear", &Shortcut::clear);

  nb::class_<Appending>(m, "Appending")
      .def(nb::init<nb::object, Shortcut *>(), nb::keep_alive<1, 3>())
      .def_prop_ro("call_again",
                   [](nb::handle self) { return Appending::getFunction(self); })
      .def("append", &Appending::append);
}
