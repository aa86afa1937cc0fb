// Names of attention backends: "fa", "P,D" pairs, "auto".
//
// An engine calls, in this order: validate_attention_backend() before anything is loaded,
// resolve_attention_backend() once the device is known, create_attention_backend() when the pool is
// there.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attention/backend.h"
#include "tensor/device.h"
#include "tensor/dtype.h"

namespace minisgl {

class Kernels;
class KVPool;

using MakeAttentionBackend = std::unique_ptr<AttentionBackend> (*)(Kernels& kernels, KVPool& pool);

// A backend that the GPU plugin brings along.
struct BuiltAttention {
  std::string_view name;
  MakeAttentionBackend make;
  std::span<const int> head_dims = {};  // that it is built for; empty: any
  bool decode_only = false;             // stands in the second half of a pair
};

// What a choice depends on.
struct AttentionTarget {
  Device device;
  DType dtype = DType::kFloat32;                // of the activations
  int64_t head_dim = 0;                         // of the model; 0: not known yet
  int compute_capability = 0;                   // of the GPU: 90 for SM90
  std::span<const BuiltAttention> plugin = {};  // empty: built without CUDA
};

struct ResolvedAttention {
  std::string name;  // "cpu", "fa,cudnn": no "auto", no alias, no pair of equals
  std::string note;  // one sentence for the log, if this is not simply what was asked for
};

// Refuses, with the names that would do: unknown names, malformed pairs, backends of another device
// or GPU generation (kInvalidArgument), and known ones that this build lacks (kUnsupported).
// "auto" is fine wherever something is built for the target.
void validate_attention_backend(std::string_view name, const AttentionTarget& target);

// The pair of equals collapsed, aliases and "auto" replaced. On the CPU "auto" is `cpu`; on SM90
// the pair that measures best (docs/attention.md), on other GPUs `fi`; float32 on a GPU is
// `reference` whatever was asked for, since the others compute in 16 bits. Errors: as validate.
ResolvedAttention resolve_attention_backend(std::string_view name, const AttentionTarget& target);

// `name` must be a resolved one. `kernels` and `pool` outlive the backend.
std::unique_ptr<AttentionBackend> create_attention_backend(std::string_view name,
                                                           const AttentionTarget& target,
                                                           Kernels& kernels, KVPool& pool);

// Names that validate_attention_backend() takes on this target, for --help and errors.
std::vector<std::string> supported_attention_backends(const AttentionTarget& target);

}  // namespace minisgl
