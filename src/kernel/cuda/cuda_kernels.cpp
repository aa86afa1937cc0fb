#include "kernel/cuda/cuda_kernels.h"

#include <algorithm>
#include <cstring>

#include "tensor/dims.h"
#include "utils/arena.h"
#include "utils/error.h"

namespace minisgl::cuda {
namespace {

constexpr size_t kStagingBytes = size_t{16} << 20;

// Whether this build holds code for the GPU: asks for one of our kernels.
void check_architecture(int device, int compute_capability) {
  const cudaError_t error = built_for_this_device();
  if (error == cudaSuccess) return;
  cudaGetLastError();
  throw_error(ErrorKind::kUnsupported,
              "cuda:{} is SM{}, this build has no code for it ({}); configure with "
              "-DMINISGL_CUDA_ARCHITECTURES={}",
              device, compute_capability, cudaGetErrorName(error),
              compute_capability == 90 ? "90a" : std::to_string(compute_capability));
}

void check_same_type(const char* operation, std::initializer_list<TensorView> views) {
  const TensorView& first = *views.begin();
  MINISGL_CHECK(is_floating(first.dtype()), "{}: {}, expected a float type", operation,
                first.describe());
  for (const TensorView& view : views) {
    MINISGL_CHECK(view.dtype() == first.dtype(), "{}: {} beside {}, expected equal types",
                  operation, view.describe(), first.describe());
  }
}

const CudaMatrix& matrix_of(const PackedMatrix& matrix) {
  const auto* ours = dynamic_cast<const CudaMatrix*>(&matrix);
  MINISGL_CHECK(ours != nullptr, "a matrix in {} was packed by another device's kernels",
                matrix.format());
  return *ours;
}

}  // namespace

void check_device(int device) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) {
    cudaGetLastError();
    throw_error(ErrorKind::kResource,
                "no NVIDIA GPU can be used: {} ({}); install the NVIDIA driver (CUDA 13 needs 580 "
                "or newer), or run with --device cpu",
                cudaGetErrorString(error), cudaGetErrorName(error));
  }
  if (device < 0 || device >= count) {
    throw_error(ErrorKind::kInvalidArgument, "cuda:{} does not exist, this machine has {} GPU{}",
                device, count, count == 1 ? " (cuda:0)" : "s, from cuda:0");
  }
}

Rows rows_of(const char* operation, const char* name, const TensorView& view) {
  MINISGL_CHECK(
      !view.device().is_cpu() && is_floating(view.dtype()) && view.rank() >= 1 && view.rank() <= 3,
      "{}: {} is {}, expected floats of 1 to 3 dimensions on a GPU", operation, name,
      view.describe());
  Rows rows;
  rows.data = view.raw();
  rows.dtype = view.dtype();
  rows.dim = view.dim(-1);
  rows.rows = view.rank() > 1 ? view.dim(0) : 1;
  rows.row_stride = view.rank() > 1 ? view.stride(0) : rows.dim;
  rows.heads = view.rank() > 2 ? view.dim(1) : 1;
  rows.head_stride = view.rank() > 2 ? view.stride(1) : rows.dim;
  return rows;
}

CudaKernels::CudaKernels(int device) : device_(device) {
  check_device(device);
  use();
  cudaDeviceProp properties{};
  MINISGL_CUDA(cudaGetDeviceProperties(&properties, device));
  compute_capability_ = properties.major * 10 + properties.minor;
  num_multiprocessors_ = properties.multiProcessorCount;
  name_ = properties.name;
  total_bytes_ = properties.totalGlobalMem;
  check_architecture(device, compute_capability_);
  stream_ = std::make_unique<Stream>();
  staging_ = std::make_unique<Staging>(kStagingBytes);
  gemm_ = std::make_unique<Gemm>(stream_->get());
}

// What still runs reads memory that is about to be freed.
CudaKernels::~CudaKernels() {
  cudaSetDevice(device_);
  cudaStreamSynchronize(stream_->get());
}

std::string CudaKernels::description() const {
  return fmt::format("cuda:{} {}, SM{}, {:.0f} GiB", device_, name_, compute_capability_,
                     static_cast<double>(total_bytes_) / (1 << 30));
}

void CudaKernels::use() const { MINISGL_CUDA(cudaSetDevice(device_)); }

// ---- memory ----

