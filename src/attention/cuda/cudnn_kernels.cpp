#include "attention/cuda/cudnn_kernels.h"

#include <cuda_runtime_api.h>

#include <cstring>  // the frontend uses std::strlen without including it
#include <map>
#include <stdexcept>
#include <string>
#include <tuple>
#include <unordered_map>

#define CUDNN_FRONTEND_SKIP_JSON_LIB
#include <cudnn_frontend.h>

namespace minisgl::cuda {
namespace {

namespace fe = cudnn_frontend;
using Attributes = std::shared_ptr<fe::graph::Tensor_attributes>;

enum Uid : int64_t { kQ = 1, kK, kV, kOut, kTableK, kTableV, kLengthsQ, kLengthsK };

void check_status(cudnnStatus_t status, const char* call) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  throw std::runtime_error(std::string("cuDNN: ") + cudnnGetErrorString(status) + " from " + call);
}
void check_status(fe::error_t error, const char* call) {  // its accessors are not const
  if (error.is_good()) return;
  throw std::runtime_error(std::string("cuDNN: ") + error.get_message() + " from " + call);
}

// Everything that a plan depends on.
using Shape = std::tuple<int, int, int, int, int, int, int, int, int64_t, int64_t, float>;
Shape shape_of(const PagedCall& call) {
  return {call.batch,     call.num_qo_heads,      call.num_kv_heads, call.head_dim,
          call.page_size, call.page_table_stride, call.num_pages,    call.window_left,
          call.q_stride,  call.out_stride,        call.scale};
}

// [B, Hq, 1, D] queries over [pages, Hkv, page, D] pools that lie as [page, Hkv, D].
std::shared_ptr<fe::graph::Graph> describe(const PagedCall& call) {
  auto graph = std::make_shared<fe::graph::Graph>();
  graph->set_io_data_type(fe::DataType_t::BFLOAT16)
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  const int64_t b = call.batch, hq = call.num_qo_heads, hkv = call.num_kv_heads, d = call.head_dim;
  const int64_t page = call.page_size, pages = call.num_pages, width = call.page_table_stride;
  const auto tensor = [&](const char* name, Uid uid, std::vector<int64_t> dim,
                          std::vector<int64_t> stride, fe::DataType_t type) {
    return graph->tensor(fe::graph::Tensor_attributes()
                             .set_name(name)
                             .set_uid(uid)
                             .set_dim(dim)
                             .set_stride(stride)
                             .set_data_type(type));
  };
  constexpr auto kBf16 = fe::DataType_t::BFLOAT16, kInt = fe::DataType_t::INT32;
  const std::vector<int64_t> pool_dim = {pages, hkv, page, d};
  const std::vector<int64_t> pool_stride = {page * hkv * d, d, hkv * d, 1};
  const Attributes q = tensor("q", kQ, {b, hq, 1, d}, {call.q_stride, d, call.q_stride, 1}, kBf16);
  const Attributes k = tensor("k", kK, pool_dim, pool_stride, kBf16);
  const Attributes v = tensor("v", kV, pool_dim, pool_stride, kBf16);
  const Attributes table_k =
      tensor("table_k", kTableK, {b, 1, width, 1}, {width, width, 1, 1}, kInt);
  const Attributes table_v =
      tensor("table_v", kTableV, {b, 1, width, 1}, {width, width, 1, 1}, kInt);
  const Attributes lengths_q = tensor("lengths_q", kLengthsQ, {b, 1, 1, 1}, {1, 1, 1, 1}, kInt);
  const Attributes lengths_k = tensor("lengths_k", kLengthsK, {b, 1, 1, 1}, {1, 1, 1, 1}, kInt);
  auto attributes = fe::graph::SDPA_attributes()
                        .set_name("decode")
                        .set_generate_stats(false)
                        .set_attn_scale(call.scale)
                        .set_padding_mask(true)
                        .set_seq_len_q(lengths_q)
                        .set_seq_len_kv(lengths_k)
                        .set_paged_attention_k_table(table_k)
                        .set_paged_attention_v_table(table_v)
                        .set_paged_attention_max_seq_len_kv(static_cast<int>(width * page));
  if (call.window_left >= 0) {  // its left bound counts the query itself
    attributes.set_diagonal_alignment(fe::DiagonalAlignment_t::BOTTOM_RIGHT)
        .set_diagonal_band_right_bound(0)
        .set_diagonal_band_left_bound(call.window_left + 1);
  }
  auto [out, stats] = graph->sdpa(q, k, v, attributes);
  (void)stats;
  out->set_output(true)
      .set_dim({b, hq, 1, d})
      .set_stride({call.out_stride, d, call.out_stride, 1})
      .set_uid(kOut);
  return graph;
}

}  // namespace

