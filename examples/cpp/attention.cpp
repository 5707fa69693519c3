// Compiles an attention from text, runs it on the CPU and compares the result
// with a loop; see README.md.
#include "flash-c/Flash.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <stdexcept>
#include <vector>

// Causal, with a soft cap. Sizes are open but for the head dimension.
static const char program[] = R"(
func.func @attention(%q: tensor<?x?x?x64xf32>, %k: tensor<?x?x?x64xf32>,
                     %v: tensor<?x?x?x64xf32>) -> tensor<?x?x?x64xf32> {
  %o = flash.attention %q, %k, %v mask(#flash.causal) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %cap = arith.constant 5.0 : f32
    %x = arith.divf %s, %cap : f32
    %t = math.tanh %x : f32
    %r = arith.mulf %t, %cap : f32
    flash.yield %r : f32
  } : (tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>)
      -> tensor<?x?x?x64xf32>
  return %o : tensor<?x?x?x64xf32>
}
)";

static void require(FlashStatus status) {
  if (status != FLASH_SUCCESS)
    throw std::runtime_error(flashGetErrorMessage());
}

using Kernel = std::unique_ptr<FlashKernel, decltype(&flashKernelDestroy)>;
using Buffer = std::unique_ptr<FlashBuffer, decltype(&flashBufferDestroy)>;

static Kernel compile(const char *text) {
  FlashCompileOptions options = {};
  options.struct_size = sizeof options;
  options.target = "cpu";
  FlashKernel *kernel = nullptr;
  require(flashKernelCompile(text, std::strlen(text), &options, &kernel));
  return Kernel(kernel, flashKernelDestroy);
}

static const int64_t heads = 4, length = 300, dim = 64;
static const int64_t sizes[] = {1, heads, length, dim};
static const int64_t strides[] = {heads * length * dim, length *dim, dim, 1};

// One element of the result, by the definition of attention.
static double expect(const float *q, const float *k, const float *v,
                     int64_t head, int64_t query, int64_t column) {
  double sum = 0, total = 0;
  for (int64_t key = 0; key <= query; ++key) {
    double score = 0;
    for (int64_t d = 0; d < dim; ++d)
      score += double(q[(head * length + query) * dim + d]) *
               k[(head * length + key) * dim + d];
    double weight = std::exp(5.0 * std::tanh(score / std::sqrt(dim) / 5.0));
    sum += weight;
    total += weight * v[(head * length + key) * dim + column];
  }
  return total / sum;
}

static double findLargestError() {
  Kernel kernel = compile(program);
  std::mt19937 generator(0);
  std::normal_distribution<float> normal;
  std::vector<float> values[3];
  FlashTensor arguments[3];
  for (int i = 0; i < 3; ++i) {
    values[i].resize(heads * length * dim);
    std::generate(values[i].begin(), values[i].end(),
                  [&] { return normal(generator); });
    arguments[i] = {values[i].data(), 4, sizes, strides};
  }
  FlashBuffer *result = nullptr;
  require(flashKernelRun(kernel.get(), arguments, 3, &result));
  Buffer buffer(result, flashBufferDestroy);
  auto *output = static_cast<const float *>(flashBufferGetTensor(result).data);

  double worst = 0;
  for (int64_t head = 0; head < heads; ++head)
    for (int64_t query = 0; query < length; query += 13)
      for (int64_t column = 0; column < dim; column += 7) {
        double error = std::abs(output[(head * length + query) * dim + column] -
                                expect(values[0].data(), values[1].data(),
                                       values[2].data(), head, query, column));
        if (!(error <= worst)) // Also where it is NaN.
          worst = error;
      }
  return worst;
}

int main() try {
  double error = findLargestError();
  std::printf("flash-mlir %s, largest error: %.1e\n", flashGetVersion(), error);
  return error < 1e-5 ? 0 : 1;
} catch (const std::exception &error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
