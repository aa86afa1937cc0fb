// Any bytes are a GGUF file or an Error, and any such file a model's config or an Error; every
// value and every tensor byte can be read.
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "loader/gguf_checkpoint.h"
#include "loader/gguf_config.h"
#include "utils/error.h"
#include "utils/gguf.h"

namespace {

template <class Action>
void try_it(Action action) {
  try {
    action();
  } catch (const minisgl::Error&) {
  }
}

void read_everything(const minisgl::GgufFile& file) {
  for (const auto& [key, value] : file.metadata()) {
    const std::string& name = key;
    try_it([&] { (void)file.number(name); });
    try_it([&] { (void)file.integer(name); });
    try_it([&] { (void)file.string(name); });
    try_it([&] { (void)file.strings(name); });
    try_it([&] { (void)file.numbers(name); });
    try_it([&] { (void)file.booleans(name); });
  }
  unsigned sum = 0;
  for (const minisgl::GgufTensor& tensor : file.tensors()) {
    for (const std::byte b : tensor.data) sum += std::to_integer<unsigned>(b);
  }
  volatile unsigned sink = sum;
  (void)sink;
}

void read_as_model(minisgl::GgufFile file) {
  (void)minisgl::generation_from_gguf(file);
  const minisgl::ModelConfig config = minisgl::config_from_gguf(file);
  minisgl::GgufCheckpoint checkpoint(std::move(file), config);
  const int64_t hidden = config.hidden_size;
  const int64_t q = config.num_qo_heads * config.head_dim;
  const std::string layer = "model.layers.0.";
  try_it([&] { checkpoint.get("model.embed_tokens.weight", config.vocab_size, hidden); });
  try_it([&] { checkpoint.get("model.norm.weight", 1, hidden); });
  try_it([&] { checkpoint.get(layer + "self_attn.q_proj.weight", q, hidden); });
  try_it([&] { checkpoint.get(layer + "self_attn.q_proj.bias", 1, q); });
  try_it([&] {
    checkpoint.get(layer + "mlp.experts.1.up_proj.weight", config.moe_intermediate_size, hidden);
  });
  try_it([&] { checkpoint.check_all_used({}); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try_it([&] {
    minisgl::GgufFile file = minisgl::GgufFile::parse(std::as_bytes(std::span(data, size)), "fuzz");
    read_everything(file);
    read_as_model(std::move(file));
  });
  return 0;
}
