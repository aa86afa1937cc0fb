// "fi": FlashInfer. Decode on CUDA cores for GQA groups 1 and 2 (the faster there), on tensor cores
// otherwise; long queries through the Hopper kernels on SM90, the rest through FA2's.
#include <array>
#include <memory>
#include <vector>

#include "attention/cuda/backends.h"
#include "attention/cuda/flashinfer_kernels.h"
#include "attention/cuda/gpu_backend.h"
#include "utils/error.h"

namespace minisgl::cuda {
namespace {

constexpr size_t kFloatBytes = size_t{256} << 20;  // partial results of split KV ranges
constexpr size_t kIntBytes = size_t{8} << 20;      // one plan's work list

enum class Path { kDecode, kPrefill, kHopper };

// A work list depends on the heads and the window, so layers that agree in them share one.
struct PlanKey {
  Path path;
  int num_qo_heads, num_kv_heads, head_dim, window_left;
  bool operator==(const PlanKey&) const = default;
};

// A plan's work list on the device, and the page-locked memory that it is uploaded from: two, so
// that a new plan does not wait for the upload of the last one.
class PlanMemory {
 public:
  PlanMemory() : ints_(kIntBytes), mirrors_{PinnedMemory(kIntBytes), PinnedMemory(kIntBytes)} {}

  // plan(workspace) may write the mirror until the next call.
  template <class F>
  void fill(Workspace workspace, cudaStream_t stream, F&& plan) {
    turn_ ^= 1;
    uploaded_[turn_].wait();
    workspace.ints_host = mirrors_[turn_].data();
    plan(on_device(workspace));
    uploaded_[turn_].record(stream);
  }
  Workspace on_device(Workspace workspace) const {
    workspace.ints = ints_.data();
    workspace.ints_bytes = ints_.bytes();
    return workspace;
  }

 private:
  DeviceMemory ints_;
  std::array<PinnedMemory, 2> mirrors_;
  std::array<Event, 2> uploaded_;
  size_t turn_ = 0;
};

struct Plan {
  PlanKey key;
  FlashInferPlan plan;
  PlanMemory memory;
  const GpuBatch* made_for = nullptr;
};

class FlashInferBackend final : public GpuBackend {
 public:
  FlashInferBackend(Kernels& kernels, KVPool& pool)
      : GpuBackend("fi", kernels, pool), floats_(kFloatBytes) {
    const int64_t head_dim = pool.config().head_dim;
    if (head_dim != 64 && head_dim != 128) {
      throw_error(ErrorKind::kUnsupported,
                  "attention backend fi is built for head dimensions 64 and 128, the model has {}; "
                  "use --attention-backend reference",
                  head_dim);
    }
  }

 private:
  // Work lists belong to one batch: the layers of the next one plan anew.
  void begin_batch(GpuBatch&) override {
    for (const auto& plan : plans_) plan->made_for = nullptr;
  }

  std::optional<std::string> refusal(const PagedCall& call) const override {
    if (!fi_prefill_supports(call)) return "sinks and softcap in one layer are not built";
    return std::nullopt;
  }

  Path path_of(const PagedCall& call) const {
    const bool decode = call.max_seqlen_q == 1 && call.num_tokens == call.batch;
    if (decode && call.num_qo_heads <= 2 * call.num_kv_heads && fi_decode_supports(call)) {
      return Path::kDecode;
    }
    if (kernels().compute_capability() == 90 && call.max_seqlen_q > 64 &&
        fi_hopper_supports(call)) {
      return Path::kHopper;
    }
    return Path::kPrefill;
  }

  Plan& plan_of(const PlanKey& key) {
    for (const auto& plan : plans_) {
      if (plan->key == key) return *plan;
    }
    plans_.push_back(std::make_unique<Plan>());
    plans_.back()->key = key;
    return *plans_.back();
  }

  void attend(const PagedCall& call, GpuBatch& batch) override {
    const Path path = path_of(call);
    Plan& plan =
        plan_of({path, call.num_qo_heads, call.num_kv_heads, call.head_dim, call.window_left});
    Workspace workspace;
    workspace.floats = floats_.data();
    workspace.floats_bytes = floats_.bytes();
    const cudaStream_t stream = kernels().stream();
    if (plan.made_for != &batch) {
      plan.memory.fill(workspace, stream, [&](const Workspace& ws) { make(plan, ws, call); });
      plan.made_for = &batch;
    }
    const Workspace ws = plan.memory.on_device(workspace);
    switch (path) {
      case Path::kDecode:
        return check(fi_decode_run(plan.plan, ws, call, stream), "FlashInfer decode");
      case Path::kPrefill:
        return check(fi_prefill_run(plan.plan, ws, call, stream), "FlashInfer prefill");
      case Path::kHopper:
        return check(fi_hopper_run(plan.plan, ws, call, stream), "FlashInfer Hopper prefill");
    }
  }

  void make(Plan& plan, const Workspace& ws, const PagedCall& call) {
    const cudaStream_t stream = kernels().stream();
    switch (plan.key.path) {
      case Path::kDecode:
        return check(fi_decode_plan(plan.plan, ws, call, false, stream), "FlashInfer decode plan");
      case Path::kPrefill:
        return check(fi_prefill_plan(plan.plan, ws, call, false, stream),
                     "FlashInfer prefill plan");
      case Path::kHopper:
        return check(fi_hopper_plan(plan.plan, ws, call, stream), "FlashInfer Hopper plan");
    }
  }

  DeviceMemory floats_;
  std::vector<std::unique_ptr<Plan>> plans_;
};

}  // namespace

std::unique_ptr<AttentionBackend> make_flashinfer_backend(Kernels& kernels, KVPool& pool) {
  return std::make_unique<FlashInferBackend>(kernels, pool);
}

}  // namespace minisgl::cuda
