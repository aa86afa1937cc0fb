// One NVIDIA GPU's Kernels. What is not in the interface (stream, staging) is for the attention
// backends of the same plugin.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernel/cuda/gemm.h"
#include "kernel/cuda/launch.h"
#include "kernel/cuda/runtime.h"
#include "kernel/kernels.h"

namespace minisgl::cuda {

// Row-major, as checkpoints have it, in one of the float types.
class CudaMatrix final : public PackedMatrix {
 public:
  CudaMatrix(int64_t rows, int64_t cols, DType dtype)
      : PackedMatrix(rows, cols),
        dtype_(dtype),
        memory_(static_cast<size_t>(bytes_of(dtype, rows * cols))) {}

  int64_t bytes() const override { return bytes_of(dtype_, rows() * cols()); }
  std::string format() const override { return std::string(dtype_name(dtype_)); }
  DType dtype() const { return dtype_; }
  void* data() const { return memory_.data(); }

 private:
  DType dtype_;
  DeviceMemory memory_;
};

// Everything is enqueued on one stream. Activations are float32, float16 or bfloat16, alike within
// a call (logits may be float32 where x is not). Small int32 inputs (ids, positions, locations,
// tables) may lie on the host: they go up through the staging ring.
class CudaKernels final : public Kernels {
 public:
  // Errors: kResource when the driver or the GPU is missing, kInvalidArgument for a wrong index.
  explicit CudaKernels(int device);
  ~CudaKernels() override;

  Device device() const override { return Device::cuda(device_); }
  std::string description() const override;  // "cuda:0 NVIDIA H200, SM90, 139 GiB"

  Tensor allocate(DType dtype, std::span<const int64_t> shape) override;
  void copy(TensorView dst, TensorView src) override;
  void synchronize() override;
  // A CUDA graph. What `work` needs from the host is there before it: uploads cannot be captured.
  std::unique_ptr<RecordedWork> record(std::function<void()> work) override;

  std::unique_ptr<PackedMatrix> pack(std::span<const RawMatrix> parts, DType dtype) override;
  Tensor load_float(const RawMatrix& values) override;

  void embedding(TensorView out, TensorView ids, const PackedMatrix& table) override;
  void linear(TensorView y, TensorView x, const PackedMatrix& w, TensorView bias) override;
  void rms_norm(TensorView y, TensorView x, TensorView w, float eps) override;
  void add_rms_norm(TensorView y, TensorView x, TensorView addend, TensorView w,
                    float eps) override;
  void add(TensorView x, TensorView addend) override;
  void rope(TensorView q, TensorView k, TensorView positions, TensorView cos_sin) override;
  void qk_norm_rope(TensorView q, TensorView k, TensorView q_w, TensorView k_w, float eps,
                    TensorView positions, TensorView cos_sin) override;
  void silu_mul(TensorView y, TensorView gate_up) override;
  void gelu_mul(TensorView y, TensorView gate_up) override;
  void softcap(TensorView x, float cap) override;
  void store_kv(TensorView pool, TensorView rows, TensorView loc) override;
  void paged_attention(const PagedAttentionArgs& args) override;
  void gather_rows(TensorView out, TensorView x, TensorView rows) override;
  void argmax(TensorView ids, TensorView logits) override;
  void moe_route(TensorView experts, TensorView weights, TensorView logits,
                 bool normalize) override;
  void moe_mlp(TensorView y, TensorView x, TensorView experts, TensorView weights,
               std::span<const std::unique_ptr<PackedMatrix>> gate_up,
               std::span<const std::unique_ptr<PackedMatrix>> down, Arena& arena) override;

  // ---- for the attention backends ----
  cudaStream_t stream() const { return stream_->get(); }
  Staging& staging() { return *staging_; }
  int compute_capability() const { return compute_capability_; }  // 90 for SM90
  int num_multiprocessors() const { return num_multiprocessors_; }
  // Makes this GPU the calling thread's current one. Every operation does.
  void use() const;
  // K and V of the same tokens in one launch.
  void store_kv_pair(TensorView k_pool, TensorView v_pool, TensorView k, TensorView v,
                     TensorView loc);

 private:
  // The addresses of a layer's experts, on the device.
  struct ExpertTable {
    std::vector<const void*> matrices;
    DeviceMemory device;
  };
  const void* const* expert_table(std::span<const std::unique_ptr<PackedMatrix>> matrices,
                                  DType dtype);
  const int32_t* ints(const char* operation, TensorView view, int64_t size);
  const float* floats(const char* operation, TensorView view, int64_t size) const;
  void gated(const char* operation, Gate gate, TensorView y, TensorView gate_up);

  int device_;
  int compute_capability_ = 0;
  int num_multiprocessors_ = 0;
  std::string name_;
  size_t total_bytes_ = 0;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Staging> staging_;
  std::unique_ptr<Gemm> gemm_;
  std::vector<ExpertTable> expert_tables_;
  DeviceMemory argmax_scratch_;
  bool is_recording_ = false;
};

// Errors: kResource without a driver or GPU, kInvalidArgument with the GPUs that exist.
void check_device(int device);

// `view` as rows x heads x dim: rank 1 to 3 on the GPU. `operation` and `name` are for the message.
Rows rows_of(const char* operation, const char* name, const TensorView& view);

}  // namespace minisgl::cuda
