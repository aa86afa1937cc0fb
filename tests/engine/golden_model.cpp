#include "engine/golden_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>

#include "goldens.h"
#include "utils/json.h"

namespace minisgl::testing {
namespace {

namespace fs = std::filesystem;

std::string root() {
  const auto full = goldens_dir();
  return full ? *full : test_data_dir();
}

// Architectures that models/registry.cpp knows.
bool is_ours(const std::string& name) {
  constexpr const char* kOurs[] = {"llama", "mistral", "qwen2", "qwen3"};
  constexpr const char* kOthers[] = {"qwen3_next", "qwen3_5"};
  for (const char* other : kOthers) {
    if (name.starts_with(other)) return false;
  }
  return std::any_of(std::begin(kOurs), std::end(kOurs),
                     [&](const char* family) { return name.starts_with(family); });
}

std::string first_gguf(const fs::path& dir) {
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(dir)) {
    if (entry.path().extension() == ".gguf") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files.front();
}

}  // namespace

GoldenModel::GoldenModel(const std::string& dir, std::string model)
    : model_(std::move(model)), expected_(SafetensorsFile::open(dir + "/expected.safetensors")) {
  const Json expected = read_json_file(dir + "/expected.json");
  for (const Json& entry : expected.at("cases")) {
    cases_.push_back({.prompt = entry.at("prompt").get<std::vector<int32_t>>(),
                      .greedy = entry.at("greedy").get<std::vector<int32_t>>(),
                      .min_top2_gap = entry.at("min_top2_gap").get<double>()});
  }
  MINISGL_CHECK(!cases_.empty(), "{} has no cases", dir);
}

GoldenModel::Logits GoldenModel::logits(size_t i) const {
  const SafetensorsTensor* tensor = expected_.find(fmt::format("logits.{}", i));
  EXPECT_NE(tensor, nullptr) << "no logits of case " << i;
  Logits result;
  result.values =
      TensorView(const_cast<std::byte*>(tensor->data.data()), DType::kFloat32, tensor->shape);
  // A selection keeps some rows only and says which.
  if (const SafetensorsTensor* rows = expected_.find(fmt::format("logit_rows.{}", i))) {
    const auto* values = reinterpret_cast<const int32_t*>(rows->data.data());
    result.positions.assign(values, values + tensor->shape[0]);
  } else {
    result.positions.resize(static_cast<size_t>(tensor->shape[0]));
    std::iota(result.positions.begin(), result.positions.end(), 0);
  }
  return result;
}

std::vector<std::string> golden_names() {
  std::vector<std::string> names;
  for (const std::string folder : {"models", "gguf/models"}) {
    if (!fs::is_directory(root() + "/" + folder)) continue;
    for (const auto& entry : fs::directory_iterator(root() + "/" + folder)) {
      const std::string name = entry.path().filename().string();
      if (is_ours(name)) names.push_back(folder + "/" + name);
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

GoldenModel open_golden(const std::string& name) {
  const std::string dir = root() + "/" + name;
  return GoldenModel(dir, name.starts_with("gguf/") ? first_gguf(dir) : dir);
}

std::vector<std::vector<int32_t>> generate_greedy(Engine& engine, const SchedulerConfig& config,
                                                  const std::vector<std::vector<int32_t>>& prompts,
                                                  int64_t num_tokens) {
  Scheduler scheduler(engine, config);
  std::vector<Reply> replies;
  for (size_t i = 0; i < prompts.size(); ++i) {
    GenerateRequest request;
    request.uid = static_cast<int64_t>(i);
    request.input_ids = prompts[i];
    request.sampling_params.max_tokens = num_tokens;
    scheduler.submit(std::move(request), replies);
  }
  while (scheduler.step(replies)) {
  }
  scheduler.check_integrity();
  std::vector<std::vector<int32_t>> tokens(prompts.size());
  for (const Reply& reply : replies) {
    EXPECT_NE(reply.reason, FinishReason::kError) << reply.error;
    if (reply.token >= 0) tokens[static_cast<size_t>(reply.uid)].push_back(reply.token);
  }
  return tokens;
}

std::vector<float> logits_of(Engine& engine, const std::vector<int32_t>& tokens, int64_t chunk) {
  const auto n = static_cast<int64_t>(tokens.size());
  Req req;
  req.uid = 0;
  req.input_ids = tokens;
  req.prompt_len = req.prefill_len = n;
  req.table_idx = 0;
  req.max_device_len = n;
  int32_t* locations = engine.page_table().select(0).data<int32_t>();
  std::iota(locations, locations + n, 0);
  std::copy(tokens.begin(), tokens.end(), engine.token_pool().select(0).data<int32_t>());

  std::vector<float> all;
  Step step;
  step.all_logits = true;
  for (int64_t begin = 0; begin < n; begin += chunk) {
    req.cached_len = begin;
    req.device_len = std::min(begin + chunk, n);
    step.batch.reqs = {&req};
    step.batch.phase = Phase::kPrefill;
    engine.prepare(step);
    engine.launch(step);
    engine.wait(step);
    const float* values = step.logits.data<float>();
    all.insert(all.end(), values, values + step.logits.numel());
  }
  return all;
}

}  // namespace minisgl::testing
