// A model's steps on a GPU, host work included: decode at context 512 and a prefill of 16 x 1024
// tokens, with random weights in bfloat16.
//
//   gpu_step [--model 0.6b|14b|FOLDER] [--attention NAME] [--graph N] [--page N] [--json FILE]
//
// The limit of a decode step is the bytes that it must read (weights, K and V) over what a large
// copy on an H200 moves a second, 4.27 TB/s.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>

#include "engine/engine.h"
#include "utils/error.h"

using namespace minisgl;

namespace {

constexpr double kBytesASecond = 4.27e12;
constexpr int64_t kContext = 512;

struct Options {
  std::string model = "0.6b";
  std::string attention = "auto";
  int64_t graph = 256;
  int64_t page = 16;
  const char* json = nullptr;
};

// Qwen3's published shapes.
std::string config_folder(const std::string& name) {
  struct Shape {
    const char* name;
    int layers, hidden, heads, intermediate;
    bool tied;
  };
  constexpr Shape kShapes[] = {{"0.6b", 28, 1024, 16, 3072, true},
                               {"14b", 40, 5120, 40, 17408, false}};
  for (const Shape& shape : kShapes) {
    if (name != shape.name) continue;
    const auto dir = std::filesystem::temp_directory_path() / ("minisgl_qwen3_" + name);
    std::filesystem::create_directories(dir);
    std::ofstream(dir / "config.json") << fmt::format(
        R"({{"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": {},
             "num_hidden_layers": {}, "num_attention_heads": {}, "num_key_value_heads": 8,
             "head_dim": 128, "intermediate_size": {}, "vocab_size": 151936,
             "max_position_embeddings": 40960, "rms_norm_eps": 1e-6, "rope_theta": 1000000.0,
             "hidden_act": "silu", "tie_word_embeddings": {}, "torch_dtype": "bfloat16",
             "eos_token_id": 151645, "bos_token_id": 151643}})",
        shape.hidden, shape.layers, shape.heads, shape.intermediate, shape.tied);
    return dir.string();
  }
  return name;
}

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Requests in rows 0, 1, … of the page table, each with pages of its own.
std::deque<Req> make_requests(Engine& engine, int64_t n, int64_t cached, int64_t new_tokens,
                              int64_t longest) {
  const int64_t page = engine.limits().page_size;
  const int64_t pages_each = (longest + page - 1) / page;
  MINISGL_CHECK(n * pages_each <= engine.limits().num_pages);
  std::deque<Req> reqs(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    Req& req = reqs[static_cast<size_t>(i)];
    req.uid = i;
    req.table_idx = static_cast<int32_t>(i);
    req.prompt_len = req.prefill_len = cached + new_tokens;
    req.cached_len = cached;
    req.device_len = cached + new_tokens;
    req.max_device_len = longest;
    int32_t* row = engine.page_table().select(i).data<int32_t>();
    int32_t* tokens = engine.token_pool().select(i).data<int32_t>();
    for (int64_t p = 0; p < longest; ++p) {
      // Pages of the requests take turns, as they do when requests grow together.
      row[p] = static_cast<int32_t>((p / page * n + i) * page + p % page);
      tokens[p] = static_cast<int32_t>((p * 7919 + i * 104729) % 150000);
    }
  }
  return reqs;
}

double run(Engine& engine, Step& step) {
  const double begin = seconds();
  engine.prepare(step);
  engine.launch(step);
  engine.wait(step);
  return (seconds() - begin) * 1e3;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// Median milliseconds of steps around the context, one after another (no overlap).
double decode_ms(Engine& engine, int64_t batch) {
  constexpr int64_t kSteps = 60;
  std::deque<Req> reqs = make_requests(engine, batch, kContext - kSteps / 2, 1, kContext + kSteps);
  Step step;
  step.batch.phase = Phase::kDecode;
  for (Req& req : reqs) step.batch.reqs.push_back(&req);
  std::vector<double> times;
  for (int64_t i = 0; i < kSteps; ++i) times.push_back(run(engine, step));
  return median(times);
}

double prefill_ms(Engine& engine, int64_t requests, int64_t length) {
  std::vector<double> times;
  for (int round = 0; round < 5; ++round) {
    std::deque<Req> reqs = make_requests(engine, requests, 0, length, length + 1);
    Step step;
    step.batch.phase = Phase::kPrefill;
    for (Req& req : reqs) step.batch.reqs.push_back(&req);
    times.push_back(run(engine, step));
  }
  return median(times);
}

void report(const Options& options, const Engine& engine, const std::string& what, int64_t batch,
            double ms, int64_t tokens, double limit_ms) {
  std::printf("%-10s batch %-4d %9.3f ms %9.0f tok/s", what.c_str(), static_cast<int>(batch), ms,
              static_cast<double>(tokens) / ms * 1e3);
  if (limit_ms > 0) std::printf("  limit %7.3f ms, %3.0f %%", limit_ms, 100 * limit_ms / ms);
  std::printf("\n");
  std::fflush(stdout);
  if (options.json == nullptr) return;
  std::ofstream(options.json, std::ios::app)
      << fmt::format(
             R"({{"benchmark": "gpu_step", "commit": "{}", "engine": "{}", "model": "{}", "graph_max_bs": {}, "page_size": {}, "step": "{}", "batch": {}, "ms": {:.4f}, "tokens_per_second": {:.0f}, "limit_ms": {:.4f}}})",
             MINISGL_COMMIT, engine.description(), options.model, options.graph, options.page, what,
             batch, ms, static_cast<double>(tokens) / ms * 1e3, limit_ms)
      << "\n";
}

void measure(const Options& options) {
  EngineConfig config;
  config.model_path = config_folder(options.model);
  config.dummy_weight = true;
  config.dtype = "bfloat16";
  config.device = "cuda";
  config.attention_backend = options.attention;
  config.graph_max_bs = options.graph;
  config.page_size = options.page;
  config.max_seq_len = 2048;
  config.max_running_requests = 256;
  config.max_prefill_tokens = 16384;
  config.num_pages = 256 * 2048 / options.page;
  double begin = seconds();
  Engine engine(config);
  std::printf("%s; page %d, graphs up to %d; ready after %.1f s\n", engine.description().c_str(),
              static_cast<int>(options.page), static_cast<int>(options.graph), seconds() - begin);
  const ModelConfig& model = engine.model_config();
  const auto kv_token =
      static_cast<double>(4 * model.num_layers * model.num_kv_heads * model.head_dim);
  for (const int64_t batch : {1, 8, 64, 256}) {
    const double bytes = static_cast<double>(engine.weight_bytes()) +
                         kv_token * static_cast<double>(batch * kContext);
    report(options, engine, "decode", batch, decode_ms(engine, batch), batch,
           bytes / kBytesASecond * 1e3);
  }
  report(options, engine, "prefill", 16, prefill_ms(engine, 16, 1024), 16 * 1024, 0);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i], value = argv[i + 1];
    if (flag == "--model") options.model = value;
    if (flag == "--attention") options.attention = value;
    if (flag == "--graph") options.graph = std::stoll(value);
    if (flag == "--page") options.page = std::stoll(value);
    if (flag == "--json") options.json = argv[i + 1];
  }
  try {
    measure(options);
  } catch (const Error& error) {
    std::fprintf(stderr, "gpu_step: %s\n", error.what());
    return exit_code(error.kind());
  }
}
