// Matrix products of the CPU's kernels, against what the machine can read and multiply.
//
//   gemm [--threads N] [--isa NAME] [--json FILE]   prints a table; appends a JSON line a row to
//   FILE
//
// Times are the best of several: what the kernels can do when nobody else uses the cores. With few
// rows the weights are larger than the caches, as a whole model's are.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

#include "kernel/kernels.h"
#include "tensor/half.h"
#include "utils/math.h"
#include "utils/system.h"
#include "utils/thread_pool.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

using namespace minisgl;

namespace {

struct Shape {
  const char* model;
  const char* name;
  int64_t n, k;
};
constexpr Shape kShapes[] = {
    {"SmolLM2-135M", "qkv", 960, 576},       {"SmolLM2-135M", "o", 576, 576},
    {"SmolLM2-135M", "gate_up", 3072, 576},  {"SmolLM2-135M", "down", 576, 1536},
    {"SmolLM2-135M", "lm_head", 49152, 576}, {"Qwen3-0.6B", "qkv", 4096, 1024},
    {"Qwen3-0.6B", "o", 1024, 2048},         {"Qwen3-0.6B", "gate_up", 6144, 1024},
    {"Qwen3-0.6B", "down", 1024, 3072},
};
constexpr DType kFormats[] = {DType::kFloat32, DType::kBFloat16, DType::kQ8_0,
                              DType::kQ4_1,    DType::kQ4_K,     DType::kQ6_K};
constexpr int64_t kRows[] = {1, 8, 32, 512};
constexpr int64_t kBeyondCaches = int64_t{96} << 20;

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// The best time of `work`, repeated for about `budget` seconds, at least three times.
template <class Work>
double best_seconds(double budget, Work work) {
  double best = 1e9;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 3 || seconds_since(start) < budget; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    best = std::min(best, seconds_since(begin));
  }
  return best;
}

// ---- what the machine can do ----

std::atomic<uint64_t> sink{0};  // keeps results alive

double read_bytes_per_second(ThreadPool& threads) {
  const int64_t words = int64_t{32} << 20;
  const std::vector<uint64_t> data(static_cast<size_t>(words), 1);
  const int64_t tasks = 64;
  const double seconds = best_seconds(0.5, [&] {
    threads.parallel_for(tasks, [&](int64_t task) {
      uint64_t sums[8] = {};
      const uint64_t* p = data.data() + task * (words / tasks);
      for (int64_t i = 0; i < words / tasks; i += 8) {
        for (int j = 0; j < 8; ++j) sums[j] += p[i + j];
      }
      uint64_t total = 0;
      for (const uint64_t sum : sums) total += sum;
      sink += total;
    });
  });
  return static_cast<double>(words) * 8 / seconds;
}

#if defined(__x86_64__)
constexpr int kChains = 12;
constexpr int64_t kFmaLoops = 1 << 18;

__attribute__((target("avx512f"))) float fma_loop_512(float x) {
  __m512 sums[kChains];
  for (auto& sum : sums) sum = _mm512_set1_ps(x);
  const __m512 a = _mm512_set1_ps(x);
  for (int64_t i = 0; i < kFmaLoops; ++i) {
#pragma GCC unroll 12
    for (int j = 0; j < kChains; ++j) sums[j] = _mm512_fmadd_ps(a, sums[j], a);
  }
  for (int j = 1; j < kChains; ++j) sums[0] = _mm512_add_ps(sums[0], sums[j]);
  return _mm512_cvtss_f32(sums[0]);
}
__attribute__((target("avx2,fma"))) float fma_loop_256(float x) {
  __m256 sums[kChains];
  for (auto& sum : sums) sum = _mm256_set1_ps(x);
  const __m256 a = _mm256_set1_ps(x);
  for (int64_t i = 0; i < kFmaLoops; ++i) {
#pragma GCC unroll 12
    for (int j = 0; j < kChains; ++j) sums[j] = _mm256_fmadd_ps(a, sums[j], a);
  }
  for (int j = 1; j < kChains; ++j) sums[0] = _mm256_add_ps(sums[0], sums[j]);
  return _mm256_cvtss_f32(sums[0]);
}
// Float32 multiply-adds in registers, on all threads; 0 where this program has no loop for it.
double peak_flops(ThreadPool& threads) {
  const CpuFeatures features = cpu_features();
  if (!features.avx2) return 0;
  const double lanes = features.avx512 ? 16 : 8;
  const double seconds = best_seconds(0.5, [&] {
    threads.parallel_for(threads.size(), [&](int64_t) {
      sink += static_cast<uint64_t>(features.avx512 ? fma_loop_512(0.5f) : fma_loop_256(0.5f));
    });
  });
  return 2.0 * lanes * kChains * kFmaLoops * threads.size() / seconds;
}
#else
double peak_flops(ThreadPool&) { return 0; }
#endif

// ---- the products ----

std::vector<std::byte> random_weights(DType dtype, int64_t n, int64_t k) {
  std::vector<std::byte> bytes(static_cast<size_t>(n * bytes_of(dtype, k)));
  std::mt19937_64 random(1);
  for (size_t i = 0; i + 8 <= bytes.size(); i += 8) {
    // No exponent of all ones anywhere: scales must be numbers.
    const uint64_t word = random() & 0x3bff3bff3bff3bff;
    std::memcpy(bytes.data() + i, &word, 8);
  }
  return bytes;
}

