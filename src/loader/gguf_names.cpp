#include "loader/gguf_names.h"

#include <fmt/ranges.h>

#include <vector>

#include "utils/error.h"
#include "utils/quote.h"

namespace minisgl {
namespace {

constexpr GgufFamily kFamilies[] = {
    {.name = "llama",
     .hf_architecture = "LlamaForCausalLM",
     .model_type = "llama",
     .interleaved_qk = true},
    {.name = "qwen2", .hf_architecture = "Qwen2ForCausalLM", .model_type = "qwen2"},
    {.name = "qwen3", .hf_architecture = "Qwen3ForCausalLM", .model_type = "qwen3"},
    {.name = "qwen3moe", .hf_architecture = "Qwen3MoeForCausalLM", .model_type = "qwen3_moe"},
    {.name = "gemma2",
     .hf_architecture = "Gemma2ForCausalLM",
     .model_type = "gemma2",
     .hidden_act = "gelu_pytorch_tanh",
     .norms_plus_one = true},
    {.name = "gemma3",
     .hf_architecture = "Gemma3ForCausalLM",
     .model_type = "gemma3_text",
     .hidden_act = "gelu_pytorch_tanh",
     .norms_plus_one = true},
    {.name = "gpt-oss", .hf_architecture = "GptOssForCausalLM", .model_type = "gpt_oss"},
    {.name = "phi3", .hf_architecture = "Phi3ForCausalLM", .model_type = "phi3"},
    {.name = "granite",
     .hf_architecture = "GraniteForCausalLM",
     .model_type = "granite",
     .interleaved_qk = true},
    {.name = "olmo2", .hf_architecture = "Olmo2ForCausalLM", .model_type = "olmo2"},
    {.name = "smollm3",
     .hf_architecture = "SmolLM3ForCausalLM",
     .model_type = "smollm3",
     .interleaved_qk = true},
};

struct Name {
  std::string_view hf, gguf;
  std::string_view only_in = "";  // a family; empty: all that have no entry of their own
};

// Outside the layers, whole names.
constexpr Name kModelNames[] = {
    {"model.embed_tokens.weight", "token_embd.weight"},
    {"model.norm.weight", "output_norm.weight"},
    {"lm_head.weight", "output.weight"},
};

// Of a layer, without ".weight" or ".bias". A family's own entry comes before the common one.
constexpr Name kLayerNames[] = {
    {"input_layernorm", "attn_norm"},
    {"post_attention_layernorm", "post_attention_norm", "gemma2"},
    {"post_attention_layernorm", "post_attention_norm", "gemma3"},
    {"post_attention_layernorm", "post_attention_norm", "gpt-oss"},
    {"post_attention_layernorm", "post_attention_norm", "olmo2"},
    {"post_attention_layernorm", "ffn_norm"},
    {"pre_feedforward_layernorm", "ffn_norm"},
    {"post_feedforward_layernorm", "post_ffw_norm"},
    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},
    {"self_attn.qkv_proj", "attn_qkv"},
    {"self_attn.o_proj", "attn_output"},
    {"self_attn.q_norm", "attn_q_norm"},
    {"self_attn.k_norm", "attn_k_norm"},
    {"mlp.gate_proj", "ffn_gate"},
    {"mlp.up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},
    {"mlp.gate_up_proj", "ffn_up", "phi3"},
    {"mlp.gate", "ffn_gate_inp"},
    {"mlp.router", "ffn_gate_inp"},
    {"mlp.experts.gate_proj", "ffn_gate_exps"},
    {"mlp.experts.up_proj", "ffn_up_exps"},
    {"mlp.experts.down_proj", "ffn_down_exps"},
};

std::optional<std::string_view> find_name(std::string_view stem, const GgufFamily& family) {
  for (const Name& name : kLayerNames) {
    if (name.hf == stem && (name.only_in.empty() || name.only_in == family.name)) return name.gguf;
  }
  return std::nullopt;
}

}  // namespace

const GgufFamily& find_gguf_family(std::string_view name, std::string_view path) {
  std::vector<std::string_view> known;
  for (const GgufFamily& family : kFamilies) {
    if (family.name == name) return family;
    known.push_back(family.name);
  }
  throw_error(ErrorKind::kUnsupported, "{}: general.architecture {} is not supported; known are {}",
              path, quote(name), fmt::join(known, ", "));
}

std::optional<std::string> gguf_tensor_name(const GgufFamily& family, std::string_view hf_name) {
  for (const Name& name : kModelNames) {
    if (name.hf == hf_name) return std::string(name.gguf);
  }
  constexpr std::string_view kLayers = "model.layers.";
  if (!hf_name.starts_with(kLayers)) return std::nullopt;
  hf_name.remove_prefix(kLayers.size());
  const size_t after_index = hf_name.find('.');
  const size_t before_leaf = hf_name.rfind('.');
  if (after_index == std::string_view::npos || before_leaf <= after_index) return std::nullopt;
  const std::string_view layer = hf_name.substr(0, after_index);
  const std::string_view leaf = hf_name.substr(before_leaf + 1);
  if (hf_name.substr(after_index + 1) == "self_attn.sinks") {
    return fmt::format("blk.{}.attn_sinks.weight", layer);
  }
  const auto stem =
      find_name(hf_name.substr(after_index + 1, before_leaf - after_index - 1), family);
  if (!stem || (leaf != "weight" && leaf != "bias")) return std::nullopt;
  return fmt::format("blk.{}.{}.{}", layer, *stem, leaf);
}

}  // namespace minisgl
