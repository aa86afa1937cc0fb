// What a device that has nothing better does: recorded work is kept as a function and called again,
// fused operations are made of single ones.
#include "kernel/kernels.h"

#include <utility>

namespace minisgl {
namespace {

class RepeatedCall final : public RecordedWork {
 public:
  explicit RepeatedCall(std::function<void()> work) : work_(std::move(work)) {}
  void run() override { work_(); }

 private:
  std::function<void()> work_;
};

}  // namespace

std::unique_ptr<RecordedWork> Kernels::record(std::function<void()> work) {
  work();
  return std::make_unique<RepeatedCall>(std::move(work));
}

void Kernels::qk_norm_rope(TensorView q, TensorView k, TensorView q_w, TensorView k_w, float eps,
                           TensorView positions, TensorView cos_sin) {
  rms_norm(q, q, q_w, eps);
  rms_norm(k, k, k_w, eps);
  rope(q, k, positions, cos_sin);
}

}  // namespace minisgl
