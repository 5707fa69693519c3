//===- FlashAttrs.cpp - Masks as affine sets, and schedules ---------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Support/NearestName.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace flash;

#include "flash/Dialect/Flash/IR/FlashEnums.cpp.inc"
#include "flash/Dialect/Flash/IR/FlashMaskInterface.cpp.inc"

/// A list of masks parses even when empty: the verifier says what is wrong.
static ParseResult parseMaskList(AsmParser &parser,
                                 SmallVector<MaskAttrInterface> &masks) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
    return parser.parseAttribute(masks.emplace_back());
  });
}

static void printMaskList(AsmPrinter &printer,
                          ArrayRef<MaskAttrInterface> masks) {
  printer << '[';
  llvm::interleaveComma(masks, printer);
  printer << ']';
}

#define GET_ATTRDEF_CLASSES
#include "flash/Dialect/Flash/IR/FlashAttrs.cpp.inc"

void FlashDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "flash/Dialect/Flash/IR/FlashAttrs.cpp.inc"
      , ScheduleAttr, TargetAttr>();
}

/// The one of the attributes' mnemonics that is most like `mnemonic`.
template <typename... Attributes>
static StringRef getNearestMnemonic(StringRef mnemonic) {
  return getNearestName(mnemonic, {Attributes::getMnemonic()...});
}

Attribute FlashDialect::parseAttribute(DialectAsmParser &parser,
                                       Type type) const {
  llvm::SMLoc start = parser.getCurrentLocation();
  StringRef mnemonic;
  Attribute attribute;
  if (generatedAttributeParser(parser, &mnemonic, type, attribute).has_value())
    return attribute;
  if (mnemonic == ScheduleAttr::getMnemonic())
    return ScheduleAttr::parse(parser, type);
  if (mnemonic == TargetAttr::getMnemonic())
    return TargetAttr::parse(parser, type);
  StringRef nearest = getNearestMnemonic<
#define GET_ATTRDEF_LIST
#include "flash/Dialect/Flash/IR/FlashAttrs.cpp.inc"
      , ScheduleAttr, TargetAttr>(mnemonic);
  parser.emitError(start) << "unknown attribute `" << mnemonic
                          << "` in dialect `" << getNamespace()
                          << "`; the nearest is `" << nearest << "`";
  return {};
}

void FlashDialect::printAttribute(Attribute attribute,
                                  DialectAsmPrinter &printer) const {
  if (succeeded(generatedAttributePrinter(attribute, printer)))
    return;
  auto print = [&](auto attribute) {
    printer << attribute.getMnemonic();
    attribute.print(printer);
  };
  llvm::TypeSwitch<Attribute>(attribute).Case<ScheduleAttr, TargetAttr>(print);
}

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

namespace {
/// The variables of a mask's sets: dimensions (b, h, i, j), symbols [nq, nk].
struct MaskSpace {
  static constexpr unsigned numDims = 4;
  static constexpr unsigned numSymbols = 2;

  explicit MaskSpace(MLIRContext *context) : context(context) {}

  AffineExpr query() const { return getAffineDimExpr(2, context); }
  AffineExpr key() const { return getAffineDimExpr(3, context); }
  /// The key that faces the query on the bottom-right diagonal.
  AffineExpr diagonal() const {
    return query() + getAffineSymbolExpr(1, context) -
           getAffineSymbolExpr(0, context);
  }
  /// The set in which every one of `nonNegative` is >= 0.
  IntegerSet set(ArrayRef<AffineExpr> nonNegative) const {
    if (nonNegative.empty())
      return IntegerSet::get(numDims, numSymbols,
                             getAffineConstantExpr(0, context), true);
    return IntegerSet::get(numDims, numSymbols, nonNegative,
                           SmallVector<bool>(nonNegative.size(), false));
  }

  MLIRContext *context;
};

/// No sequence is as long, and sums with such numbers would not fit in the 32
/// bits that indices have on a GPU.
constexpr int64_t endless = int64_t(1) << 30;

LogicalResult verifyMaskList(function_ref<InFlightDiagnostic()> emitError,
                             StringRef name,
                             ArrayRef<MaskAttrInterface> masks) {
  if (masks.empty())
    return emitError() << name << " needs at least one mask";
  return success();
}
} // namespace

MaskForm FullAttr::getForm() const { return MaskSpace(getContext()).set({}); }