struct Result {
  double seconds, flops, bytes;
};

Result measure(Kernels& kernels, const Shape& shape, DType format, int64_t rows) {
  const std::vector<std::byte> raw_bytes = random_weights(format, shape.n, shape.k);
  const RawMatrix raw = {format, shape.n, shape.k, raw_bytes.data()};
  std::vector<std::unique_ptr<PackedMatrix>> copies;
  do {
    copies.push_back(kernels.pack({&raw, 1}, DType::kFloat32));
  } while (rows <= 32 && static_cast<int64_t>(copies.size()) * copies[0]->bytes() < kBeyondCaches);
  const Tensor x = Tensor::zeros(DType::kFloat32, {rows, shape.k});
  const Tensor y = Tensor::zeros(DType::kFloat32, {rows, shape.n});
  std::fill_n(x.view().data<float>(), rows * shape.k, 0.5f);

  const double total = best_seconds(0.2, [&] {
    for (const auto& w : copies) kernels.linear(y, x, *w, {});
  });
  const double seconds = total / static_cast<double>(copies.size());
  return {seconds, 2.0 * static_cast<double>(rows * shape.n * shape.k) / seconds,
          static_cast<double>(copies[0]->bytes()) / seconds};
}

bool fits(const Shape& shape, DType format, int64_t rows) {
  if (shape.k % block_size(format) != 0) return false;
  return shape.n < 10000 || rows <= 32;  // a head multiplies few rows
}

struct Options {
  int threads = usable_cores();
  std::string isa = "auto";
  const char* json = nullptr;
  std::string only;  // part of "MODEL MATRIX WEIGHTS"
};

bool parse(Options& options, int argc, char** argv) {
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--threads") == 0) {
      options.threads = std::max(1, std::atoi(argv[i + 1]));
    } else if (std::strcmp(argv[i], "--isa") == 0) {
      options.isa = argv[i + 1];
    } else if (std::strcmp(argv[i], "--json") == 0) {
      options.json = argv[i + 1];
    } else if (std::strcmp(argv[i], "--only") == 0) {
      options.only = argv[i + 1];
    } else {
      return false;
    }
  }
  return argc % 2 == 1;
}

}  // namespace

int main(int argc, char** argv) try {
  Options options;
  if (!parse(options, argc, argv)) {
    fmt::print(stderr, "usage: {} [--threads N] [--isa NAME] [--only TEXT] [--json FILE]\n",
               argv[0]);
    return 2;
  }
  FILE* json = options.json == nullptr ? nullptr : std::fopen(options.json, "a");
  if (options.json != nullptr && json == nullptr) {
    fmt::print(stderr, "cannot write {}\n", options.json);
    return 1;
  }
  ThreadPool threads(options.threads);
  const auto kernels = make_cpu_kernels(threads, options.isa);
  const double bandwidth = read_bytes_per_second(threads);
  const double peak = peak_flops(threads);
  fmt::print("{}, {}: reads {:.1f} GB/s, float32 peak {:.0f} GFLOP/s\n\n", cpu_model_name(),
             kernels->description(), bandwidth / 1e9, peak / 1e9);
  fmt::print("{:<13} {:<8} {:>6} {:>5} {:<9} {:>4} | {:>10} | {:>7} {:>5} | {:>7} {:>5}\n", "model",
             "matrix", "N", "K", "weights", "M", "us", "GB/s", "%", "GFLOP/s", "%");
  for (const Shape& shape : kShapes) {
    for (const DType format : kFormats) {
      const std::string name = fmt::format("{} {} {}", shape.model, shape.name, dtype_name(format));
      if (name.find(options.only) == std::string::npos) continue;
      for (const int64_t rows : kRows) {
        if (!fits(shape, format, rows)) continue;
        const Result result = measure(*kernels, shape, format, rows);
        const double of_bandwidth = 100 * result.bytes / bandwidth;
        const double of_peak = peak > 0 ? 100 * result.flops / peak : 0;
        fmt::print(
            "{:<13} {:<8} {:>6} {:>5} {:<9} {:>4} | {:>10.1f} | {:>7.1f} {:>4.0f}% | {:>7.1f} "
            "{:>4.0f}%\n",
            shape.model, shape.name, shape.n, shape.k, dtype_name(format), rows,
            result.seconds * 1e6, result.bytes / 1e9, of_bandwidth, result.flops / 1e9, of_peak);
        if (json == nullptr) continue;
        fmt::print(json,
                   R"({{"benchmark":"gemm","machine":"{}","commit":"{}","kernels":"{}",)"
                   R"("model":"{}","matrix":"{}","n":{},"k":{},"weights":"{}","m":{},"us":{:.1f},)"
                   R"("gb_per_s":{:.2f},"read_gb_per_s":{:.2f},"gflop_per_s":{:.2f},)"
                   R"("peak_gflop_per_s":{:.1f}}})"
                   "\n",
                   cpu_model_name(), MINISGL_COMMIT, kernels->description(), shape.model,
                   shape.name, shape.n, shape.k, dtype_name(format), rows, result.seconds * 1e6,
                   result.bytes / 1e9, bandwidth / 1e9, result.flops / 1e9, peak / 1e9);
      }
    }
  }
  if (json != nullptr) std::fclose(json);
} catch (const std::exception& e) {
  fmt::print(stderr, "{}\n", e.what());
  return 1;
}
