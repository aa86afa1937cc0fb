// FlashInfer's FA2-style tensor-core kernels: prefill, extend and decode of any GQA group. Splits
// long KV ranges over blocks; the partial results are merged in order.
#include <algorithm>
#include <flashinfer/attention/default_prefill_params.cuh>
#include <flashinfer/attention/prefill.cuh>
#include <flashinfer/attention/scheduler.cuh>
#include <flashinfer/attention/variants.cuh>
#include <type_traits>
#include <vector>

#include "attention/cuda/flashinfer_kernels.h"

namespace minisgl::cuda {

namespace fi = flashinfer;
using Bf16 = __nv_bfloat16;
using PrefillParams = fi::BatchPrefillPagedParams<Bf16, Bf16, Bf16, int32_t>;

// Template arguments of kernels: not in an anonymous namespace, which nvcc's stubs cannot name.
struct SinkPrefillParams : PrefillParams {
  const float* sink = nullptr;
};

// The softmax with one more logit per query head in its denominator, joined by the first KV chunk.
struct SinkPrefillAttention : fi::AttentionVariantBase {
  static constexpr bool use_softmax = true;
  uint32_t qo_len, kv_len, window_left;
  float sm_scale_log2;

  template <class P>
  __device__ __host__ SinkPrefillAttention(const P& params, uint32_t request, uint8_t*)
      : qo_len(params.get_qo_len(request)), kv_len(params.get_kv_len(request)) {
    window_left = params.window_left >= 0 ? params.window_left : kv_len;
    sm_scale_log2 = params.sm_scale * fi::math::log2e;
  }
  REGISTER_LOGITS_MASK(params, batch_idx, qo_idx, kv_idx, qo_head_idx, kv_head_idx,
                       { return kv_idx + qo_len + window_left >= kv_len + qo_idx; })
  REGISTER_M_D_UPDATE(params, kv_tile_idx, qo_head_idx, m, d, scale, {
    const float sink = kv_tile_idx == 0 && qo_head_idx < params.num_qo_heads
                           ? params.sink[qo_head_idx] * fi::math::log2e
                           : -fi::math::inf;
    const float top = fmaxf(m, sink);
    scale = top == -fi::math::inf ? 1.f : fi::math::ptx_exp2(m - top);
    d = d * scale + (top == -fi::math::inf ? 0.f : fi::math::ptx_exp2(sink - top));
    m = top;
  })
  REGISTER_OUTPUT_TRANSFORM(params, output, batch_idx, qo_idx, qo_head_idx, m, d, scale, {
    return m == -fi::math::inf ? 0.f : output * scale * fi::math::ptx_rcp(d);
  })
};

namespace {

constexpr auto kNoRope = fi::PosEncodingMode::kNone;

template <int D, class V, class P>
cudaError_t run_kernel(P params, const fi::PrefillPlanInfo& info, const Workspace& ws,
                       const PagedCall& call, cudaStream_t stream) {
  auto ints = [&](int64_t offset) { return fi::GetPtrFromBaseOffset<int32_t>(ws.ints, offset); };
  params.q = static_cast<Bf16*>(const_cast<void*>(call.q));
  params.paged_kv = fi::paged_kv_t<Bf16, int32_t>(
      uint32_t(call.num_kv_heads), uint32_t(call.page_size), D, uint32_t(call.batch),
      fi::QKVLayout::kNHD, static_cast<Bf16*>(const_cast<void*>(call.k_pool)),
      static_cast<Bf16*>(const_cast<void*>(call.v_pool)), const_cast<int32_t*>(call.page_indices),
      const_cast<int32_t*>(call.page_indptr), const_cast<int32_t*>(call.last_page_len));
  params.q_indptr = const_cast<int32_t*>(call.cu_seqlens_q);
  params.o = static_cast<Bf16*>(call.out);
  params.num_qo_heads = uint32_t(call.num_qo_heads);
  params.group_size = fi::uint_fastdiv(uint32_t(call.num_qo_heads / call.num_kv_heads));
  params.q_stride_n = int32_t(call.q_stride);
  params.q_stride_h = D;
  params.window_left = call.window_left;
  params.logits_soft_cap = call.softcap;
  params.sm_scale = call.scale;
  params.rope_rcp_scale = params.rope_rcp_theta = 1.f;
  params.request_indices = ints(info.request_indices_offset);
  params.qo_tile_indices = ints(info.qo_tile_indices_offset);
  params.kv_tile_indices = ints(info.kv_tile_indices_offset);
  params.o_indptr = ints(info.o_indptr_offset);
  params.kv_chunk_size_ptr = ints(info.kv_chunk_size_ptr_offset);
  Bf16* partial_out = nullptr;
  float* partial_lse = nullptr;
  if (info.split_kv) {
    params.merge_indptr = ints(info.merge_indptr_offset);
    partial_out = fi::GetPtrFromBaseOffset<Bf16>(ws.floats, info.v_offset);
    partial_lse = fi::GetPtrFromBaseOffset<float>(ws.floats, info.s_offset);
  }
  params.padded_batch_size = uint32_t(info.padded_batch_size);
  params.max_total_num_rows = uint32_t(info.total_num_rows);
  if (info.enable_cuda_graph) {
    params.block_valid_mask = fi::GetPtrFromBaseOffset<bool>(ws.ints, info.block_valid_mask_offset);
    params.total_num_rows = fi::GetPtrFromBaseOffset<uint32_t>(ws.ints, info.total_num_rows_offset);
  }
  auto with_tile = [&](auto tile) {
    return fi::BatchPrefillWithPagedKVCacheDispatched<true, decltype(tile)::value, D, D, kNoRope,
                                                      false, fi::MaskMode::kCausal, false, V, P>(
        params, partial_out, partial_lse, false, stream);
  };
  if (info.cta_tile_q == 128) return with_tile(std::integral_constant<int, 128>{});
  if (info.cta_tile_q == 64) return with_tile(std::integral_constant<int, 64>{});
  return with_tile(std::integral_constant<int, 16>{});
}

template <int D>
cudaError_t run_dim(const fi::PrefillPlanInfo& info, const Workspace& ws, const PagedCall& call,
                    cudaStream_t stream) {
  if (call.sinks != nullptr) {
    SinkPrefillParams params;
    params.sink = call.sinks;
    return run_kernel<D, SinkPrefillAttention>(params, info, ws, call, stream);
  }
  if (call.softcap > 0) {  // knows the window too
    return run_kernel<D, fi::DefaultAttention<false, true, true, false>>(PrefillParams(), info, ws,
                                                                         call, stream);
  }
  if (call.window_left >= 0) {
    return run_kernel<D, fi::DefaultAttention<false, true, false, false>>(PrefillParams(), info, ws,
                                                                          call, stream);
  }
  return run_kernel<D, fi::DefaultAttention<false, false, false, false>>(PrefillParams(), info, ws,
                                                                         call, stream);
}

}  // namespace

bool fi_prefill_supports(const PagedCall& call) {
  return (call.head_dim == 64 || call.head_dim == 128) &&
         !(call.sinks != nullptr && call.softcap > 0);
}

cudaError_t fi_prefill_plan(FlashInferPlan& plan, const Workspace& ws, const PagedCall& call,
                            bool graph, cudaStream_t stream) {
  fi::PrefillPlanInfo info;
  const bool decode = call.max_seqlen_q == 1 && call.num_tokens == call.batch;
  const cudaError_t error = fi::PrefillPlan<int32_t>(
      ws.floats, ws.floats_bytes, ws.ints, ws.ints_host, ws.ints_bytes, info,
      const_cast<int32_t*>(call.cu_seqlens_q_host), const_cast<int32_t*>(call.page_indptr_host),
      uint32_t(call.num_tokens), uint32_t(call.batch), uint32_t(call.num_qo_heads),
      uint32_t(call.num_kv_heads), uint32_t(call.head_dim), uint32_t(call.head_dim),
      uint32_t(call.page_size), graph, 2, call.window_left, -1, false, 0, decode ? 1 : -1, decode,
      stream);
  const std::vector<int64_t> values = info.ToVector();
  plan.count = int(values.size());
  std::copy(values.begin(), values.end(), plan.values);
  return error;
}

cudaError_t fi_prefill_run(const FlashInferPlan& plan, const Workspace& ws, const PagedCall& call,
                           cudaStream_t stream) {
  fi::PrefillPlanInfo info;
  info.FromVector(std::vector<int64_t>(plan.values, plan.values + plan.count));
  if (call.head_dim == 64) return run_dim<64>(info, ws, call, stream);
  return run_dim<128>(info, ws, call, stream);
}

}  // namespace minisgl::cuda
