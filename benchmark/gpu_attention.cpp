// The GPU's attention backends through the engine's own path: prepare_metadata() once a batch, then
// forward() of every layer (which stores K and V too), divided by the layers. The layers' pools lie
// apart and are larger than the L2 cache together, so every layer reads memory.
//
//   gpu_attention [--json FILE] [--backend NAME] [--quick]
//
// "library" is the best that the same kernels reached alone on the same kind of GPU (an H200), by
// CUDA events, without storing K and V: what this path is held to.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "attention/cuda/gpu_world.h"
#include "attention/cuda_backends.h"
#include "kernel/cuda_plugin.h"
#include "utils/error.h"

using namespace minisgl;

namespace {

struct Row {
  testing::GpuCase shape;
  double library;  // TB/s of decode, TFLOP/s of prefill; 0: not measured
};

std::vector<int64_t> repeat(size_t n, int64_t value) { return std::vector<int64_t>(n, value); }

testing::GpuCase make_case(std::string name, std::vector<int64_t> n, std::vector<int64_t> keys,
                           int64_t hq, int64_t page) {
  testing::GpuCase c;
  c.name = std::move(name);
  c.new_tokens = std::move(n);
  c.keys = std::move(keys);
  c.num_qo_heads = hq;
  c.num_kv_heads = 8;
  c.head_dim = 128;
  c.page_size = page;
  return c;
}

// 64 lengths from 64 to 8192, log-uniform.
std::vector<int64_t> uneven_lengths() {
  std::vector<int64_t> keys;
  for (int i = 0; i < 64; ++i) {
    keys.push_back(static_cast<int64_t>(64 * std::pow(128.0, ((i * 37) % 64) / 63.0)));
  }
  return keys;
}

std::vector<Row> decode_rows() {
  std::vector<Row> rows;
  const auto add = [&](const std::string& name, const std::vector<int64_t>& keys, int64_t hq,
                       std::initializer_list<std::pair<int64_t, double>> pages) {
    for (const auto& [page, best] : pages) {
      rows.push_back({make_case(name, repeat(keys.size(), 1), keys, hq, page), best});
    }
  };
  add("256x1024 16/8", repeat(256, 1024), 16, {{1, 4.18}, {16, 4.24}, {64, 4.26}, {128, 4.18}});
  add("128x1024 16/8", repeat(128, 1024), 16, {{1, 4.03}, {16, 4.09}, {64, 4.14}, {128, 4.15}});
  add("16x4096 32/8", repeat(16, 4096), 32, {{1, 3.68}, {16, 3.76}, {64, 3.83}, {128, 3.87}});
  add("1x32768 32/8", {32768}, 32, {{1, 3.00}, {16, 3.03}, {64, 3.20}, {128, 3.20}});
  add("1x2048 32/8", {2048}, 32, {{1, 0.604}, {64, 0.636}});
  add("8x2048 32/8", repeat(8, 2048), 32, {{1, 2.31}, {64, 2.60}});
  add("64x2048 32/8", repeat(64, 2048), 32, {{1, 3.98}, {64, 4.08}});
  add("64 uneven 32/8", uneven_lengths(), 32, {{1, 3.46}, {16, 3.56}, {64, 3.59}});
  return rows;
}

std::vector<Row> prefill_rows() {
  std::vector<Row> rows;
  const auto add = [&](const std::string& name, const std::vector<int64_t>& n,
                       const std::vector<int64_t>& keys, int64_t hq,
                       std::initializer_list<std::pair<int64_t, double>> pages) {
    for (const auto& [page, best] : pages) {
      rows.push_back({make_case(name, n, keys, hq, page), best});
    }
  };
  const auto fresh = [&](const std::string& name, const std::vector<int64_t>& lengths, int64_t hq,
                         std::initializer_list<std::pair<int64_t, double>> pages) {
    add(name, lengths, lengths, hq, pages);
  };
  fresh("1x8192 32/8", {8192}, 32, {{1, 636}, {16, 634}, {128, 709}});
  fresh("4x4096 16/8", repeat(4, 4096), 16, {{1, 581}, {16, 581}, {128, 645}});
  fresh("16x1024 16/8", repeat(16, 1024), 16, {{1, 387}, {16, 386}, {128, 415}});
  add("8x(512+1536) 32/8", repeat(8, 512), repeat(8, 2048), 32, {{1, 541}, {16, 541}, {128, 598}});
  std::vector<int64_t> n = repeat(8, 512), keys = repeat(8, 2048);
  for (int i = 0; i < 32; ++i) {
    n.push_back(1);
    keys.push_back(700 + 97 * i);
  }
  add("the same + 32 decode", n, keys, 32, {{1, 413}, {16, 414}, {128, 447}});
  add("1x(512+32256) 32/8", {512}, {32768}, 32, {{1, 639}, {64, 639}, {128, 716}});
  fresh("8 ragged 32/8", {64, 3000, 500, 1200, 20, 7000, 333, 2048}, 32,
        {{1, 595}, {64, 594}, {128, 658}});
  fresh("1x512 32/8", {512}, 32, {{64, 126}});
  return rows;
}

double kv_bytes(const testing::GpuCase& c) {
  double bytes = 0;
  for (const int64_t keys : c.keys)
    bytes += 4.0 * static_cast<double>(keys * c.num_kv_heads * c.head_dim);
  return bytes;
}
double flops(const testing::GpuCase& c) {
  double visible = 0;
  for (size_t i = 0; i < c.keys.size(); ++i) {
    const auto n = static_cast<double>(c.new_tokens[i]);
    visible += n * (static_cast<double>(c.keys[i]) - n) + n * (n + 1) / 2;
  }
  return 4.0 * static_cast<double>(c.num_qo_heads * c.head_dim) * visible;
}

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Microseconds a layer: median of `rounds` rounds of some batches each.
double time_layer(testing::GpuWorld& world, AttentionBackend& backend, int layers, int rounds) {
  const auto batch = [&] {
    backend.prepare_metadata(world.batch());
    for (int layer = 0; layer < layers; ++layer) world.forward(backend, layer);
  };
  batch();
  world.gpu().synchronize();
  double begin = seconds();
  batch();
  world.gpu().synchronize();
  const int batches = std::clamp(static_cast<int>(0.02 / (seconds() - begin)), 1, 50);
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) {
    begin = seconds();
    for (int i = 0; i < batches; ++i) batch();
    world.gpu().synchronize();
    times.push_back((seconds() - begin) / batches / layers * 1e6);
  }
  std::ranges::sort(times);
  return times[times.size() / 2];
}

