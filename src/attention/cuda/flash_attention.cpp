// "fa": FlashAttention 3 for everything, prefill, extend, decode and mixed batches alike. No plan:
// the fastest for long queries and for decode of uneven lengths.
#include <memory>

#include "attention/cuda/backends.h"
#include "attention/cuda/flash_attention_kernels.h"
#include "attention/cuda/gpu_backend.h"
#include "utils/error.h"

namespace minisgl::cuda {
namespace {

constexpr size_t kPartialOutBytes = size_t{128} << 20;
constexpr size_t kPartialLseBytes = size_t{4} << 20;
constexpr size_t kLseBytes = size_t{16} << 20;  // 65,536 tokens of 64 heads

class FlashAttentionBackend final : public GpuBackend {
 public:
  FlashAttentionBackend(Kernels& kernels, KVPool& pool)
      : GpuBackend("fa", kernels, pool),
        scheduler_(kFlashSchedulerInts * sizeof(int32_t)),
        partial_out_(kPartialOutBytes),
        partial_lse_(kPartialLseBytes),
        lse_(kLseBytes) {
    const int64_t head_dim = pool.config().head_dim;
    if (this->kernels().compute_capability() != 90 || head_dim != 128) {
      throw_error(ErrorKind::kUnsupported,
                  "attention backend fa is built for SM90 and head dimension 128, this is SM{} and "
                  "{}; use --attention-backend fi or reference",
                  this->kernels().compute_capability(), head_dim);
    }
    MINISGL_CUDA(
        cudaMemsetAsync(scheduler_.data(), 0, scheduler_.bytes(), this->kernels().stream()));
  }

 private:
  std::optional<std::string> refusal(const PagedCall& call) const override {
    if (call.sinks != nullptr) return "FlashAttention 3 has no sinks";
    if (!fa_supports(call)) return "softcap is not built";
    return std::nullopt;
  }

  void attend(const PagedCall& call, GpuBatch&) override {
    FlashScratch scratch;
    scratch.scheduler = static_cast<int32_t*>(scheduler_.data());
    scratch.partial_out = static_cast<float*>(partial_out_.data());
    scratch.partial_lse = static_cast<float*>(partial_lse_.data());
    scratch.partial_out_bytes = partial_out_.bytes();
    scratch.partial_lse_bytes = partial_lse_.bytes();
    scratch.lse = static_cast<float*>(lse_.data());
    scratch.lse_bytes = lse_.bytes();
    check(fa_run(call, scratch, kernels().num_multiprocessors(), kernels().stream()),
          "FlashAttention 3");
  }

  DeviceMemory scheduler_, partial_out_, partial_lse_, lse_;
};

}  // namespace

std::unique_ptr<AttentionBackend> make_flash_attention_backend(Kernels& kernels, KVPool& pool) {
  return std::make_unique<FlashAttentionBackend>(kernels, pool);
}

}  // namespace minisgl::cuda
