// Decodes over pages in a CUDA graph: the launch of a header is captured once,
// and replayed for each new token. What differs from token to token lies in
// device memory. Needs a C++17 compiler, cuda.h and the CUDA driver, and
// neither MLIR nor LLVM; see README.md.
#include "decode.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

namespace {

constexpr int sequences = 3, heads = 8, keyHeads = 2, dim = 64;
constexpr int page = 16; // Rows of a page, as decode.mlir has it.
// Pages that a sequence may have: its room is 256 tokens.
constexpr int columns = 16;
constexpr int pages = sequences * columns;
constexpr int tokens = 20; // That are appended to each sequence.

void require(CUresult result, const char *what) {
  const char *text = "unknown error";
  if (result == CUDA_SUCCESS)
    return;
  cuGetErrorString(result, &text);
  std::fprintf(stderr, "%s: %s\n", what, text);
  std::exit(1);
}

/// Of the header's functions, which say themselves what is wrong.
void requireOfHeader(CUresult result, const char *message) {
  if (result == CUDA_SUCCESS)
    return;
  std::fprintf(stderr, "%s\n", message);
  std::exit(1);
}

/// An array on the host, and one like it in device memory.
template <typename T> struct Array {
  std::vector<T> host;
  CUdeviceptr device = 0;

  Array(size_t size, T value) : host(size, value) {
    require(cuMemAlloc(&device, size * sizeof(T)), "cuMemAlloc");
  }
  Array(const Array &) = delete;
  ~Array() { cuMemFree(device); }

  void upload(CUstream stream, size_t first, size_t count) {
    require(cuMemcpyHtoDAsync(device + first * sizeof(T), &host[first],
                              count * sizeof(T), stream),
            "cuMemcpyHtoDAsync");
  }
  void upload(CUstream stream) { upload(stream, 0, host.size()); }
  void download(CUstream stream) {
    require(
        cuMemcpyDtoHAsync(host.data(), device, host.size() * sizeof(T), stream),
        "cuMemcpyDtoHAsync");
    require(cuStreamSynchronize(stream), "the kernels");
  }
};

/// What the header calls a tensor; strides count elements.
decode_tensor describe(CUdeviceptr address, std::vector<int64_t> sizes,
                       std::vector<int64_t> strides) {
  decode_tensor tensor = {address, static_cast<int>(sizes.size()), {}, {}};
  for (size_t d = 0; d < sizes.size(); ++d) {
    tensor.sizes[d] = sizes[d];
    tensor.strides[d] = strides[d];
  }
  return tensor;
}

/// A batch of sequences and its cache. Everything has its largest size from the
/// start, so that addresses, sizes and strides, which a graph holds, never
/// change.
struct Batch {
  Array<float> query{sequences * heads * dim, 0},
      output{sequences * heads * dim, 0};
  // (pages, rows of a page, key heads, dim). Rows that no sequence has may hold
  // anything.
  Array<float> keys{pages * page * keyHeads * dim, NAN},
      values{pages * page * keyHeads * dim, NAN};
  // The pages of each sequence in their order. Those behind its length are not
  // read.
  Array<int32_t> table{sequences * columns, -1};
  Array<int32_t> lengths{sequences, 0};
  std::vector<int> freePages;
  std::mt19937 random{1};

  Batch() {
    for (int i = 0; i < pages; ++i) // In no order.
      freePages.push_back(i * 5 % pages);
  }

  float draw() { return std::uniform_real_distribution<float>(-1, 1)(random); }

  /// Where the row of a key or value of a sequence starts.
  size_t find(int sequence, int position, int head) const {
    size_t row =
        static_cast<size_t>(table.host[sequence * columns + position / page]) *
            page +
        position % page;
    return (row * keyHeads + head) * dim;
  }

  /// Gives a sequence another token, and a page where its last one is full. In
  /// a model, kernels compute keys and values where they belong; then nothing
  /// but table and lengths comes from the host.
  void append(int sequence, CUstream stream) {
    int position = lengths.host[sequence]++;
    if (position % page == 0) {
      size_t entry = sequence * columns + position / page;
      table.host[entry] = freePages.back();
      freePages.pop_back();
      table.upload(stream, entry, 1);
    }
    size_t first = find(sequence, position, 0), count = keyHeads * dim;
    for (size_t i = first; i < first + count; ++i) {
      keys.host[i] = draw();
      values.host[i] = draw();
    }
    keys.upload(stream, first, count);
    values.upload(stream, first, count);
    lengths.upload(stream, sequence, 1);
  }

  /// Queries of the tokens that come next.
  void drawQueries(CUstream stream) {
    for (float &element : query.host)
      element = draw();
    query.upload(stream);
  }

