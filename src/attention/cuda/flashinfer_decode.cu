// FlashInfer's CUDA-core decode. Reads each K and V once: the floor is memory.
#include <algorithm>
#include <flashinfer/attention/decode.cuh>
#include <flashinfer/attention/default_decode_params.cuh>
#include <flashinfer/attention/scheduler.cuh>
#include <flashinfer/attention/variants.cuh>
#include <type_traits>
#include <vector>

#include "attention/cuda/flashinfer_kernels.h"

namespace minisgl::cuda {
namespace {

namespace fi = flashinfer;
using Bf16 = __nv_bfloat16;
using Params = fi::BatchDecodeParams<Bf16, Bf16, Bf16, int32_t>;
constexpr auto kNoRope = fi::PosEncodingMode::kNone;

template <int D, class V>
struct Kernel {
  static constexpr int kHeadDim = D;
  using Variant = V;
};

// f(Kernel<head dim, variant>): the capped variant also knows the window.
template <class F>
cudaError_t dispatch(const PagedCall& call, F&& f) {
  auto with_dim = [&](auto dim) {
    constexpr int kDim = decltype(dim)::value;
    if (call.softcap > 0) return f(Kernel<kDim, fi::DefaultAttention<false, true, true, false>>{});
    if (call.window_left >= 0) {
      return f(Kernel<kDim, fi::DefaultAttention<false, true, false, false>>{});
    }
    return f(Kernel<kDim, fi::DefaultAttention<false, false, false, false>>{});
  };
  if (call.head_dim == 64) return with_dim(std::integral_constant<int, 64>{});
  if (call.head_dim == 128) return with_dim(std::integral_constant<int, 128>{});
  return cudaErrorNotSupported;
}

template <class K>
cudaError_t plan_kernel(fi::DecodePlanInfo& info, const Workspace& ws, const PagedCall& call,
                        bool graph, cudaStream_t stream) {
  using V = typename K::Variant;
  constexpr int kDim = K::kHeadDim;
  const uint32_t group = uint32_t(call.num_qo_heads / call.num_kv_heads);
  DISPATCH_GQA_GROUP_SIZE(group, kGroup, {
    return (fi::DecodePlan<kDim, kNoRope, V, Params>(
        ws.floats, ws.floats_bytes, ws.ints, ws.ints_host, ws.ints_bytes, info,
        const_cast<int32_t*>(call.page_indptr_host), uint32_t(call.batch),
        uint32_t(call.num_qo_heads), uint32_t(call.page_size), graph, stream,
        fi::BatchDecodeWithPagedKVCacheWorkEstimationDispatched<kGroup, kDim, kNoRope, V, Params>));
  });
  return cudaErrorNotSupported;
}

template <class K>
cudaError_t run_kernel(const fi::DecodePlanInfo& info, const Workspace& ws, const PagedCall& call,
                       cudaStream_t stream) {
  constexpr int kDim = K::kHeadDim;
  auto ints = [&](int64_t offset) { return fi::GetPtrFromBaseOffset<int32_t>(ws.ints, offset); };
  fi::paged_kv_t<Bf16, int32_t> kv(
      uint32_t(call.num_kv_heads), uint32_t(call.page_size), kDim, uint32_t(call.batch),
      fi::QKVLayout::kNHD, static_cast<Bf16*>(const_cast<void*>(call.k_pool)),
      static_cast<Bf16*>(const_cast<void*>(call.v_pool)), const_cast<int32_t*>(call.page_indices),
      const_cast<int32_t*>(call.page_indptr), const_cast<int32_t*>(call.last_page_len));
  Params params(static_cast<Bf16*>(const_cast<void*>(call.q)), nullptr, kv,
                static_cast<Bf16*>(call.out), nullptr, nullptr, uint32_t(call.num_qo_heads),
                int32_t(call.q_stride), kDim, call.window_left, call.softcap, call.scale, 1.0f,
                1e4f);
  params.padded_batch_size = uint32_t(info.padded_batch_size);
  params.request_indices = ints(info.request_indices_offset);
  params.kv_tile_indices = ints(info.kv_tile_indices_offset);
  params.o_indptr = ints(info.o_indptr_offset);
  params.kv_chunk_size_ptr = ints(info.kv_chunk_size_ptr_offset);
  Bf16* partial_out = nullptr;
  float* partial_lse = nullptr;
  if (info.split_kv) {
    partial_out = fi::GetPtrFromBaseOffset<Bf16>(ws.floats, info.v_offset);
    partial_lse = fi::GetPtrFromBaseOffset<float>(ws.floats, info.s_offset);
    if (info.enable_cuda_graph) {
      params.block_valid_mask =
          fi::GetPtrFromBaseOffset<bool>(ws.ints, info.block_valid_mask_offset);
    }
  }
  return fi::BatchDecodeWithPagedKVCacheDispatched<kDim, kNoRope, typename K::Variant, Params>(
      params, partial_out, partial_lse, false, stream);
}

}  // namespace

bool fi_decode_supports(const PagedCall& call) {
  const int group = call.num_qo_heads / call.num_kv_heads;
  const bool group_built = group == 1 || group == 2 || group == 3 || group == 4 || group == 6 ||
                           group == 8 || group == 16;
  return group_built && call.max_seqlen_q == 1 && call.num_tokens == call.batch &&
         call.sinks == nullptr && (call.head_dim == 64 || call.head_dim == 128);
}

cudaError_t fi_decode_plan(FlashInferPlan& plan, const Workspace& ws, const PagedCall& call,
                           bool graph, cudaStream_t stream) {
  fi::DecodePlanInfo info;
  const cudaError_t error = dispatch(call, [&](auto kernel) {
    return plan_kernel<decltype(kernel)>(info, ws, call, graph, stream);
  });
  const std::vector<int64_t> values = info.ToVector();
  plan.count = int(values.size());
  std::copy(values.begin(), values.end(), plan.values);
  return error;
}

cudaError_t fi_decode_run(const FlashInferPlan& plan, const Workspace& ws, const PagedCall& call,
                          cudaStream_t stream) {
  fi::DecodePlanInfo info;
  info.FromVector(std::vector<int64_t>(plan.values, plan.values + plan.count));
  return dispatch(
      call, [&](auto kernel) { return run_kernel<decltype(kernel)>(info, ws, call, stream); });
}

}  // namespace minisgl::cuda
