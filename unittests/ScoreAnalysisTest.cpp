//===- ScoreAnalysisTest.cpp - What analyses of scores answer -------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Asks small score regions what they do to a score, what their values depend on
// and how large they are; elements of tensors what they mean; and formulas of
// masks which elements they keep.
//
//===----------------------------------------------------------------------===//

#include "flash/Analysis/ScoreAnalysis.h"
#include "flash/Analysis/MaskTiles.h"
#include "flash/Analysis/ScoreDependence.h"
#include "flash/Analysis/ScoreRanges.h"
#include "flash/Analysis/ScoreRegion.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace flash;

static int numFailures = 0;

static void check(bool condition, const llvm::Twine &text) {
  if (condition)
    return;
  llvm::outs() << "FAILED: " << text << "\n";
  ++numFailures;
}

static OwningOpRef<ModuleOp> parse(MLIRContext *context, const Twine &text) {
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(text.str(), context);
  if (!module)
    llvm::report_fatal_error("a text of the test is wrong");
  return module;
}

/// Asks the score region that `body` computes `results` in, of 2 batches, 4
/// heads, any number of queries and 128 keys.
static void ask(MLIRContext *context, StringRef body, StringRef results,
                function_ref<void(AttentionOp)> questions) {
  OwningOpRef<ModuleOp> module = parse(context, llvm::formatv(R"(
    func.func @f(%q: tensor<2x4x?x16xf32>, %k: tensor<2x4x128x16xf32>,
                 %t: tensor<?xf32>, %m: tensor<?x?xi1>) -> tensor<2x4x?x16xf32> {{
      %o = flash.attention %q, %k, %k score {{
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %inf = arith.constant 0xFF800000 : f32
        {0}
        flash.yield {1}
      } : (tensor<2x4x?x16xf32>, tensor<2x4x128x16xf32>, tensor<2x4x128x16xf32>) -> tensor<2x4x?x16xf32>
      return %o : tensor<2x4x?x16xf32>
    })",
                                                              body, results));
  module->walk(questions);
}

static void testRegions(MLIRContext *context) {
  struct {
    StringRef body, results;
    bool changes, masks, readsToMask, hasGuards, readsPairs, isLinear;
    size_t numChoices;
  } const cases[] = {
      {"", "%s : f32", false, false, false, false, false, true, 0},
      {"%r = arith.addf %s, %s : f32", "%r : f32", true, false, false, false,
       false, true, 0},
      {"%r = arith.mulf %s, %s : f32", "%r : f32", true, false, false, false,
       false, false, 0},
      {"%c = arith.cmpi sge, %i, %j : index", "%s keep %c : f32", false, true,
       false, false, false, true, 0},
      {R"(%g = flash.guard %i else 0 : index
          %c = tensor.extract %m[%g, %j] : tensor<?x?xi1>)",
       "%s keep %c : f32", false, true, true, true, true, true, 0},
      // By position, then by the score, which is no mask.
      {R"(%c = arith.cmpi sge, %i, %j : index
          %d = arith.cmpf ogt, %s, %inf : f32
          %x = arith.select %d, %s, %inf : f32
          %r = arith.select %c, %x, %inf : f32)",
       "%r : f32", true, false, false, false, false, false, 1},
      {R"(%c = arith.cmpi sge, %i, %j : index
          %d = arith.cmpi sge, %j, %h : index
          %x = arith.select %d, %inf, %s : f32
          %r = arith.select %c, %x, %inf : f32)",
       "%r : f32", true, false, false, false, false, true, 2},
  };
  for (const auto &expected : cases)
    ask(context, expected.body, expected.results, [&](AttentionOp op) {
      Region &score = op.getScore();
      check(changesScore(score) == expected.changes &&
                masksElements(score) == expected.masks &&
                readsToMask(score) == expected.readsToMask &&
                hasGuards(score) == expected.hasGuards &&
                readsPairs(score) == expected.readsPairs &&
                isLinearInScore(score) == expected.isLinear,
            "what is done to a score: " + expected.body);
      MaskingChoices choices = getMaskingChoices(score.front());
      check(choices.outermostFirst.size() == expected.numChoices,
            "choices of -inf: " + expected.body);
      check(expected.numChoices != 2 ||
                (!choices.outermostFirst[0].keepsIfFalse &&
                 choices.outermostFirst[1].keepsIfFalse &&
                 choices.score == score.getArgument(0)),
            "which branch keeps a score: " + expected.body);
    });
}

