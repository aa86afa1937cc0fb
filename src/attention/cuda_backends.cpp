#include "attention/cuda_backends.h"

#include "kernel/cuda_plugin.h"

namespace minisgl {

std::span<const BuiltAttention> cuda_attention_backends() {
  const auto table =
      reinterpret_cast<CudaPluginAttention*>(cuda_plugin_symbol(kCudaPluginAttention))();
  return {table.entries, table.count};
}

}  // namespace minisgl
