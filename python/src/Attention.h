//===- Attention.h - The function of an attention variant -------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_PYTHON_ATTENTION_H
#define FLASH_PYTHON_ATTENTION_H

#include "IndexRange.h"
#include "RepeatedCall.h"

#include <array>

namespace flash::python {

/// What a captured tensor must be.
struct Capture {
  std::string name;
  FlashElementType element;
  bool isBool, isUnsigned;
  int rank;
  /// Of those indices whose ranges are known.
  std::vector<IndexRange> ranges;
};

/// Where the rows of keys and values are.
enum class KeyRows {
  /// A batch, all of whose rows are there.
  Batch,
  /// A batch with so many rows: key_lengths.
  Lengths,
  /// Behind each other: key_offsets.
  Packed,
  /// In pages: page_table and key_lengths.
  Pages
};

/// One attention variant: checks arrays, finds the kernel for their types, and
/// calls it. This is what a cached call runs through.
class Attention {
public:
  /// Packed sequences with at most so many queries each, on average, are short:
  /// the compiler packs heads for them.
  static constexpr int64_t mostShortRows = 32;

  /// `compile(dtype, rank, head dimension, value head dimension, device,
  /// sizes)` returns the kernel; device is -1 for the CPU, and sizes are the
  /// sizes of query, key and value. `compileGradients` returns the gradients'
  /// kernel: it is given, too, whether there is a gradient of the log-sum-exp,
  /// and the numbers of the captures whose gradients are computed. `dispatch`,
  /// with the arguments of a call and whether all are plain tensors that
  /// nothing watches, and some require gradients, goes by PyTorch. The last
  /// `numOfGradients` of the captures are for the gradients' kernel alone, and
  /// the `numOfPlan` before these for the other alone. Where queries are
  /// packed, captures end with their offsets, and behind these what says where
  /// the rows of keys and values are, or how many there are.
  Attention(nb::object compile, nb::object compileGradients,
            std::vector<Capture> captures, bool returnLse, nb::object dispatch,
            size_t numOfPlan, size_t numOfGradients, bool packsQueries,
            KeyRows keyRows)
      : compile(std::move(compile)),
        compileGradients(std::move(compileGradients)),
        captures(std::move(captures)), returnLse(returnLse),
        dispatch(std::move(dispatch)), numOfPlan(numOfPlan),
        numOfGradients(numOfGradients), packsQueries(packsQueries),
        keyRows(keyRows) {}

  /// Runs the kernel, or leaves the call to `dispatch` where tensors have no
  /// memory, something wants to see the operators that are called, or there
  /// will be gradients.
  nb::object call(nb::handle query, nb::handle key, nb::handle value,
                  nb::handle lengths, nb::handle sink, nb::handle captured);

  /// As `call`, of a query on a device and of keys and values that are a batch,
  /// if there are any, with the rows before the heads, as they are in pages,
  /// and so is the output, which is written into `out` unless that is None.
  /// None where there is more to do than to run the kernel.
  nb::object callRows(nb::handle query, nb::handle key, nb::handle value,
                      nb::handle lengths, nb::handle sink, nb::handle captured,
                      nb::handle out);

  /// The same, with the result in `out`, which is written by the kernel where
  /// it can be, and else becomes a copy of the result.
  nb::object callInto(nb::handle query, nb::handle key, nb::handle value,
                      nb::handle lengths, nb::handle sink, nb::handle captured,
                      nb::handle out);

  /// Runs the kernel: what the operator does.
  nb::object run(nb::handle query, nb::handle key, nb::handle value,
                 nb::handle lengths, nb::handle sink, nb::handle captured);

  /// Raises what a call would for its arguments, and compiles its kernel where
  /// there is none yet: who writes before the call knows then that it can be
  /// made. Of rows that are packed, and of tensors without memory, nothing is
  /// looked at.
  void prepare(nb::handle query, nb::handle key, nb::handle value,
               nb::handle lengths, nb::handle sink, nb::handle captured);

  /// The gradients of query, key, value, sink if there is one, and of the
  /// captured tensors of the numbers in `wrt`, given the results of `run` and
  /// the gradients of these. The log-sum-exp's may be None.
  std::vector<nb::object> differentiate(nb::handle query, nb::handle key,
                                        nb::handle value, nb::handle output,
                                        nb::handle lse, nb::handle outputGrad,
                                        nb::handle lseGrad, nb::handle lengths,
                                        nb::handle sink, nb::handle captured,
                                        std::vector<int> wrt);