Tensor CudaKernels::allocate(DType dtype, std::span<const int64_t> shape) {
  use();
  const TensorView sized(nullptr, dtype, shape, device());
  DeviceMemory memory(static_cast<size_t>(sized.bytes()));
  MINISGL_CUDA(cudaMemsetAsync(memory.data(), 0, memory.bytes(), stream()));
  const int index = device_;
  return Tensor(TensorView(memory.release(), dtype, shape, device()), [index](void* data) {
    cudaSetDevice(index);
    cudaFree(data);  // waits for what is running
  });
}

void CudaKernels::copy(TensorView dst, TensorView src) {
  MINISGL_CHECK(dst.dtype() == src.dtype() && dst.numel() == src.numel() && dst.is_contiguous() &&
                    src.is_contiguous(),
                "copy: {} to {}, expected equal and contiguous", src.describe(), dst.describe());
  const auto bytes = static_cast<size_t>(src.bytes());
  if (bytes == 0) return;
  if (dst.device().is_cpu() && src.device().is_cpu()) {
    std::memmove(dst.raw(), src.raw(), bytes);
    return;
  }
  use();
  MINISGL_CHECK(!is_recording_ || (!dst.device().is_cpu() && !src.device().is_cpu()),
                "copy: {} to {} cannot be part of a graph", src.describe(), dst.describe());
  if (src.device().is_cpu() && staging_->takes(bytes)) {
    staging_->copy(dst.raw(), src.raw(), bytes, stream());
    return;
  }
  // Pageable memory of either side is done with when this returns; page-locked memory is not.
  MINISGL_CUDA(cudaMemcpyAsync(dst.raw(), src.raw(), bytes, cudaMemcpyDefault, stream()));
}

void CudaKernels::synchronize() {
  use();
  MINISGL_CUDA(cudaStreamSynchronize(stream()));
}

namespace {

class CudaGraph final : public RecordedWork {
 public:
  CudaGraph(const CudaKernels& kernels, cudaGraph_t graph) : kernels_(kernels) {
    MINISGL_CUDA(cudaGraphInstantiate(&graph_, graph, 0));
    MINISGL_CUDA(cudaGraphUpload(graph_, kernels.stream()));
  }
  ~CudaGraph() override { cudaGraphExecDestroy(graph_); }
  void run() override {
    kernels_.use();
    MINISGL_CUDA(cudaGraphLaunch(graph_, kernels_.stream()));
  }

 private:
  const CudaKernels& kernels_;
  cudaGraphExec_t graph_ = nullptr;
};

}  // namespace

std::unique_ptr<RecordedWork> CudaKernels::record(std::function<void()> work) {
  use();
  work();  // first uses: algorithms, plans and tables are made now
  synchronize();
  cudaGraph_t graph = nullptr;
  MINISGL_CUDA(cudaStreamBeginCapture(stream(), cudaStreamCaptureModeThreadLocal));
  is_recording_ = true;
  try {
    work();
  } catch (...) {
    is_recording_ = false;
    cudaStreamEndCapture(stream(), &graph);
    if (graph != nullptr) cudaGraphDestroy(graph);
    cudaGetLastError();
    throw;
  }
  is_recording_ = false;
  MINISGL_CUDA(cudaStreamEndCapture(stream(), &graph));
  auto recorded = std::make_unique<CudaGraph>(*this, graph);
  MINISGL_CUDA(cudaGraphDestroy(graph));
  return recorded;
}

// ---- checks at the door ----

const int32_t* CudaKernels::ints(const char* operation, TensorView view, int64_t size) {
  MINISGL_CHECK(view.dtype() == DType::kInt32 && view.numel() == size && view.is_contiguous(),
                "{}: got {}, expected {} contiguous int32", operation, view.describe(), size);
  if (!view.device().is_cpu()) return static_cast<const int32_t*>(view.raw());
  MINISGL_CHECK(!is_recording_, "{}: {} cannot be part of a graph", operation, view.describe());
  return static_cast<const int32_t*>(
      staging_->upload(view.raw(), static_cast<size_t>(view.bytes()), stream()));
}

const float* CudaKernels::floats(const char* operation, TensorView view, int64_t size) const {
  MINISGL_CHECK(view.dtype() == DType::kFloat32 && view.numel() == size && view.is_contiguous() &&
                    !view.device().is_cpu(),
                "{}: got {}, expected {} contiguous float32 on a GPU", operation, view.describe(),
                size);
  return static_cast<const float*>(view.raw());
}