struct CudnnAttention::Plans {
  cudnnHandle_t handle = nullptr;
  std::map<Shape, std::shared_ptr<fe::graph::Graph>> plans;
  void* workspace = nullptr;  // of the largest plan so far
  int64_t workspace_bytes = 0;
  int32_t* ones = nullptr;  // query lengths of a decode batch
  int ones_count = 0;
  std::unordered_map<int64_t, void*> arguments;

  ~Plans() {
    if (handle != nullptr) cudnnDestroy(handle);
    cudaFree(workspace);
    cudaFree(ones);
  }

  fe::graph::Graph& plan_of(const PagedCall& call) {
    const auto found = plans.find(shape_of(call));
    if (found != plans.end()) return *found->second;
    auto graph = describe(call);
    check_status(graph->build(handle, {fe::HeurMode_t::A}), "building a decode plan");
    int64_t bytes = 0;
    check_status(graph->get_workspace_size(bytes), "get_workspace_size");
    grow(bytes, call.batch);
    return *plans.emplace(shape_of(call), std::move(graph)).first->second;
  }

  // Captured graphs hold the old addresses: they stay allocated until the end.
  void grow(int64_t bytes, int batch) {
    if (bytes > workspace_bytes) {
      if (workspace != nullptr) outgrown.push_back(workspace);
      check_cuda(cudaMalloc(&workspace, static_cast<size_t>(bytes)));
      workspace_bytes = bytes;
    }
    if (batch > ones_count) {
      if (ones != nullptr) outgrown.push_back(ones);
      const std::vector<int32_t> values(static_cast<size_t>(2 * batch), 1);
      check_cuda(cudaMalloc(reinterpret_cast<void**>(&ones), values.size() * sizeof(int32_t)));
      check_cuda(
          cudaMemcpy(ones, values.data(), values.size() * sizeof(int32_t), cudaMemcpyHostToDevice));
      ones_count = 2 * batch;
    }
  }
  static void check_cuda(cudaError_t error) {
    if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
  }
  std::vector<void*> outgrown;
};

CudnnAttention::CudnnAttention(cudaStream_t stream) : plans_(std::make_unique<Plans>()) {
  check_status(cudnnCreate(&plans_->handle), "cudnnCreate");
  check_status(cudnnSetStream(plans_->handle, stream), "cudnnSetStream");
}

CudnnAttention::~CudnnAttention() {
  for (void* memory : plans_->outgrown) cudaFree(memory);
}

void CudnnAttention::decode(const PagedCall& call) {
  fe::graph::Graph& plan = plans_->plan_of(call);
  auto& arguments = plans_->arguments;
  arguments[kQ] = const_cast<void*>(call.q);
  arguments[kK] = const_cast<void*>(call.k_pool);
  arguments[kV] = const_cast<void*>(call.v_pool);
  arguments[kOut] = call.out;
  arguments[kTableK] = arguments[kTableV] = const_cast<int32_t*>(call.page_table);
  arguments[kLengthsQ] = plans_->ones;
  arguments[kLengthsK] = const_cast<int32_t*>(call.cache_seqlens);
  check_status(plan.execute(plans_->handle, arguments, plans_->workspace), "decode");
}

}  // namespace minisgl::cuda
