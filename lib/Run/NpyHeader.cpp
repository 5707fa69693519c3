//===- NpyHeader.cpp - The header of a .npy file --------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Run/Npy.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FormatVariadic.h"

using namespace flash::run;
using llvm::createStringError;
using llvm::formatv;

namespace {

/// Parses the Python dictionary of a header: three known keys in any order,
/// with a string, a boolean and a tuple of integers as values.
class DictParser {
public:
  DictParser(llvm::StringRef text) : text(text) {}

  llvm::Expected<NpyHeader> parse() {
    NpyHeader header;
    bool hasDescr = false, hasOrder = false, hasShape = false;
    if (!consume('{'))
      return malformed("'{'");
    while (!consume('}')) {
      std::string key;
      if (!parseString(key) || !consume(':'))
        return malformed("a key and ':'");
      if (key == "descr" && !hasDescr) {
        hasDescr = true;
        skipSpace();
        if (text.starts_with("["))
          return createStringError(
              "holds records; expected an array of plain numbers");
        if (!parseString(header.descr))
          return malformed("a string for 'descr'");
      } else if (key == "fortran_order" && !hasOrder) {
        hasOrder = true;
        skipSpace();
        header.fortranOrder = text.consume_front("True");
        if (!header.fortranOrder && !text.consume_front("False"))
          return malformed("True or False for 'fortran_order'");
      } else if (key == "shape" && !hasShape) {
        hasShape = true;
        if (!parseShape(header.shape))
          return malformed("a tuple of sizes for 'shape'");
      } else {
        return malformed("the keys 'descr', 'fortran_order' and 'shape'");
      }
      if (!consume(',')) {
        if (!consume('}'))
          return malformed("',' or '}'");
        break;
      }
    }
    if (!hasDescr || !hasOrder || !hasShape)
      return malformed("the keys 'descr', 'fortran_order' and 'shape'");
    if (!text.trim().empty())
      return malformed("nothing after '}'");
    return header;
  }

private:
  static llvm::Error malformed(llvm::StringRef expected) {
    return createStringError(
        formatv("has a malformed .npy header: expected {0}", expected));
  }

  void skipSpace() { text = text.ltrim(" \t\n\r"); }

  bool consume(char c) {
    skipSpace();
    if (text.empty() || text.front() != c)
      return false;
    text = text.drop_front();
    return true;
  }

  bool parseString(std::string &value) {
    skipSpace();
    if (text.empty() || (text.front() != '\'' && text.front() != '"'))
      return false;
    size_t end = text.find(text.front(), 1);
    if (end == llvm::StringRef::npos)
      return false;
    value = text.slice(1, end).str();
    text = text.drop_front(end + 1);
    return true;
  }

  bool parseShape(llvm::SmallVectorImpl<int64_t> &shape) {
    if (!consume('('))
      return false;
    while (!consume(')')) {
      int64_t size;
      skipSpace();
      if (shape.size() == 32 || text.consumeInteger(10, size) || size < 0)
        return false;
      text.consume_front("L"); // Python 2 wrote long integers so.
      shape.push_back(size);
      if (!consume(','))
        return consume(')');
    }
    return true;
  }

  llvm::StringRef text;
};

} // namespace

llvm::Expected<NpyHeader> flash::run::parseNpyHeader(llvm::StringRef file) {
  if (file.empty())
    return createStringError("is empty; expected a .npy file");
  if (!file.starts_with("\x93NUMPY"))
    return createStringError("is not a .npy file; write it with numpy.save");
  auto truncated = [] {
    return createStringError("ends inside its .npy header");
  };
  if (file.size() < 8)
    return truncated();
  unsigned version = static_cast<unsigned char>(file[6]);
  if (version < 1 || version > 3)
    return createStringError(formatv(
        "has .npy version {0}; versions 1 to 3 are supported", version));
  size_t start = version == 1 ? 10 : 12;
  if (file.size() < start)
    return truncated();
  size_t length = version == 1
                      ? llvm::support::endian::read16le(file.data() + 8)
                      : llvm::support::endian::read32le(file.data() + 8);
  if (file.size() - start < length)
    return truncated();
  auto header = DictParser(file.substr(start, length)).parse();
  if (header)
    header->dataOffset = start + length;
  return header;
}
