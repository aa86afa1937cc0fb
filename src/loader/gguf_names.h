// What GGUF files call a model family and its tensors.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace minisgl {

// A family by its "general.architecture", and how its files differ from Hugging Face's weights.
struct GgufFamily {
  std::string_view name;             // "qwen3moe"
  std::string_view hf_architecture;  // "Qwen3MoeForCausalLM"
  std::string_view model_type;       // "qwen3_moe"
  std::string_view hidden_act = "silu";
  // Rows of q_proj and k_proj are kept in the order of an interleaved rotation.
  bool interleaved_qk = false;
  // Norm weights hold 1 + w.
  bool norms_plus_one = false;
};

// Error kUnsupported for other families, with the list of known ones; `path` is for the message.
const GgufFamily& find_gguf_family(std::string_view name, std::string_view path);

// The GGUF name of a tensor of Hugging Face's name, experts stacked:
//   "model.layers.3.mlp.experts.gate_proj.weight" -> "blk.3.ffn_gate_exps.weight"
// Empty: this family has no such tensor.
std::optional<std::string> gguf_tensor_name(const GgufFamily& family, std::string_view hf_name);

}  // namespace minisgl
