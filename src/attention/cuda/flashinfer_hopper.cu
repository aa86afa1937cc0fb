// FlashInfer's Hopper prefill (wgmma). Gathers pages of any size; the floor is arithmetic.
#include <algorithm>
#include <flashinfer/attention/hopper/default_params.cuh>
#include <flashinfer/attention/hopper/prefill_sm90.cuh>
#include <flashinfer/attention/hopper/variants.cuh>
#include <flashinfer/attention/scheduler.cuh>
#include <vector>

#include "attention/cuda/flashinfer_kernels.h"

namespace minisgl::cuda {
namespace {

namespace fi = flashinfer;
using Bf16 = cutlass::bfloat16_t;
using Params = fi::BatchPrefillPagedParams<Bf16, Bf16, Bf16, int32_t>;

Params fill_params(const fi::PrefillPlanSM90Info& info, const Workspace& ws,
                   const PagedCall& call) {
  Params params{};
  auto ints = [&](int64_t offset) { return fi::GetPtrFromBaseOffset<int32_t>(ws.ints, offset); };
  params.q_ptr = static_cast<Bf16*>(const_cast<void*>(call.q));
  params.k_ptr = static_cast<Bf16*>(const_cast<void*>(call.k_pool));
  params.v_ptr = static_cast<Bf16*>(const_cast<void*>(call.v_pool));
  params.o_ptr = static_cast<Bf16*>(call.out);
  params.lse_ptr = nullptr;
  params.qo_tile_indices = ints(info.qo_tile_indices_offset);
  params.qo_indptr = ints(info.qo_indptr_offset);
  params.kv_indptr = ints(info.kv_indptr_offset);
  params.kv_indices = const_cast<int32_t*>(call.page_indices);
  params.qo_lens = ints(info.qo_len_offset);
  params.kv_lens = ints(info.kv_len_offset);
  params.head_indices = ints(info.head_indices_offset);
  params.work_indptr = ints(info.work_indptr_offset);
  params.batch_indices = ints(info.batch_indices_offset);
  params.additional_params.logits_soft_cap = 0.0f;
  params.additional_params.sm_scale = call.scale;
  params.additional_params.maybe_prefix_len_ptr = nullptr;
  params.additional_params.maybe_token_pos_in_items_ptr = nullptr;
  params.additional_params.token_pos_in_items_len = 0;
  params.additional_params.maybe_max_item_len_ptr = nullptr;
  params.q_stride_n = call.q_stride;
  params.o_stride_n = call.out_stride;
  params.q_stride_h = params.o_stride_h = call.head_dim;
  params.k_stride_n = params.v_stride_n = int64_t(call.num_kv_heads) * call.head_dim;
  params.k_stride_h = params.v_stride_h = call.head_dim;
  params.k_page_stride = params.v_page_stride = call.page_size * params.k_stride_n;
  params.nnz_qo = call.num_tokens;
  params.num_qo_heads = call.num_qo_heads;
  params.num_kv_heads = call.num_kv_heads;
  params.group_size = call.num_qo_heads / call.num_kv_heads;
  params.page_size = call.page_size;
  params.window_left = call.window_left;
  params.causal = true;
  return params;
}

template <int D, bool Window, bool SameSchedule>
cudaError_t launch(Params& params, cudaStream_t stream) {
  return fi::BatchPrefillWithPagedKVCacheDispatched<D, D, fi::MaskMode::kCausal, Window,
                                                    SameSchedule, fi::StandardAttention>(
      params, false, stream);
}

template <int D>
cudaError_t run_dim(Params& params, bool same_schedule, cudaStream_t stream) {
  if (params.window_left >= 0) {
    return same_schedule ? launch<D, true, true>(params, stream)
                         : launch<D, true, false>(params, stream);
  }
  return same_schedule ? launch<D, false, true>(params, stream)
                       : launch<D, false, false>(params, stream);
}

}  // namespace

bool fi_hopper_supports(const PagedCall& call) {
  return (call.head_dim == 64 || call.head_dim == 128) && call.sinks == nullptr &&
         call.softcap <= 0;
}

cudaError_t fi_hopper_plan(FlashInferPlan& plan, const Workspace& ws, const PagedCall& call,
                           cudaStream_t stream) {
  fi::PrefillPlanSM90Info info;
  const cudaError_t error = fi::PrefillSM90Plan<int32_t>(
      ws.floats, ws.floats_bytes, ws.ints, ws.ints_host, ws.ints_bytes, info,
      const_cast<int32_t*>(call.cu_seqlens_q_host), const_cast<int32_t*>(call.page_indptr_host),
      const_cast<int32_t*>(call.cache_seqlens_host), uint32_t(call.num_tokens),
      uint32_t(call.batch), uint32_t(call.num_qo_heads), uint32_t(call.num_kv_heads),
      uint32_t(call.head_dim), uint32_t(call.head_dim), uint32_t(call.page_size), true, false, 2,
      stream);
  const std::vector<int64_t> values = info.ToVector();
  plan.count = int(values.size());
  std::copy(values.begin(), values.end(), plan.values);
  return error;
}

cudaError_t fi_hopper_run(const FlashInferPlan& plan, const Workspace& ws, const PagedCall& call,
                          cudaStream_t stream) {
  fi::PrefillPlanSM90Info info;
  info.FromVector(std::vector<int64_t>(plan.values, plan.values + plan.count));
  Params params = fill_params(info, ws, call);
  if (call.head_dim == 64) return run_dim<64>(params, info.same_schedule_for_all_heads, stream);
  return run_dim<128>(params, info.same_schedule_for_all_heads, stream);
}

}  // namespace minisgl::cuda
