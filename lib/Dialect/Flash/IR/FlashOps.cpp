//===- FlashOps.cpp - Printing of flash ops, and the ops on rows ----------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OpRules.h"
#include "flash/Schedule/SplitKV.h"
#include "flash/Support/Clauses.h"
#include "flash/Support/OwnRegion.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using namespace flash;
using namespace flash::detail;

/// Refuses the name of a mask alone, which is no attribute.
static ParseResult parseMaskOfClause(OpAsmParser &parser,
                                     MaskAttrInterface &mask) {
  SMLoc begin = parser.getCurrentLocation();
  StringRef word;
  if (succeeded(parser.parseOptionalKeyword(&word)))
    return parser.emitError(begin)
           << "has the mask '" << word
           << "', and masks are attributes; write '#flash." << word << "'";
  return parser.parseAttribute(mask);
}

static void printMaskOfClause(OpAsmPrinter &printer, Operation *,
                              MaskAttrInterface mask) {
  printer << mask;
}

/// Results print as one type, or as a parenthesised pair with the log-sum-exp.
static ParseResult parseAttentionResults(OpAsmParser &parser, Type &output,
                                         Type &lse) {
  if (failed(parser.parseOptionalLParen()))
    return parser.parseType(output);
  if (parser.parseType(output))
    return failure();
  if (succeeded(parser.parseOptionalComma()) && parser.parseType(lse))
    return failure();
  return parser.parseRParen();
}

static void printAttentionResults(OpAsmPrinter &printer, Operation *,
                                  Type output, Type lse) {
  if (lse)
    printer << "(" << output << ", " << lse << ")";
  else
    printer << output;
}

/// The types of the gradients, in the order of the results.
static ParseResult parseAttentionGradResults(
    OpAsmParser &parser,
    const std::optional<OpAsmParser::UnresolvedOperand> &sink, Type &query,
    Type &key, Type &value, Type &sinkGrad, SmallVectorImpl<Type> &captured) {
  if (parser.parseLParen() || parser.parseType(query) || parser.parseComma() ||
      parser.parseType(key) || parser.parseComma() || parser.parseType(value))
    return failure();
  if (sink && (parser.parseComma() || parser.parseType(sinkGrad)))
    return failure();
  while (succeeded(parser.parseOptionalComma()))
    if (parser.parseType(captured.emplace_back()))
      return failure();
  return parser.parseRParen();
}

static void printAttentionGradResults(OpAsmPrinter &printer, Operation *,
                                      Value sink, Type query, Type key,
                                      Type value, Type sinkGrad,
                                      TypeRange captured) {
  printer << "(" << query << ", " << key << ", " << value;
  if (sinkGrad)
    printer << ", " << sinkGrad;
  for (Type type : captured)
    printer << ", " << type;
  printer << ")";
}

#include "flash/Dialect/Flash/IR/FlashAddressInterface.cpp.inc"
#include "flash/Dialect/Flash/IR/FlashAttentionInterface.cpp.inc"
#include "flash/Dialect/Flash/IR/FlashStepInterface.cpp.inc"

#define GET_OP_CLASSES
#include "flash/Dialect/Flash/IR/FlashOps.cpp.inc"

//===----------------------------------------------------------------------===//
// FinalizeOp
//===----------------------------------------------------------------------===//

MutableOperandRange FinalizeOp::getDpsInitsMutable() {
  return MutableOperandRange(*this, getOutputInitMutable().getOperandNumber(),
                             getLseInit() ? 2 : 1);
}

LogicalResult FinalizeOp::verify() {
  ArrayRef<int64_t> shape = getAcc().getType().getShape();
  if (shape.size() != 2 && shape.size() != 4)
    return emitOpError("operands must have rank 4 (whole tensors) or rank 2 "
                       "(one tile of one head), got rank ")
           << shape.size();
  if (failed(verifyHeadDim(*this, "value head dimension", shape.back())) ||
      failed(verifyShape(*this, "maximum", getMax().getType(),
                         shape.drop_back())) ||
      failed(
          verifyShape(*this, "sum", getSum().getType(), shape.drop_back())) ||
      failed(verifyShape(*this, "output", getOutputInit().getType(), shape,
                         /*endsInValueDim=*/true)))
    return failure();
  if (getOutput().getType() != getOutputInit().getType())
    return emitOpError("output must have the type of its init");
  if (static_cast<bool>(getLse()) != static_cast<bool>(getLseInit()))
    return emitOpError("a log-sum-exp result needs an init, and an init a "
                       "result");
  if (failed(verifyUnit(*this, getUnit())))
    return failure();
  if (!getLse())
    return success();
  if (getLse().getType() != getLseInit().getType())
    return emitOpError("log-sum-exp must have the type of its init");
  return verifyShape(*this, "log-sum-exp", getLseInit().getType(),
                     shape.drop_back());
}

//===----------------------------------------------------------------------===//
// SoftmaxOp
//===----------------------------------------------------------------------===//

LogicalResult SoftmaxOp::verify() {
  RankedTensorType scores = getScores().getType();
  if (scores.getRank() != 2)
    return emitOpError("needs scores of rank 2 (rows of one head), got rank ")
           << scores.getRank();
  if (getResult().getType() != scores)
    return emitOpError("must give the type of its scores, ") << scores;
  if (getLse() &&
      getLse().getType().getShape() != scores.getShape().drop_back())
    return emitOpError("must give one log-sum-exp for each row, not ")
           << getLse().getType();
  return success();
}

//===----------------------------------------------------------------------===//
// CombineOp
//===----------------------------------------------------------------------===//

LogicalResult CombineOp::verify() {
  ArrayRef<int64_t> shape = getOuts().getType().getShape();
  if (shape.size() != 3)
    return emitOpError("needs outputs of rank 3 (splits of the keys, rows, "
                       "value head dimension), got rank ")
           << shape.size();
  if (getStep() && (*getStep() < 1 || *getStep() > mostSplitsAtOnce))
    return emitOpError("adds 1 to ")
           << mostSplitsAtOnce << " splits in a step, got " << *getStep();
  if (failed(verifyHeadDim(*this, "value head dimension", shape.back())) ||
      failed(verifyShape(*this, "log-sum-exps", getLses().getType(),
                         shape.drop_back())) ||
      failed(verifyShape(*this, "output", getOutput().getType(),
                         shape.drop_front(), /*endsInValueDim=*/true)))
    return failure();
  if (!getLse())
    return success();
  return verifyShape(*this, "log-sum-exp", getLse().getType(),
                     shape.drop_front().drop_back());
}
