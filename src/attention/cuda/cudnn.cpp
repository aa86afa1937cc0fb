// "cudnn": cuDNN's fused decode, the fastest where lengths are even. Decode only: it stands in the
// second half of a pair, behind a backend that prefills.
#include <memory>
#include <stdexcept>

#include "attention/cuda/backends.h"
#include "attention/cuda/cudnn_kernels.h"
#include "attention/cuda/gpu_backend.h"
#include "utils/error.h"

namespace minisgl::cuda {
namespace {

class CudnnBackend final : public GpuBackend {
 public:
  CudnnBackend(Kernels& kernels, KVPool& pool)
      : GpuBackend("cudnn", kernels, pool), attention_(this->kernels().stream()) {
    const int64_t page_size = pool.config().page_size;
    if ((page_size & (page_size - 1)) != 0) {
      throw_error(ErrorKind::kUnsupported,
                  "attention backend cudnn: pages must be a power of two, --page-size is {}",
                  page_size);
    }
  }

 private:
  // A plan is compiled for a table's width: widths are rounded up, so that growing sequences meet
  // few of them.
  bool rounds_table_width() const override { return true; }

  std::optional<std::string> refusal(const PagedCall& call) const override {
    if (call.max_seqlen_q != 1 || call.num_tokens != call.batch) {
      return "it only decodes here; pair it, e.g. \"fa,cudnn\"";
    }
    if (call.sinks != nullptr) return "sinks in decode are not supported by cuDNN's frontend";
    if (call.softcap > 0) return "cuDNN has no softcap beside a padding mask";
    return std::nullopt;
  }

  void attend(const PagedCall& call, GpuBatch&) override {
    try {
      attention_.decode(call);
    } catch (const std::runtime_error& error) {
      throw_error(ErrorKind::kInternal, "{}", error.what());
    }
  }

  CudnnAttention attention_;
};

}  // namespace

std::unique_ptr<AttentionBackend> make_cudnn_backend(Kernels& kernels, KVPool& pool) {
  return std::make_unique<CudnnBackend>(kernels, pool);
}

}  // namespace minisgl::cuda