  /// Checks the arguments of a call, and returns what a kernel is compiled for:
  /// (dtype, rank, head dimension, value head dimension, device).
  nb::tuple check(nb::handle query, nb::handle key, nb::handle value,
                  nb::handle lengths, nb::handle sink, nb::handle captured);

  /// The arguments of a call as `repeat` takes them: query, key, value,
  /// lengths, sink, what is captured, and what the result is written into, or
  /// None.
  struct Given {
    Given(nb::handle query, nb::handle key, nb::handle value,
          nb::handle lengths, nb::handle sink, nb::handle captured,
          nb::handle out = nb::none());
    Given() = default;
    nb::handle all[Signature::maxArrays];
    /// 0 if there are too many.
    size_t count = 5;
    size_t getNumCaptured() const { return count - 6; }
  };
  /// The result of a call that is like one before; null for others, and for the
  /// first ones. Nothing must watch operators.
  nb::object repeat(Torch &torch, const Given &given, bool areRows,
                    Signature &signature);
  /// The same after the arguments have been read.
  nb::object repeatRead(Torch &torch, const Given &given, bool areRows,
                        const Signature &signature);
  /// Such a call, if there is one; null if not.
  std::shared_ptr<RepeatedCall> findRepeated(bool areRows,
                                             const Signature &signature) {
    return repeated[areRows].find(signature);
  }
  /// Raises ValueError for another number of captured tensors than the variant
  /// has.
  void checkCount(size_t numCaptured) const;

private:
  static constexpr size_t maxCaptures = 31, maxArguments = maxCaptures + 5;
  /// The arguments of a call: query, key, value and then those that there are.
  struct Arguments {
    Array arrays[maxArguments];
    nb::object owners[maxArguments];
    size_t count = 0;
    /// Null where there are none.
    Array *lengths = nullptr, *sink = nullptr;
    Array *queryOffsets = nullptr, *keyOffsets = nullptr, *pageTable = nullptr,
          *keyLengths = nullptr;
    nb::object &getOwner(const Array *array) { return owners[array - arrays]; }
    /// Whether the operands have their rows before their heads.
    bool areRows = false;
    /// The query as it is given, where results may be like it; or null.
    nb::handle prototype;
    /// The call's head dimensions, without padding.
    int64_t headDim = 0, valueDim = 0;
  };
  /// Why a kernel alone will not do: an argument has no memory, or one that has
  /// requires gradients. An exception would take longer than the rest.
  struct Obstacle {
    enum { None, NoMemory, Gradient } kind = None;
    nb::handle array;
    const char *name = nullptr;
  };
  /// Null where a call does more than to launch a kernel on its arrays.
  std::shared_ptr<RepeatedCall> record(const Given &given, bool areRows,
                                       const Signature &signature);
  struct Launch;

  /// Reads and checks the arguments. Those behind one without memory are left.
  Obstacle read(Arguments &arguments, nb::handle query, nb::handle key,
                nb::handle value, nb::handle lengths, nb::handle sink,
                nb::handle captured) const;
  void readOrRaise(Arguments &arguments, nb::handle query, nb::handle key,
                   nb::handle value, nb::handle lengths, nb::handle sink,
                   nb::handle captured) const;
  /// `out` is what `canWrite` is true of, or null.
  nb::object execute(Arguments &arguments, nb::handle out = {});
  /// The same, for a call whose signature was read, if it is one, and is noted
  /// then.
  nb::object execute(Arguments &arguments, nb::handle out,
                     const Signature &signature);
  /// The kernel of a call whose arguments are adapted.
  Kernel &findKernel(const Arguments &arguments);
  /// Whether a kernel can write the result into this array.
  bool canWrite(nb::handle out, const Arguments &arguments) const;

  /// Makes of arguments that no kernel takes others: head dimensions are padded
  /// to multiples of 8, packed rows become a batch of one with their heads
  /// first, as pages do, lengths and sinks get the kernel's types, and
  /// where it computes in float64 all that captured tensors hold does.
  void adapt(Arguments &arguments) const;
  /// The part of it for keys in pages, which are views, or on the host where
  /// they do not lie so, copies of those that sequences have.
  void adaptPages(Arguments &arguments) const;

