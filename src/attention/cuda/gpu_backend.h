// What the GPU's attention backends share: metadata, storing K and V, graph hooks. Each derives and
// says how a layer's call is run.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "attention/backend.h"
#include "attention/cuda/gpu_batch.h"
#include "attention/cuda/paged_call.h"
#include "kernel/cuda/cuda_kernels.h"
#include "kvcache/kv_pool.h"

namespace minisgl::cuda {

// bfloat16 only: errors of the constructor are kUnsupported for other pools, and name what does it.
// Threads as AttentionBackend says.
class GpuBackend : public AttentionBackend {
 public:
  GpuBackend(std::string name, Kernels& kernels, KVPool& pool);

  std::string_view name() const override { return name_; }
  void prepare_metadata(Batch& batch) override;
  void forward(TensorView out, TensorView q, TensorView k, TensorView v, const AttentionSpec& spec,
               Batch& batch) override;
  void init_capture_graph(int64_t max_seq_len, std::span<const int> batch_sizes) override;
  void prepare_for_capture(Batch& batch) override;
  void prepare_for_replay(Batch& batch) override;

 protected:
  virtual std::unique_ptr<GpuBatch> make_metadata() const { return std::make_unique<GpuBatch>(); }
  // A batch's values are on the device (new ones, for a captured batch); its first layer follows.
  virtual void begin_batch(GpuBatch&) {}
  virtual bool rounds_table_width() const { return false; }  // see GpuBatch::build()
  // Whether `call` (with the layer's properties) can be run; the reason if not.
  virtual std::optional<std::string> refusal(const PagedCall& call) const = 0;
  virtual void attend(const PagedCall& call, GpuBatch& batch) = 0;

  CudaKernels& kernels() const { return kernels_; }
  const KVPool& pool() const { return pool_; }

 private:
  GpuBatch& metadata_of(const Batch& batch) const;
  PagedCall call_of(TensorView out, TensorView q, const AttentionSpec& spec,
                    const GpuBatch& metadata) const;

  std::string name_;
  CudaKernels& kernels_;
  KVPool& pool_;
  std::unique_ptr<StaticGpuBatch> static_;
};

}  // namespace minisgl::cuda