  /// The largest error of the output, by the definition of attention. NaN
  /// counts as an infinite one.
  double findError() const {
    double worst = 0;
    for (int sequence = 0; sequence < sequences; ++sequence)
      for (int head = 0; head < heads; ++head) {
        int keyHead = head / (heads / keyHeads),
            length = lengths.host[sequence];
        const float *row = &query.host[(sequence * heads + head) * dim];
        double sum = 0, weighted[dim] = {};
        for (int j = 0; j < length; ++j) {
          size_t at = find(sequence, j, keyHead);
          double score = 0;
          for (int d = 0; d < dim; ++d)
            score += static_cast<double>(row[d]) * keys.host[at + d];
          double weight =
              std::exp(score / std::sqrt(double(dim))); // Scores are at most 8.
          sum += weight;
          for (int d = 0; d < dim; ++d)
            weighted[d] += weight * values.host[at + d];
        }
        for (int d = 0; d < dim; ++d) {
          double expected = length ? weighted[d] / sum : 0;
          double error = std::fabs(
              output.host[(sequence * heads + head) * dim + d] - expected);
          worst = std::isnan(error) ? HUGE_VAL : std::fmax(worst, error);
        }
      }
    return worst;
  }
};

/// Builds, captures, replays; the largest error.
double run() {
  const char *message = "";
  decode_module module;
  requireOfHeader(decode_load(&module, &message), message);
  CUstream stream;
  require(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");

  Batch batch;
  batch.keys.upload(stream);
  batch.values.upload(stream);
  batch.table.upload(stream);
  batch.lengths.upload(stream);
  std::vector<int64_t> cacheSizes = {pages, keyHeads, page, dim};
  // Each position has its heads side by side, as engines have it: strides are
  // free but for the last.
  std::vector<int64_t> cacheStrides = {page * keyHeads * dim, dim,
                                       keyHeads * dim, 1};
  decode_tensor query = describe(batch.query.device, {sequences, heads, 1, dim},
                                 {heads * dim, dim, dim, 1});
  decode_tensor keys = describe(batch.keys.device, cacheSizes, cacheStrides);
  decode_tensor values =
      describe(batch.values.device, cacheSizes, cacheStrides);
  decode_tensor table =
      describe(batch.table.device, {sequences, columns}, {columns, 1});
  decode_tensor lengths = describe(batch.lengths.device, {sequences}, {1});
  decode_tensor output;
  requireOfHeader(decode_shapes(&query, &keys, &values, &table, &lengths,
                                &output, &message),
                  message);
  output.address = batch.output.device;

  // The workspace depends on sizes alone, and so it is as large for all that
  // these tensors may ever hold.
  size_t bytes = 0;
  requireOfHeader(decode_workspace(&query, &keys, &values, &table, &lengths,
                                   &bytes, &message),
                  message);
  CUdeviceptr workspace = 0;
  if (bytes > 0)
    require(cuMemAlloc(&workspace, bytes), "cuMemAlloc");

  CUgraph graph;
  CUgraphExec replayed;
  require(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL),
          "cuStreamBeginCapture");
  requireOfHeader(decode_launch(&module, stream, workspace, bytes, &query,
                                &keys, &values, &table, &lengths, &output,
                                &message),
                  message);
  require(cuStreamEndCapture(stream, &graph), "cuStreamEndCapture");
  require(cuGraphInstantiate(&replayed, graph, 0), "cuGraphInstantiate");

  // Prompts of 40 and of 13 tokens; the last sequence has none yet.
  for (int i = 0; i < 40; ++i)
    batch.append(0, stream);
  for (int i = 0; i < 13; ++i)
    batch.append(1, stream);
  double worst = 0;
  for (int token = 0; token <= tokens; ++token) {
    batch.drawQueries(stream);
    require(cuGraphLaunch(replayed, stream), "cuGraphLaunch");
    batch.output.download(stream);
    worst = std::fmax(worst, batch.findError());
    if (token < tokens)
      for (int sequence = 0; sequence < sequences; ++sequence)
        batch.append(sequence, stream);
  }
  std::printf("%d replays, lengths %d, %d and %d, workspace %zu bytes\n",
              tokens + 1, batch.lengths.host[0], batch.lengths.host[1],
              batch.lengths.host[2], bytes);

  require(cuGraphExecDestroy(replayed), "cuGraphExecDestroy");
  require(cuGraphDestroy(graph), "cuGraphDestroy");
  require(cuStreamDestroy(stream), "cuStreamDestroy");
  if (bytes > 0)
    require(cuMemFree(workspace), "cuMemFree");
  require(decode_unload(&module), "unload");
  return worst;
}

} // namespace

int main() {
  CUdevice device;
  CUcontext context;
  require(cuInit(0), "cuInit");
  require(cuDeviceGet(&device, 0), "cuDeviceGet");
  require(cuDevicePrimaryCtxRetain(&context, device), "the context");
  require(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  double worst = run();
  std::printf("largest error: %g\n", worst);
  return worst <= 1e-5 ? 0 : 1;
}