  /// Whether batches are sequences that have lengths of their own.
  bool areSequences() const {
    return packsQueries || keyRows != KeyRows::Batch;
  }
  /// How many arrays say so.
  size_t getNumOfSequences() const {
    return packsQueries +
           (keyRows == KeyRows::Pages ? 2 : keyRows != KeyRows::Batch);
  }
  bool packs(int operand) const {
    return operand ? keyRows == KeyRows::Packed : packsQueries;
  }
  /// Whether an operand is (pages, rows of a page, heads, D).
  bool isInPages(int operand) const {
    return operand && keyRows == KeyRows::Pages;
  }
  int64_t getHeads(const Array &array, int operand) const {
    return array.sizes[packs(operand)       ? 1
                       : isInPages(operand) ? 2
                                            : array.rank - 3];
  }
  /// Of an operand in pages, that of a page.
  int64_t getLength(const Array &array, int operand) const {
    return array.sizes[packs(operand)       ? 0
                       : isInPages(operand) ? 1
                                            : array.rank - 2];
  }
  /// Checks offsets, tables of pages and lengths, on the host what they hold,
  /// too, and returns how many sequences there are.
  int64_t checkSequences(const Arguments &arguments) const;
  void checkOffsets(const Arguments &arguments, int side) const;
  void checkPages(const Arguments &arguments) const;
  void checkKeyLengths(const Arguments &arguments, int64_t numSequences) const;
  void checkRank(int operand, const char *name, const Array &array,
                 const Array &query) const;

  /// On a device: heads, key heads, and the classes (flashGetSizeClass) of the
  /// batch size and the lengths. On the CPU, the lengths (flashGetCpuLength),
  /// and zeros. Of packed rows the heads, and where queries are packed and
  /// short on a device the classes, too, of the sequences' number and of the
  /// mean lengths. That of keys in pages is what the table has room for.
  using KernelSizes = std::array<int64_t, 5>;
  KernelSizes getKernelSizes(const Arguments &arguments) const;
  int64_t countSequences(const Arguments &arguments, int operand) const;
  /// Of operands that are adapted, as those that follow.
  int64_t getMeanLength(const Arguments &arguments, int operand) const;
  /// Whether packed sequences have few queries each.
  bool areShort(const Arguments &arguments) const;
  /// Whether kernels depend on how many sequences there are, and on their
  /// lengths.
  bool haveClasses(const Arguments &arguments) const;

  /// What a kernel is compiled for.
  struct Specialization {
    FlashElementType element;
    int rank, device;
    int64_t headDim, valueDim;
    KernelSizes sizes;
    /// Of gradients alone.
    bool hasLseGrad = false;
    std::vector<int> wrt = {};

    bool operator==(const Specialization &other) const {
      return element == other.element && rank == other.rank &&
             device == other.device && headDim == other.headDim &&
             valueDim == other.valueDim && sizes == other.sizes &&
             hasLseGrad == other.hasLseGrad && wrt == other.wrt;
    }
  };
  struct KnownKernel {
    Specialization specialization;
    nb::object owner;
    Kernel *kernel;
  };
  Specialization getSpecialization(const Arguments &arguments) const;

  void checkAttention(const Array &query, const Array &key,
                      const Array &value) const;
  void checkCapture(const Capture &capture, const Array &array,
                    const Array &query,
                    const std::vector<PositionSizes> &sizes) const;
  /// The sizes of all batches; of packed rows, whose lengths are not known
  /// there, the sizes of each sequence follow on the host.
  std::vector<PositionSizes> getSizes(const Arguments &arguments,
                                      int64_t numSequences) const;
  /// The kernel among those that are known, or that `compile(shapes)` returns.
  template <typename Compile>
  Kernel &getKernel(std::vector<KnownKernel> &known,
                    const Specialization &wanted, const Arguments &arguments,
                    Compile compile) const;

  nb::object compile, compileGradients;
  std::vector<Capture> captures;
  bool returnLse;
  nb::object dispatch;
  size_t numOfPlan, numOfGradients;
  bool packsQueries;
  KeyRows keyRows;
  std::vector<KnownKernel> kernels, gradientKernels;
  /// Of operands with their heads before their rows, and the other way round.
  RepeatedCalls repeated[2];
};

} // namespace flash::python

#endif // FLASH_PYTHON_ATTENTION_H
