// The attention backends inside the plugin, one maker a library.
#pragma once

#include <memory>

#include "attention/backend.h"

namespace minisgl {
class Kernels;
class KVPool;
}  // namespace minisgl

namespace minisgl::cuda {

std::unique_ptr<AttentionBackend> make_flashinfer_backend(Kernels& kernels, KVPool& pool);
std::unique_ptr<AttentionBackend> make_flash_attention_backend(Kernels& kernels, KVPool& pool);

}  // namespace minisgl::cuda