// ---- operations ----

void CudaKernels::embedding(TensorView out, TensorView ids, const PackedMatrix& table) {
  use();
  Dims("embedding").bind("K", table.cols()).match("ids", ids, {"T"}).match("out", out, {"T", "K"});
  const CudaMatrix& w = matrix_of(table);
  const Rows rows{.data = w.data(),
                  .dtype = w.dtype(),
                  .rows = w.rows(),
                  .heads = 1,
                  .dim = w.cols(),
                  .row_stride = w.cols(),
                  .head_stride = w.cols()};
  MINISGL_CUDA(cuda::gather_rows(rows_of("embedding", "out", out), rows,
                                 ints("embedding", ids, out.dim(0)), stream()));
}

void CudaKernels::linear(TensorView y, TensorView x, const PackedMatrix& w, TensorView bias) {
  use();
  Dims("linear")
      .bind("N", w.rows())
      .bind("K", w.cols())
      .match("x", x, {"T", "K"})
      .match("y", y, {"T", "N"});
  const CudaMatrix& matrix = matrix_of(w);
  MINISGL_CHECK(
      x.dtype() == matrix.dtype() && (y.dtype() == x.dtype() || y.dtype() == DType::kFloat32),
      "linear: x is {}, y is {}, w is in {}; x must have w's type, y that or float32", x.describe(),
      y.describe(), matrix.format());
  if (y.numel() == 0) return;
  const float* bias_data = bias.empty() ? nullptr : floats("linear bias", bias, w.rows());
  GemvCall few;
  few.y = y.raw();
  few.x = x.raw();
  few.w = matrix.data();
  few.bias = bias_data;
  few.rows = x.dim(0);
  few.n = w.rows();
  few.k = w.cols();
  few.x_stride = x.stride(0);
  few.y_stride = y.stride(0);
  few.type = matrix.dtype();
  few.y_type = y.dtype();
  if (gemv_supports(few)) {
    MINISGL_CUDA(gemv(few, stream()));
    return;
  }
  const Gemm::Problem problem{.rows = x.dim(0),
                              .n = w.rows(),
                              .k = w.cols(),
                              .x_stride = x.stride(0),
                              .y_stride = y.stride(0),
                              .type = matrix.dtype(),
                              .y_type = y.dtype()};
  gemm_->run(y.raw(), x.raw(), matrix.data(), problem);
  if (bias_data == nullptr) return;
  MINISGL_CUDA(add_bias(rows_of("linear", "y", y), bias_data, stream()));
}

void CudaKernels::rms_norm(TensorView y, TensorView x, TensorView w, float eps) {
  use();
  check_same_type("rms_norm", {x, y});
  MINISGL_CHECK(std::ranges::equal(x.shape(), y.shape()), "rms_norm: x is {}, y is {}",
                x.describe(), y.describe());
  MINISGL_CUDA(cuda::rms_norm(rows_of("rms_norm", "y", y), rows_of("rms_norm", "x", x),
                              floats("rms_norm w", w, x.dim(-1)), eps, stream()));
}

void CudaKernels::add_rms_norm(TensorView y, TensorView x, TensorView addend, TensorView w,
                               float eps) {
  use();
  Dims("add_rms_norm")
      .match("x", x, {"T", "H"})
      .match("y", y, {"T", "H"})
      .match("addend", addend, {"T", "H"});
  check_same_type("add_rms_norm", {x, y, addend});
  MINISGL_CUDA(cuda::add_rms_norm(rows_of("add_rms_norm", "y", y), rows_of("add_rms_norm", "x", x),
                                  rows_of("add_rms_norm", "addend", addend),
                                  floats("add_rms_norm w", w, x.dim(1)), eps, stream()));
}

void CudaKernels::add(TensorView x, TensorView addend) {
  use();
  Dims("add").match("x", x, {"T", "H"}).match("addend", addend, {"T", "H"});
  check_same_type("add", {x, addend});
  MINISGL_CUDA(cuda::add(rows_of("add", "x", x), rows_of("add", "addend", addend), stream()));
}

