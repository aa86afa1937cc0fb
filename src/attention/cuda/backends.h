// The attention backends inside the plugin, one maker a library.
#pragma once

#include <memory>

#include "attention/backend.h"

namespace minisgl {
class Kernels;
class KVPool;
}  // namespace minisgl

namespace minisgl::cuda {

// Head dimensions that each is built for.
inline constexpr int kFlashInferHeadDims[] = {64, 128};
inline constexpr int kFlashAttentionHeadDims[] = {128};
inline constexpr int kCudnnHeadDims[] = {64, 128};

std::unique_ptr<AttentionBackend> make_flashinfer_backend(Kernels& kernels, KVPool& pool);
std::unique_ptr<AttentionBackend> make_flash_attention_backend(Kernels& kernels, KVPool& pool);
std::unique_ptr<AttentionBackend> make_cudnn_backend(Kernels& kernels, KVPool& pool);

}  // namespace minisgl::cuda
