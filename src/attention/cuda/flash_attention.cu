// FlashAttention 3: arithmetic-bound prefill at wgmma's rate, decode with KV splits chosen on the
// device by a small scheduling kernel.
#include <cutlass/numeric_types.h>
#include <flash.h>
#include <heuristics.h>
#include <tile_size.h>

#include <algorithm>
#include <cstring>

#include "attention/cuda/flash_attention_kernels.h"

namespace minisgl::cuda {
namespace {

constexpr int kHeadDim = 128;
constexpr int kMaxSplits = 128;

void set_tensors(Flash_fwd_params& p, const PagedCall& call, const FlashScratch& scratch) {
  p.q_ptr = const_cast<void*>(call.q);
  p.k_ptr = const_cast<void*>(call.k_pool);
  p.v_ptr = const_cast<void*>(call.v_pool);
  p.o_ptr = call.out;
  p.q_row_stride = call.q_stride;
  p.o_row_stride = call.out_stride;
  p.q_head_stride = p.o_head_stride = call.head_dim;
  p.k_row_stride = p.v_row_stride = int64_t(call.num_kv_heads) * call.head_dim;
  p.k_head_stride = p.v_head_stride = call.head_dim;
  p.k_batch_stride = p.v_batch_stride = call.page_size * p.k_row_stride;  // a page
  p.v_dim_stride = 1;
  p.softmax_lse_ptr = scratch.lse;
  p.cu_seqlens_q = const_cast<int32_t*>(call.cu_seqlens_q);
  p.seqused_k = const_cast<int32_t*>(call.cache_seqlens);
  p.page_table = const_cast<int32_t*>(call.page_table);
  p.page_table_batch_stride = call.page_table_stride;
  p.page_size = call.page_size;
  p.num_pages = call.num_pages;
}

void set_sizes(Flash_fwd_params& p, const PagedCall& call) {
  p.b = p.b_k = call.batch;
  p.h = call.num_qo_heads;
  p.h_k = call.num_kv_heads;
  p.d = p.dv = p.d_rounded = p.dv_rounded = kHeadDim;
  p.seqlen_q = call.max_seqlen_q;
  p.seqlen_k = call.page_table_stride * call.page_size;
  p.total_q = call.num_tokens;
  p.total_k = call.num_pages * call.page_size;
  p.scale_softmax = call.scale;
  p.softcap = 0.f;
  p.is_bf16 = true;
  p.p_dropout = p.rp_dropout = 1.f;
  p.p_dropout_in_uint8_t = 255;
  const bool windowed = call.window_left >= 0 && call.window_left < p.seqlen_k - 1;
  p.is_causal = !windowed;
  p.is_local = windowed;
  p.window_size_left = windowed ? call.window_left : p.seqlen_k - 1;
  p.window_size_right = 0;
  p.arch = 90;
}

// Tiles, the page path (TMA needs pages of whole key tiles and full query tiles) and how far KV
// ranges may be split: as if one sequence were long, since only the device knows the lengths.
void set_schedule(Flash_fwd_params& p, const FlashScratch& scratch) {
  auto tile = [&](bool gathers) {
    return tile_size_fwd_sm90(p.d_rounded, p.dv_rounded, p.is_causal, p.is_local, 2, false, gathers,
                              false);
  };
  const int group = p.h / p.h_k;
  p.pagedkv_tma =
      p.page_size % std::get<1>(tile(false)) == 0 && p.seqlen_q * group > std::get<0>(tile(false));
  const int tile_q = std::get<0>(tile(!p.pagedkv_tma));
  const int tile_k = std::get<1>(tile(!p.pagedkv_tma));
  const int seen =
      p.is_local ? std::max(0, std::min(p.seqlen_k, p.window_size_left + 1 + tile_q)) : p.seqlen_k;
  const int key_tiles = (seen + tile_k - 1) / tile_k;
  const int query_tiles = (p.seqlen_q * group + tile_q - 1) / tile_q;
  p.num_splits = num_splits_heuristic(p.h_k * query_tiles, p.num_sm, key_tiles, query_tiles,
                                      p.seqlen_k * (p.d + p.dv) * 2, true, kMaxSplits);
  const size_t lse_bytes = size_t(p.h) * size_t(p.total_q) * sizeof(float);
  const size_t fit = std::min(scratch.partial_out_bytes / (lse_bytes * size_t(p.dv)),
                              scratch.partial_lse_bytes / lse_bytes);
  p.num_splits = std::max(1, std::min(p.num_splits, int(std::min<size_t>(fit, kMaxSplits))));
  p.pack_gqa = true;
  p.prepare_varlen_pdl = p.b <= 992;
  p.varlen_sort_batches = !p.is_local;
  p.head_swizzle = true;
}

void set_scratch(Flash_fwd_params& p, const FlashScratch& scratch) {
  const int batch = (p.b + 3) / 4 * 4;
  int section = 2;
  p.num_splits_dynamic_ptr = scratch.scheduler;
  p.num_m_blocks_ptr = scratch.scheduler + batch;
  if (p.varlen_sort_batches) p.varlen_batch_idx_ptr = scratch.scheduler + batch * section++;
  p.num_nheads_in_l2_ptr = scratch.scheduler + batch * section++;
  p.tile_count_semaphore = scratch.scheduler + batch * section;
  p.tile_count_semaphore_offset = batch * section;
  if (p.num_splits == 1) return;
  p.oaccum_ptr = scratch.partial_out;
  p.softmax_lseaccum_ptr = scratch.partial_lse;
  p.oaccum_row_stride = p.dv;
  p.oaccum_head_stride = int64_t(p.total_q) * p.dv;
  p.oaccum_split_stride = p.oaccum_head_stride * p.h;
  p.lseaccum_head_stride = p.total_q;
  p.lseaccum_split_stride = int64_t(p.total_q) * p.h;
}

template <bool Split, bool Gathers>
void launch(Flash_fwd_params& p, cudaStream_t stream) {
  run_mha_fwd_<90, cutlass::bfloat16_t, kHeadDim, kHeadDim, Split, Gathers, false, true>(p, stream);
}

}  // namespace

bool fa_supports(const PagedCall& call) {
  return call.head_dim == kHeadDim && call.softcap <= 0 && call.sinks == nullptr;
}

cudaError_t fa_run(const PagedCall& call, const FlashScratch& scratch, int num_multiprocessors,
                   cudaStream_t stream) {
  if (call.num_tokens == 0) return cudaSuccess;
  if (call.batch > kFlashMaxBatch ||
      size_t(call.num_tokens) * size_t(call.num_qo_heads) * sizeof(float) > scratch.lse_bytes) {
    return cudaErrorInvalidConfiguration;
  }
  Flash_fwd_params p{};
  p.num_sm = num_multiprocessors;
  set_tensors(p, call, scratch);
  set_sizes(p, call);
  set_schedule(p, scratch);
  set_scratch(p, scratch);
  const bool split = p.num_splits > 1;
  if (p.pagedkv_tma) {
    split ? launch<true, false>(p, stream) : launch<false, false>(p, stream);
  } else {
    split ? launch<true, true>(p, stream) : launch<false, true>(p, stream);
  }
  if (split) run_mha_fwd_combine_<cutlass::bfloat16_t, float, kHeadDim>(p, stream, true);
  return cudaGetLastError();
}

}  // namespace minisgl::cuda