static void testDependences(MLIRContext *context) {
  // The last read is the only one whose gradient is summed by distance: the
  // first is at a pair, and the second is multiplied.
  ask(context, R"(%c3 = arith.constant 3 : index
                  %x = arith.subi %i, %j : index
                  %d = arith.addi %x, %c3 : index
                  %w = arith.muli %i, %j : index
                  %t0 = tensor.extract %t[%w] : tensor<?xf32>
                  %t1 = tensor.extract %t[%x] : tensor<?xf32>
                  %t2 = tensor.extract %t[%d] : tensor<?xf32>
                  %e = arith.addi %x, %b : index
                  %t3 = tensor.extract %t[%e] : tensor<?xf32>
                  %p = arith.mulf %t0, %t1 : f32
                  %y = arith.addf %s, %t2 : f32
                  %r = arith.addf %y, %p : f32)",
      "%r : f32", [](AttentionOp op) {
        Region &score = op.getScore();
        ScoreDependences dependences(score);
        auto reads = llvm::to_vector(score.getOps<tensor::ExtractOp>());
        auto indexOf = [&](unsigned read) {
          return dependences.get(reads[read].getIndices()[0]);
        };
        check(indexOf(1).getDistance() == 0 && indexOf(2).getDistance() == 3 &&
                  !indexOf(0).getDistance(),
              "distances of a query from a key");
        check(indexOf(2).isDistance() && indexOf(3).isDistance() &&
                  !indexOf(3).getDistance() && !indexOf(0).isDistance(),
              "distances to which what a batch tells is added");
        check(indexOf(0).isOnPairs() && !indexOf(2).isOnPairs() &&
                  readsPairs(score),
              "reads at pairs");
        check(!isSumByDistance(reads[0], dependences) &&
                  !isSumByDistance(reads[1], dependences) &&
                  isSumByDistance(reads[2], dependences) &&
                  hasSumByDistance(score, reads[0].getTensor()),
              "sums by distance");
      });
}

static void testRanges(MLIRContext *context) {
  ask(context, R"(%c2 = arith.constant 2 : index
                  %x = arith.muli %j, %c2 : index
                  %y = arith.subi %x, %i : index
                  %n = arith.index_cast %y : index to i32
                  %f = arith.sitofp %n : i32 to f32
                  %r = arith.addf %s, %f : f32)",
      "%r : f32", [](AttentionOp op) {
        std::array<int64_t, 4> extents = getExtents(op);
        check(extents[0] == 2 && extents[1] == 4 &&
                  ShapedType::isDynamic(extents[2]) && extents[3] == 128,
              "extents");
        Block &score = op.getScore().front();
        ScoreRanges ranges(score, extents, {/*heads=*/16, /*length=*/1000, 0});
        for (auto subtraction : score.getOps<arith::SubIOp>()) {
          ConstantIntRanges range = ranges.get(subtraction.getResult());
          check(range.smin().getSExtValue() == -999 &&
                    range.smax().getSExtValue() == 254,
                "the range of 2 * key - query");
        }
      });
}