void CudaKernels::rope(TensorView q, TensorView k, TensorView positions, TensorView cos_sin) {
  use();
  Dims("rope")
      .match("q", q, {"T", "Hq", "D"})
      .match("k", k, {"T", "Hkv", "D"})
      .match("positions", positions, {"T"})
      .match("cos_sin", cos_sin, {"_", "R"});
  check_same_type("rope", {q, k});
  const int64_t rotary = cos_sin.dim(1);
  MINISGL_CHECK(rotary % 2 == 0 && rotary <= q.dim(2), "rope: cos_sin is {}, D is {}",
                cos_sin.describe(), q.dim(2));
  MINISGL_CUDA(cuda::rope(rows_of("rope", "q", q), rows_of("rope", "k", k),
                          ints("rope", positions, q.dim(0)),
                          floats("rope cos_sin", cos_sin, cos_sin.numel()), rotary, stream()));
}

void CudaKernels::qk_norm_rope(TensorView q, TensorView k, TensorView q_w, TensorView k_w,
                               float eps, TensorView positions, TensorView cos_sin) {
  use();
  Dims("qk_norm_rope")
      .match("q", q, {"T", "Hq", "D"})
      .match("k", k, {"T", "Hkv", "D"})
      .match("positions", positions, {"T"})
      .match("cos_sin", cos_sin, {"_", "R"});
  check_same_type("qk_norm_rope", {q, k});
  const int64_t rotary = cos_sin.dim(1), dim = q.dim(2);
  if (dim > 512) return Kernels::qk_norm_rope(q, k, q_w, k_w, eps, positions, cos_sin);
  MINISGL_CHECK(rotary % 2 == 0 && rotary <= dim, "qk_norm_rope: cos_sin is {}, D is {}",
                cos_sin.describe(), dim);
  MINISGL_CUDA(cuda::qk_norm_rope(
      rows_of("qk_norm_rope", "q", q), rows_of("qk_norm_rope", "k", k),
      floats("qk_norm_rope q_w", q_w, dim), floats("qk_norm_rope k_w", k_w, dim), eps,
      ints("qk_norm_rope", positions, q.dim(0)),
      floats("qk_norm_rope cos_sin", cos_sin, cos_sin.numel()), rotary, stream()));
}

void CudaKernels::gated(const char* operation, Gate gate, TensorView y, TensorView gate_up) {
  use();
  Dims(operation)
      .match("y", y, {"T", "I"})
      .bind("2I", 2 * y.dim(1))
      .match("gate_up", gate_up, {"T", "2I"});
  check_same_type(operation, {y, gate_up});
  MINISGL_CUDA(gated_activation(gate, rows_of(operation, "y", y),
                                rows_of(operation, "gate_up", gate_up), stream()));
}

void CudaKernels::silu_mul(TensorView y, TensorView gate_up) {
  gated("silu_mul", Gate::kSilu, y, gate_up);
}
void CudaKernels::gelu_mul(TensorView y, TensorView gate_up) {
  gated("gelu_mul", Gate::kGeluTanh, y, gate_up);
}

void CudaKernels::softcap(TensorView x, float cap) {
  use();
  const Rows rows = rows_of("softcap", "x", x);
  MINISGL_CHECK(cap > 0 && rows.heads == 1, "softcap: x is {}, cap is {}", x.describe(), cap);
  MINISGL_CUDA(cuda::softcap(rows, cap, stream()));
}

void CudaKernels::store_kv(TensorView pool, TensorView rows, TensorView loc) {
  use();
  Dims("store_kv")
      .match("pool", pool, {"_", "Hkv", "D"})
      .match("rows", rows, {"T", "Hkv", "D"})
      .match("loc", loc, {"T"});
  MINISGL_CHECK(pool.is_contiguous());
  MINISGL_CUDA(cuda::store_kv(rows_of("store_kv", "pool", pool), rows_of("store_kv", "rows", rows),
                              ints("store_kv", loc, rows.dim(0)), stream()));
}

