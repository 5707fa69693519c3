//===- SourceCheck.cpp - Text that MLIR's parser does not survive ---------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Support/SourceCheck.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SourceMgr.h"

using namespace llvm;

/// `text` without leading white space and comments.
static StringRef skipSpace(StringRef text) {
  for (;;) {
    text = text.ltrim();
    if (!text.starts_with("//"))
      return text;
    text = text.drop_until([](char c) { return c == '\n'; });
  }
}

/// Whether `text` starts with a bracketed list of 64-bit integers.
static bool startsWithIntegers(StringRef text) {
  auto consume = [&](StringRef token) {
    text = skipSpace(text);
    return text.consume_front(token);
  };
  if (!consume("["))
    return false;
  if (consume("]"))
    return true;
  do {
    consume("-");
    text = skipSpace(text);
    int64_t value;
    if (text.empty() || !isDigit(text.front()) || text.consumeInteger(0, value))
      return false;
  } while (consume(","));
  return consume("]");
}

/// The parser makes room for all results up to the one that a value names.
static constexpr uint64_t mostResults = 1 << 20;

/// Whether `text`, behind the name of a value, starts with the number of a
/// result that no operation has.
static bool startsWithLargeResult(StringRef text) {
  if (!text.consume_front("#"))
    return false;
  StringRef digits = text.take_while([](char c) { return isDigit(c); });
  uint64_t number;
  return !digits.empty() &&
         (digits.getAsInteger(10, number) || number >= mostResults);
}

LogicalResult flash::checkSource(const SourceMgr &sources, raw_ostream &os) {
  StringRef text =
      sources.getMemoryBuffer(sources.getMainFileID())->getBuffer();
  auto isWord = [](char c) { return isAlnum(c) || c == '_' || c == '.'; };
  // In an attribute dictionary, after `{` or `,`, the name means something
  // else.
  char previous = ',';
  while (text = skipSpace(text), !text.empty()) {
    if (text.front() == '"') {
      text = text.drop_front().drop_until(
          [](char c) { return c == '"' || c == '\n'; });
      text = text.drop_front(!text.empty());
      previous = '"';
      continue;
    }
    StringRef word = text.take_while(isWord);
    if (word.empty())
      word = text.take_front();
    text = text.drop_front(word.size());
    if (previous == '%' && startsWithLargeResult(text)) {
      sources.PrintMessage(
          os, SMLoc::getFromPointer(text.data()), SourceMgr::DK_Error,
          "the number of a result must be less than " + Twine(mostResults));
      return failure();
    }
    StringRef rest = skipSpace(text);
    if ((word == "permutation" || word == "dimensions") && previous != ',' &&
        previous != '{' && rest.consume_front("=") &&
        !startsWithIntegers(rest)) {
      sources.PrintMessage(os, SMLoc::getFromPointer(word.data()),
                           SourceMgr::DK_Error,
                           "'" + word +
                               "' must be a list of integers, such as "
                               "[1, 0]");
      return failure();
    }
    previous = word.back();
  }
  return success();
}
