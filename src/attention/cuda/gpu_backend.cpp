#include "attention/cuda/gpu_backend.h"

#include "utils/error.h"

namespace minisgl::cuda {
namespace {

CudaKernels& cuda_kernels(Kernels& kernels, const std::string& name) {
  auto* ours = dynamic_cast<CudaKernels*>(&kernels);
  MINISGL_CHECK(ours != nullptr, "attention backend {} with kernels on {}", name,
                kernels.description());
  return *ours;
}

}  // namespace

GpuBackend::GpuBackend(std::string name, Kernels& kernels, KVPool& pool)
    : name_(std::move(name)), kernels_(cuda_kernels(kernels, name_)), pool_(pool) {
  if (pool.config().dtype != DType::kBFloat16) {
    throw_error(ErrorKind::kUnsupported,
                "attention backend {} is built for bfloat16, the KV pool is {}; use --dtype "
                "bfloat16 or --attention-backend reference",
                name_, dtype_name(pool.config().dtype));
  }
}

void GpuBackend::prepare_metadata(Batch& batch) {
  AttentionMetadata* made = batch.attn_metadata.get();
  if (made == nullptr || made->made_by != this) {
    batch.attn_metadata = make_metadata();
    batch.attn_metadata->made_by = this;
  }
  metadata_of(batch).build(batch, pool_.config().page_size, rounds_table_width());
}

GpuBatch& GpuBackend::metadata_of(const Batch& batch) const {
  AttentionMetadata* metadata = batch.attn_metadata.get();
  MINISGL_CHECK(metadata != nullptr && metadata->made_by == this,
                "attention backend {}: this batch's metadata was not prepared", name_);
  return static_cast<GpuBatch&>(*metadata);
}

// Write first, read second.
void GpuBackend::forward(TensorView out, TensorView q, TensorView k, TensorView v,
                         const AttentionSpec& spec, Batch& batch) {
  kernels_.use();
  kernels_.store_kv_pair(pool_.k(spec.layer), pool_.v(spec.layer), k, v, batch.out_loc);
  GpuBatch& metadata = metadata_of(batch);
  if (!metadata.is_current()) {
    metadata.upload(kernels_);
    begin_batch(metadata);
  }
  const PagedCall call = call_of(out, q, spec, metadata);
  if (const auto reason = refusal(call)) {
    throw_error(ErrorKind::kUnsupported,
                "attention backend {}: layer {}: {}; use --attention-backend reference, or another "
                "of this build's",
                name_, spec.layer, *reason);
  }
  attend(call, metadata);
}

PagedCall GpuBackend::call_of(TensorView out, TensorView q, const AttentionSpec& spec,
                              const GpuBatch& metadata) const {
  MINISGL_CHECK(q.rank() == 3 && q.dtype() == DType::kBFloat16 && out.dtype() == q.dtype() &&
                    q.dim(1) == spec.num_qo_heads && q.dim(2) == spec.head_dim &&
                    q.stride(1) == spec.head_dim && out.is_contiguous() && out.dim(0) == q.dim(0),
                "attention backend {}: q is {}, out is {}, spec has {} heads of {}", name_,
                q.describe(), out.describe(), spec.num_qo_heads, spec.head_dim);
  PagedCall call = metadata.call();
  MINISGL_CHECK(call.num_tokens == q.dim(0), "metadata of {} tokens, q is {}", call.num_tokens,
                q.describe());
  call.q = q.raw();
  call.out = out.raw();
  call.q_stride = q.stride(0);
  call.out_stride = out.stride(0);
  call.k_pool = pool_.k(spec.layer).raw();
  call.v_pool = pool_.v(spec.layer).raw();
  call.num_qo_heads = static_cast<int>(spec.num_qo_heads);
  call.num_kv_heads = static_cast<int>(spec.num_kv_heads);
  call.head_dim = static_cast<int>(spec.head_dim);
  call.num_pages = static_cast<int>(pool_.config().num_pages + 1);
  call.scale = spec.scale;
  call.softcap = spec.softcap;
  call.window_left = spec.window > 0 ? static_cast<int>(spec.window) - 1 : -1;
  call.sinks = spec.sinks.empty() ? nullptr : spec.sinks.data<float>();
  return call;
}

void GpuBackend::init_capture_graph(int64_t max_seq_len, std::span<const int> batch_sizes) {
  MINISGL_CHECK(static_ == nullptr);
  static_ = std::make_unique<StaticGpuBatch>(kernels_, max_seq_len, pool_.config().page_size,
                                             batch_sizes);
}

void GpuBackend::prepare_for_capture(Batch& batch) {
  MINISGL_CHECK(static_ != nullptr, "a graph hook before init_capture_graph()");
  auto metadata = make_metadata();
  metadata->made_by = this;
  metadata->build(batch, pool_.config().page_size, rounds_table_width());
  static_->refresh(*metadata);
  static_->bind(*metadata);
  begin_batch(*metadata);
  batch.attn_metadata = std::move(metadata);
}

void GpuBackend::prepare_for_replay(Batch& batch) {
  MINISGL_CHECK(static_ != nullptr, "a graph hook before init_capture_graph()");
  if (GpuBatch* captured = static_->refresh(metadata_of(batch))) begin_batch(*captured);
}

}  // namespace minisgl::cuda