void CudaKernels::store_kv_pair(TensorView k_pool, TensorView v_pool, TensorView k, TensorView v,
                                TensorView loc) {
  use();
  Dims("store_kv")
      .match("k_pool", k_pool, {"L", "Hkv", "D"})
      .match("v_pool", v_pool, {"L", "Hkv", "D"})
      .match("k", k, {"T", "Hkv", "D"})
      .match("v", v, {"T", "Hkv", "D"})
      .match("loc", loc, {"T"});
  check_same_type("store_kv", {k_pool, v_pool});
  check_same_type("store_kv", {k, v});
  MINISGL_CHECK(k_pool.is_contiguous() && v_pool.is_contiguous());
  MINISGL_CUDA(cuda::store_kv_pair(rows_of("store_kv", "k_pool", k_pool),
                                   rows_of("store_kv", "v_pool", v_pool),
                                   rows_of("store_kv", "k", k), rows_of("store_kv", "v", v),
                                   ints("store_kv", loc, k.dim(0)), stream()));
}

void CudaKernels::paged_attention(const PagedAttentionArgs& args) {
  use();
  const char* name = "paged_attention";
  Dims(name)
      .match("q", args.q, {"T", "Hq", "D"})
      .match("out", args.out, {"T", "Hq", "D"})
      .match("k_pool", args.k_pool, {"L", "Hkv", "D"})
      .match("v_pool", args.v_pool, {"L", "Hkv", "D"})
      .match("cache_seqlens", args.cache_seqlens, {"bs"})
      .match("page_table", args.page_table, {"bs", "_"});
  check_same_type(name, {args.q, args.out});
  check_same_type(name, {args.k_pool, args.v_pool});
  MINISGL_CHECK(args.k_pool.is_contiguous() && args.v_pool.is_contiguous() &&
                    args.page_table.dim(1) >= args.max_seqlen_k &&
                    args.q.dim(1) % args.k_pool.dim(1) == 0,
                "paged_attention: pools {} and {}, page_table {}, {} keys, {} query heads",
                args.k_pool.describe(), args.v_pool.describe(), args.page_table.describe(),
                args.max_seqlen_k, args.q.dim(1));
  const int64_t bs = args.cache_seqlens.dim(0);
  PagedAttentionCall call;
  call.out = rows_of(name, "out", args.out);
  call.q = rows_of(name, "q", args.q);
  call.k_pool = rows_of(name, "k_pool", args.k_pool);
  call.v_pool = rows_of(name, "v_pool", args.v_pool);
  call.cu_seqlens_q = ints(name, args.cu_seqlens_q, bs + 1);
  call.cache_seqlens = ints(name, args.cache_seqlens, bs);
  call.page_table = ints(name, args.page_table, args.page_table.numel());
  call.page_table_stride = args.page_table.dim(1);
  call.batch = bs;
  if (!args.sinks.empty()) call.sinks = floats("paged_attention sinks", args.sinks, args.q.dim(1));
  if (!args.lse.empty()) {
    call.lse =
        const_cast<float*>(floats("paged_attention lse", args.lse, args.q.dim(0) * args.q.dim(1)));
  }
  call.scale = args.scale;
  call.softcap = args.softcap;
  call.window = args.window;
  MINISGL_CUDA(cuda::paged_attention(call, stream()));
}

void CudaKernels::gather_rows(TensorView out, TensorView x, TensorView rows) {
  use();
  Dims("gather_rows")
      .match("rows", rows, {"n"})
      .match("out", out, {"n", "H"})
      .match("x", x, {"T", "H"});
  MINISGL_CUDA(cuda::gather_rows(rows_of("gather_rows", "out", out), rows_of("gather_rows", "x", x),
                                 ints("gather_rows", rows, out.dim(0)), stream()));
}

void CudaKernels::argmax(TensorView ids, TensorView logits) {
  use();
  Dims("argmax").match("ids", ids, {"bs"}).match("logits", logits, {"bs", "V"});
  MINISGL_CHECK(ids.dtype() == DType::kInt32 && ids.is_contiguous() && logits.dim(1) > 0);
  const Rows rows = rows_of("argmax", "logits", logits);
  if (argmax_scratch_.bytes() < argmax_scratch_bytes(rows.rows)) {
    synchronize();  // the old memory may still be used
    argmax_scratch_ = DeviceMemory(2 * argmax_scratch_bytes(rows.rows));
  }
  if (!ids.device().is_cpu()) {
    MINISGL_CUDA(
        cuda::argmax(static_cast<int32_t*>(ids.raw()), rows, argmax_scratch_.data(), stream()));
    return;
  }
  const int64_t shape[] = {ids.dim(0)};
  const Tensor on_device = allocate(DType::kInt32, shape);
  MINISGL_CUDA(
      cuda::argmax(on_device.view().data<int32_t>(), rows, argmax_scratch_.data(), stream()));
  copy(ids, on_device);
}