struct Options {
  const char* json = nullptr;
  std::string backend;
  bool quick = false;
};

void measure(Kernels& gpu, const Row& row, bool decode, const Options& options) {
  const double bytes = kv_bytes(row.shape);
  const int layers = static_cast<int>(std::clamp(2e9 / bytes, 8.0, 28.0));
  testing::GpuWorld world(gpu, row.shape, layers);
  std::string line = fmt::format("{:22} page {:<4}", row.shape.name, row.shape.page_size);
  double best = 0;
  for (const BuiltAttention& built : cuda_attention_backends()) {
    if (!options.backend.empty() && options.backend != built.name) continue;
    const auto backend = built.make(gpu, world.pool());
    double us = 0;
    try {
      us = time_layer(world, *backend, layers, options.quick ? 3 : 7);
    } catch (const Error& error) {
      line += fmt::format("  {:>6} refused              ", built.name);
      continue;
    }
    const double rate = decode ? bytes / us * 1e-6 : flops(row.shape) / us * 1e-6;
    best = std::max(best, rate);
    line += decode ? fmt::format("  {:>6} {:9.1f} us {:6.2f} TB/s", built.name, us, rate)
                   : fmt::format("  {:>6} {:9.1f} us {:6.0f} TFLOP/s", built.name, us, rate);
    if (options.json != nullptr) {
      std::ofstream(options.json, std::ios::app)
          << fmt::format(
                 R"({{"benchmark": "gpu_attention", "commit": "{}", "machine": "{}", "case": "{}", "page_size": {}, "backend": "{}", "us": {:.2f}, "rate": {:.3f}, "unit": "{}", "library": {}, "ratio": {:.3f}}})",
                 MINISGL_COMMIT, gpu.description(), row.shape.name, row.shape.page_size, built.name,
                 us, rate, decode ? "TB/s" : "TFLOP/s", row.library, rate / row.library)
          << "\n";
    }
  }
  std::printf("%s  library %7.2f  best %3.0f %%\n", line.c_str(), row.library,
              100 * best / row.library);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--json") == 0 && i + 1 < argc) options.json = argv[++i];
    if (std::strcmp(argv[i], "--backend") == 0 && i + 1 < argc) options.backend = argv[++i];
    if (std::strcmp(argv[i], "--quick") == 0) options.quick = true;
  }
  try {
    const auto gpu = make_cuda_kernels(0);
    std::printf("%s, bfloat16, head dim 128; a layer's share of a batch, stream launches\n",
                gpu->description().c_str());
    for (const Row& row : decode_rows()) measure(*gpu, row, true, options);
    for (const Row& row : prefill_rows()) measure(*gpu, row, false, options);
  } catch (const Error& error) {
    std::fprintf(stderr, "gpu_attention: %s\n", error.what());
    return exit_code(error.kind());
  }
}
