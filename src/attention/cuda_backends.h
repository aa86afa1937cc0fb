// The attention backends that the CUDA plugin brings along.
#pragma once

#include <cstddef>
#include <span>

#include "attention/registry.h"

namespace minisgl {

// What registry.h wants as AttentionTarget::plugin. Errors: as kernel/cuda_plugin.h says.
std::span<const BuiltAttention> cuda_attention_backends();

// Under this C name in the plugin.
struct CudaAttentionTable {
  const BuiltAttention* entries;
  size_t count;
};
using CudaPluginAttention = CudaAttentionTable();
inline constexpr const char* kCudaPluginAttention = "minisgl_cuda_attention";

}  // namespace minisgl