MaskForm CausalAttr::getForm() const {
  MaskSpace space(getContext());
  AffineExpr diagonal =
      getAlignment() == Alignment::TopLeft ? space.query() : space.diagonal();
  return space.set({diagonal - space.key()});
}

MaskForm WindowAttr::getForm() const {
  MaskSpace space(getContext());
  SmallVector<AffineExpr> constraints;
  if (getLeft() && *getLeft() < endless)
    constraints.push_back(space.key() - space.diagonal() + *getLeft());
  if (getRight() && *getRight() < endless)
    constraints.push_back(space.diagonal() + *getRight() - space.key());
  return space.set(constraints);
}

LogicalResult WindowAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 std::optional<int64_t> left,
                                 std::optional<int64_t> right) {
  for (std::optional<int64_t> side : {left, right})
    if (side && (*side < 0 || *side > std::numeric_limits<int32_t>::max()))
      return emitError() << "window sides must be from 0 to 2147483647, got "
                         << *side << "; leave a side out to make it unbounded";
  return success();
}

MaskForm PrefixAttr::getForm() const {
  MaskSpace space(getContext());
  if (getLength() >= endless)
    return space.set({});
  return space.set({getLength() - 1 - space.key()});
}

LogicalResult PrefixAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 int64_t length) {
  if (length < 0 || length > std::numeric_limits<int32_t>::max())
    return emitError() << "prefix length must be from 0 to 2147483647, got "
                       << length;
  return success();
}

MaskForm AffineMaskAttr::getForm() const { return getSet().getValue(); }

/// Whether every divisor in `expr` is a positive constant; floordiv and mod
/// have no agreed meaning otherwise.
static bool hasPositiveDivisors(AffineExpr expr) {
  return !expr.walk([](AffineExpr part) {
                bool divides = part.getKind() == AffineExprKind::FloorDiv ||
                               part.getKind() == AffineExprKind::CeilDiv ||
                               part.getKind() == AffineExprKind::Mod;
                if (!divides)
                  return WalkResult::advance();
                auto divisor = dyn_cast<AffineConstantExpr>(
                    cast<AffineBinaryOpExpr>(part).getRHS());
                return divisor && divisor.getValue() > 0
                           ? WalkResult::advance()
                           : WalkResult::interrupt();
              })
              .wasInterrupted();
}

/// A constant in `expr` that does not fit in 32 bits, the indices of a GPU.
static std::optional<int64_t> findLargeConstant(AffineExpr expr) {
  std::optional<int64_t> found;
  expr.walk([&](AffineExpr part) {
    auto constant = dyn_cast<AffineConstantExpr>(part);
    if (constant && !llvm::isInt<32>(constant.getValue()))
      found = constant.getValue();
  });
  return found;
}

LogicalResult
AffineMaskAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                       IntegerSetAttr set) {
  IntegerSet value = set.getValue();
  if (value.getNumDims() != MaskSpace::numDims ||
      value.getNumSymbols() != MaskSpace::numSymbols)
    return emitError() << "the set of an affine mask is over (b, h, i, j)"
                       << "[nq, nk]: expected 4 dimensions and 2 symbols, got "
                       << value.getNumDims() << " and "
                       << value.getNumSymbols();
  for (AffineExpr constraint : value.getConstraints()) {
    bool isPureAffine = constraint.isPureAffine();
    std::optional<int64_t> large = findLargeConstant(constraint);
    if (isPureAffine && hasPositiveDivisors(constraint) && !large)
      continue;
    std::string text;
    llvm::raw_string_ostream(text) << constraint;
    if (isPureAffine && large)
      return emitError() << "constraint '" << text << "' of an affine mask has "
                         << "the constant " << *large
                         << ", which does not fit in 32 bits";
    if (isPureAffine)
      return emitError() << "constraint '" << text
                         << "' of an affine mask divides by a constant that is "
                         << "not positive";
    return emitError() << "constraint '" << text
                       << "' of an affine mask is not affine: products of "
                       << "variables and division by a symbol are not "
                       << "supported";
  }
  return success();
}

MaskForm AnyOfAttr::getForm() const {
  return {MaskForm::Kind::Union, getMasks()};
}

LogicalResult AnyOfAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                ArrayRef<MaskAttrInterface> masks) {
  return verifyMaskList(emitError, "any_of", masks);
}

MaskForm AllOfAttr::getForm() const {
  return {MaskForm::Kind::Intersection, getMasks()};
}

LogicalResult AllOfAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                ArrayRef<MaskAttrInterface> masks) {
  return verifyMaskList(emitError, "all_of", masks);
}