void CudaKernels::moe_route(TensorView experts, TensorView weights, TensorView logits,
                            bool normalize) {
  use();
  Dims dims("moe_route");
  dims.match("logits", logits, {"T", "E"})
      .match("experts", experts, {"T", "k"})
      .match("weights", weights, {"T", "k"});
  MINISGL_CHECK(dims["k"] >= 1 && dims["k"] <= dims["E"] && dims["E"] <= 2048,
                "moe_route: {} of {} experts", dims["k"], dims["E"]);
  auto* ids = const_cast<int32_t*>(ints("moe_route", experts, experts.numel()));
  auto* shares = const_cast<float*>(floats("moe_route", weights, weights.numel()));
  MINISGL_CUDA(cuda::moe_route(ids, shares, dims["k"], rows_of("moe_route", "logits", logits),
                               normalize, stream()));
}

const void* const* CudaKernels::expert_table(
    std::span<const std::unique_ptr<PackedMatrix>> matrices, DType dtype) {
  const auto address = [&](size_t e) { return matrix_of(*matrices[e]).data(); };
  for (const ExpertTable& table : expert_tables_) {
    if (table.matrices.size() != matrices.size()) continue;
    size_t equal = 0;
    while (equal < matrices.size() && table.matrices[equal] == address(equal)) ++equal;
    if (equal == matrices.size()) return static_cast<const void* const*>(table.device.data());
  }
  ExpertTable table;
  for (const auto& matrix : matrices) {
    MINISGL_CHECK(matrix_of(*matrix).dtype() == dtype, "moe_mlp: experts in {}, x in {}",
                  matrix->format(), dtype_name(dtype));
    table.matrices.push_back(matrix_of(*matrix).data());
  }
  const size_t bytes = table.matrices.size() * sizeof(void*);
  table.device = DeviceMemory(bytes);
  staging_->copy(table.device.data(), table.matrices.data(), bytes, stream());
  expert_tables_.push_back(std::move(table));
  return static_cast<const void* const*>(expert_tables_.back().device.data());
}

void CudaKernels::moe_mlp(TensorView y, TensorView x, TensorView experts, TensorView weights,
                          std::span<const std::unique_ptr<PackedMatrix>> gate_up,
                          std::span<const std::unique_ptr<PackedMatrix>> down, Arena& arena) {
  use();
  Dims("moe_mlp")
      .match("x", x, {"T", "H"})
      .match("y", y, {"T", "H"})
      .match("experts", experts, {"T", "k"})
      .match("weights", weights, {"T", "k"});
  check_same_type("moe_mlp", {x, y});
  MINISGL_CHECK(!gate_up.empty() && gate_up.size() == down.size());
  const int64_t inner = down.front()->cols(), hidden_size = x.dim(1);
  for (size_t e = 0; e < gate_up.size(); ++e) {
    MINISGL_CHECK(gate_up[e]->rows() == 2 * inner && gate_up[e]->cols() == hidden_size &&
                      down[e]->rows() == hidden_size && down[e]->cols() == inner,
                  "moe_mlp: expert {} is [{}, {}] and [{}, {}]", e, gate_up[e]->rows(),
                  gate_up[e]->cols(), down[e]->rows(), down[e]->cols());
  }
  if (x.dim(0) == 0) return;
  const ArenaScope scope(arena);
  const int64_t top_k = experts.dim(1);
  auto* hidden = static_cast<float*>(
      arena.allocate(x.dim(0) * top_k * inner * static_cast<int64_t>(sizeof(float))));
  const int32_t* ids = ints("moe_mlp", experts, experts.numel());
  const float* shares = floats("moe_mlp", weights, weights.numel());
  MINISGL_CUDA(moe_gate_up(hidden, rows_of("moe_mlp", "x", x), ids, top_k, inner,
                           expert_table(gate_up, x.dtype()), stream()));
  MINISGL_CUDA(moe_down(rows_of("moe_mlp", "y", y), hidden, ids, shares, top_k, inner,
                        expert_table(down, x.dtype()), stream()));
}

}  // namespace minisgl::cuda
