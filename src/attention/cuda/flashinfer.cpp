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

constexpr size_t kFloatBytes = size_t{256} << 20;   // partial results of split KV ranges
constexpr size_t kIntBytes = size_t{8} << 20;       // one plan's work list …
constexpr size_t kGraphIntBytes = size_t{2} << 20;  // … and a captured decode step's

enum class Path { kDecode, kPrefill, kHopper };

// A work list depends on the heads and the window, so layers that agree in them share one. Each
// captured batch has its own, which its graph reads.
struct PlanKey {
  const GpuBatch* captured;  // null: of the batch that runs
  Path path;
  int num_qo_heads, num_kv_heads, head_dim, window_left;
  bool operator==(const PlanKey&) const = default;
};

// A plan's work list on the device, and the page-locked memory that it is uploaded from: two, so
// that a new plan does not wait for the upload of the last one.
class PlanMemory {
 public:
  explicit PlanMemory(size_t bytes)
      : ints_(bytes), mirrors_{PinnedMemory(bytes), PinnedMemory(bytes)} {}

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
  explicit Plan(const PlanKey& of)
      : key(of), memory(of.captured != nullptr ? kGraphIntBytes : kIntBytes) {}

  PlanKey key;
  FlashInferPlan plan;
  PlanMemory memory;
  bool is_current = false;
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
  // The layers of a batch plan anew. A captured batch's layers have run already and are in its
  // graph: their plans are made again here, in front of the replay.
  void begin_batch(GpuBatch& batch) override {
    for (const auto& plan : plans_) {
      if (plan->key.captured == nullptr) plan->is_current = false;
      if (plan->key.captured != &batch) continue;
      PagedCall call = batch.call();
      call.num_qo_heads = plan->key.num_qo_heads;
      call.num_kv_heads = plan->key.num_kv_heads;
      call.head_dim = plan->key.head_dim;
      call.window_left = plan->key.window_left;
      make(*plan, call);
    }
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
    plans_.push_back(std::make_unique<Plan>(key));
    return *plans_.back();
  }

  Workspace workspace() const {
    Workspace workspace;
    workspace.floats = floats_.data();
    workspace.floats_bytes = floats_.bytes();
    return workspace;
  }

  void attend(const PagedCall& call, GpuBatch& batch) override {
    const Path path = path_of(call);
    Plan& plan = plan_of({batch.is_static() ? &batch : nullptr, path, call.num_qo_heads,
                          call.num_kv_heads, call.head_dim, call.window_left});
    if (!plan.is_current) make(plan, call);
    const Workspace ws = plan.memory.on_device(workspace());
    const cudaStream_t stream = kernels().stream();
    switch (path) {
      case Path::kDecode:
        return check(fi_decode_run(plan.plan, ws, call, stream), "FlashInfer decode");
      case Path::kPrefill:
        return check(fi_prefill_run(plan.plan, ws, call, stream), "FlashInfer prefill");
      case Path::kHopper:
        return check(fi_hopper_run(plan.plan, ws, call, stream), "FlashInfer Hopper prefill");
    }
  }

  void make(Plan& plan, const PagedCall& call) {
    const cudaStream_t stream = kernels().stream();
    const bool graph = plan.key.captured != nullptr;
    plan.memory.fill(workspace(), stream, [&](const Workspace& ws) {
      switch (plan.key.path) {
        case Path::kDecode:
          return check(fi_decode_plan(plan.plan, ws, call, graph, stream),
                       "FlashInfer decode plan");
        case Path::kPrefill:
          return check(fi_prefill_plan(plan.plan, ws, call, graph, stream),
                       "FlashInfer prefill plan");
        case Path::kHopper:
          return check(fi_hopper_plan(plan.plan, ws, call, stream), "FlashInfer Hopper plan");
      }
    });
    plan.is_current = true;
  }

  DeviceMemory floats_;
  std::vector<std::unique_ptr<Plan>> plans_;
};

}  // namespace

std::unique_ptr<AttentionBackend> make_flashinfer_backend(Kernels& kernels, KVPool& pool) {
  return std::make_unique<FlashInferBackend>(kernels, pool);
}

}  // namespace minisgl::cuda
