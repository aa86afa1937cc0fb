#include "loader/dummy.h"

#include <cmath>
#include <cstring>
#include <string_view>

#include "tensor/half.h"
#include "utils/error.h"

namespace minisgl {
namespace {

constexpr float kDeviation = 0.02f;

uint64_t mix(uint64_t x) {  // splitmix64
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

uint64_t hash(std::string_view text) {  // FNV-1a
  uint64_t h = 0xcbf29ce484222325;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return h;
}

// Close to normal with deviation 1: the sum of four uniform numbers, one from each 16 bits.
// A true normal would cost ten times as much for a model of billions.
float nearly_normal(uint64_t bits) {
  const uint64_t sum =
      (bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48);
  const float mean = 4 * 32767.5f;
  const float deviation = 37837.2f;  // sqrt(4 / 12) * 65536
  return (static_cast<float>(sum) - mean) / deviation;
}

bool is_norm(std::string_view name) {
  return name.ends_with("norm.weight");  // input_layernorm, q_norm, model.norm, …
}

void store(std::byte* out, DType dtype, float value) {
  if (dtype == DType::kFloat32) {
    std::memcpy(out, &value, sizeof value);
    return;
  }
  const uint16_t bits = dtype == DType::kBFloat16 ? float_to_bfloat16(value) : float_to_half(value);
  std::memcpy(out, &bits, sizeof bits);
}

}  // namespace

DummyCheckpoint::DummyCheckpoint(const ModelConfig& config, DType dtype, uint64_t seed)
    : config_(config), dtype_(dtype), seed_(seed) {
  MINISGL_CHECK(is_floating(dtype), "dummy weights of {}", dtype_name(dtype));
}

RawMatrix DummyCheckpoint::get(const std::string& name, int64_t rows, int64_t cols) {
  MINISGL_CHECK(rows > 0 && cols > 0);
  std::vector<std::byte>& bytes = tensors_[name];
  const auto size = static_cast<size_t>(rows * bytes_of(dtype_, cols));
  if (bytes.size() != size) {
    bytes.resize(size);
    const auto step = static_cast<size_t>(block_bytes(dtype_));
    const uint64_t stream = mix(hash(name) ^ mix(seed_));
    const bool ones = is_norm(name);
    for (size_t i = 0; i * step < size; ++i) {
      const float value = ones ? 1.0f : kDeviation * nearly_normal(mix(stream + i));
      store(bytes.data() + i * step, dtype_, value);
    }
  }
  return {.dtype = dtype_, .rows = rows, .cols = cols, .data = bytes.data()};
}

bool DummyCheckpoint::has(const std::string& name) const {
  if (name == "lm_head.weight") return !config_.tie_word_embeddings;
  if (!name.ends_with(".bias")) return true;
  if (name.ends_with("o_proj.bias")) return config_.attention_out_bias;
  if (name.find("self_attn") != std::string::npos) return config_.attention_bias;
  return config_.mlp_bias;
}

void DummyCheckpoint::release(const RawMatrix& matrix) {
  std::erase_if(tensors_, [&](const auto& entry) {
    const std::vector<std::byte>& bytes = entry.second;
    return matrix.data >= bytes.data() && matrix.data < bytes.data() + bytes.size();
  });
}

int64_t DummyCheckpoint::total_bytes() const {
  const int64_t hidden = config_.hidden_size;
  const int64_t heads = config_.num_qo_heads + config_.num_kv_heads;
  int64_t elements = config_.vocab_size * hidden * (config_.tie_word_embeddings ? 1 : 2);
  for (int64_t layer = 0; layer < config_.num_layers; ++layer) {
    elements += 2 * heads * config_.head_dim * hidden + 2 * hidden;
    elements += config_.layer_is_moe(layer)
                    ? config_.num_experts * (3 * config_.moe_intermediate_size + 1) * hidden
                    : 3 * config_.intermediate_size * hidden;
  }
  return elements * block_bytes(dtype_);
}

}  // namespace minisgl