/// A causal mask that is added as -inf to scaled scores, and a softmax.
static void testElements(MLIRContext *context) {
  OwningOpRef<ModuleOp> module = parse(context, R"(
    #id = affine_map<(b, i, j) -> (b, i, j)>
    func.func @f(%q: tensor<2x8x16xf32>, %k: tensor<2x16x8xf32>) -> tensor<2x8x8xf32> {
      %zero = arith.constant 0.0 : f32
      %half = arith.constant 0.5 : f32
      %inf = arith.constant 0xFF800000 : f32
      %e = tensor.empty() : tensor<2x8x8xf32>
      %s0 = linalg.fill ins(%zero : f32) outs(%e : tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
      %s = linalg.batch_matmul ins(%q, %k : tensor<2x8x16xf32>, tensor<2x16x8xf32>) outs(%s0 : tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
      %m = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
          ins(%s : tensor<2x8x8xf32>) outs(%e : tensor<2x8x8xf32>) {
      ^bb0(%x: f32, %o: f32):
        %i = linalg.index 1 : index
        %j = linalg.index 2 : index
        %y = arith.mulf %x, %half : f32
        %c = arith.cmpi ugt, %j, %i : index
        %r = arith.select %c, %inf, %y : f32
        linalg.yield %r : f32
      } -> tensor<2x8x8xf32>
      %p = linalg.softmax dimension(2) ins(%m : tensor<2x8x8xf32>) outs(%e : tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
      return %p : tensor<2x8x8xf32>
    })");
  Value result;
  module->walk([&](func::ReturnOp op) { result = op.getOperand(0); });
  AffineExpr b = getAffineDimExpr(1, context),
             i = getAffineDimExpr(queryVar, context),
             j = getAffineDimExpr(keyVar, context);
  ScoreAnalysis analysis(context);
  std::optional<Element> element = analysis.evaluate(result, {b, i, j});
  bool isUnderstood = element && element->kind == Element::Probability;
  check(isUnderstood, "what a probability is");
  if (!isUnderstood)
    return;
  check(element->scale == 0.5, "the scale of a score");
  check(element->kept.toMask(context, 8, 8) ==
            CausalAttr::get(context, Alignment::BottomRight),
        "the mask of a score");
  // The score without its mask, the one with it, and the softmax.
  check(analysis.getScoreTensors().size() == 3, "tensors of scores");
  check(!ScoreAnalysis(context).evaluate(result, {b, j, i}),
        "a softmax of columns is none of rows");
}

static void testFormulas(MLIRContext *context) {
  using Predicate = arith::CmpIPredicate;
  AffineExpr i = getAffineDimExpr(queryVar, context),
             j = getAffineDimExpr(keyVar, context);
  MaskFormula isBefore = *MaskFormula::compare(Predicate::sle, j, i),
              isSame = *MaskFormula::compare(Predicate::eq, j % 4, i % 4);
  check(!MaskFormula::compare(Predicate::ult, i - j, i),
        "an unsigned comparison of what may be negative");
  check(MaskFormula::compare(Predicate::sge, i + j, i * 0)->isAlways(),
        "positions are not negative");
  constexpr int64_t n = 12;
  auto checkKeeps = [&](std::optional<MaskFormula> formula, StringRef name,
                        function_ref<bool(int64_t, int64_t)> keeps) {
    check(formula.has_value(), name + " has too many sets");
    int64_t expected = 0;
    for (int64_t query = 0; query < n; ++query)
      for (int64_t key = 0; key < n; ++key)
        expected += keeps(query, key);
    check(formula && countUnmasked(formula->toMask(context, n, n),
                                   {1, 1, n, n}) == expected,
          name + " keeps other elements");
  };
  checkKeeps(isBefore.conjoin(isSame), "a conjunction",
             [](int64_t i, int64_t j) { return j <= i && i % 4 == j % 4; });
  checkKeeps(isBefore.disjoin(isSame), "a disjunction",
             [](int64_t i, int64_t j) { return j <= i || i % 4 == j % 4; });
  checkKeeps(isBefore.conjoin(isSame)->negate(), "a negation",
             [](int64_t i, int64_t j) { return j > i || i % 4 != j % 4; });
}

int main() {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<FlashDialect, arith::ArithDialect, func::FuncDialect,
                      linalg::LinalgDialect, tensor::TensorDialect>();
  testRegions(&context);
  testDependences(&context);
  testRanges(&context);
  testElements(&context);
  testFormulas(&context);
  llvm::outs() << numFailures << " failures\n";
  return numFailures != 0;
}
