#include "kernel/cpu/attention.h"

#include <algorithm>

#include "kernel/checks.h"

namespace minisgl::cpu {
namespace {

// Queries x heads of a task: enough that turning a block of keys is cheap beside their products.
constexpr int64_t kTaskRows = 96;

// As isa/attention.cpp cuts it up.
int64_t scratch_floats(int64_t rows, int64_t dim) {
  const int64_t columns = align_up(dim, kPanel);
  return align_up(dim, kChunk) / kChunk * rows * kTileStride + rows * columns +
         2 * align_up(rows, 16) + 2 * columns * kPanel + kMaxTileRows * (kPanel + kTileStride) +
         8 * 16;
}

int kv_type(DType dtype) {
  if (dtype == DType::kBFloat16) return 1;
  return dtype == DType::kFloat16 ? 2 : 0;
}

void check_locations(const PagedAttentionArgs& args) {
  const int32_t* pages = args.page_table.data<int32_t>();
  for (int64_t i = 0; i < args.cache_seqlens.dim(0); ++i) {
    const int64_t n =
        args.cu_seqlens_q.data<int32_t>()[i + 1] - args.cu_seqlens_q.data<int32_t>()[i];
    if (n == 0) continue;
    for (int64_t j = 0; j < args.cache_seqlens.data<int32_t>()[i]; ++j) {
      checks::index_below("paged_attention", pages[i * args.page_table.stride(0) + j],
                          args.k_pool.dim(0));
    }
  }
}

const void* at_head(const TensorView& pool, int64_t head) {
  return static_cast<const std::byte*>(pool.raw()) +
         head * pool.stride(1) * block_bytes(pool.dtype());
}

}  // namespace

void Attention::operator()(const PagedAttentionArgs& args) {
  checks::paged_attention(args);
  check_locations(args);
  plan(args);
  const int64_t group = args.q.dim(1) / args.k_pool.dim(1);
  int64_t rows = 0;
  for (const Task& task : tasks_) rows = std::max(rows, task.tokens * group);
  const int64_t floats = align_up(scratch_floats(rows, args.q.dim(2)), 16);
  float* scratch = scratch_.floats(floats * team_.size());
  team_.for_tasks_with_slot(static_cast<int64_t>(tasks_.size()), [&](int64_t task, int64_t slot) {
    run(args, tasks_[static_cast<size_t>(task)], scratch + slot * floats);
  });
}

void Attention::plan(const PagedAttentionArgs& args) {
  const int64_t heads = args.k_pool.dim(1);
  const int64_t group = args.q.dim(1) / heads;
  const int64_t tokens_per_task = std::max<int64_t>(1, kTaskRows / group);
  const auto cu = args.cu_seqlens_q.values<const int32_t>();
  tasks_.clear();
  for (size_t i = 0; i + 1 < cu.size(); ++i) {
    // The last queries see the most keys: they go first.
    const int64_t n = cu[i + 1] - cu[i];
    for (int64_t t = (n - 1) / tokens_per_task * tokens_per_task; t >= 0 && n > 0;
         t -= tokens_per_task) {
      for (int64_t h = 0; h < heads; ++h) {
        tasks_.push_back({static_cast<int64_t>(i), h, t, std::min(tokens_per_task, n - t)});
      }
    }
  }
}

void Attention::run(const PagedAttentionArgs& args, const Task& task, float* scratch) const {
  const int32_t* cu = args.cu_seqlens_q.data<int32_t>();
  const int64_t n = cu[task.request + 1] - cu[task.request];
  const int64_t token = cu[task.request] + task.first_token;
  const int64_t group = args.q.dim(1) / args.k_pool.dim(1);
  const int64_t head = task.head * group;
  AttentionArgs call{};
  call.out = args.out.data<float>() + token * args.out.stride(0) + head * args.out.stride(1);
  call.q = args.q.data<float>() + token * args.q.stride(0) + head * args.q.stride(1);
  call.q_token_stride = args.q.stride(0);
  call.q_head_stride = args.q.stride(1);
  call.out_token_stride = args.out.stride(0);
  call.out_head_stride = args.out.stride(1);
  call.tokens = task.tokens;
  call.group = group;
  call.dim = args.q.dim(2);
  call.first_position = args.cache_seqlens.data<int32_t>()[task.request] - n + task.first_token;
  call.k = at_head(args.k_pool, task.head);
  call.v = at_head(args.v_pool, task.head);
  call.kv_type = kv_type(args.k_pool.dtype());
  call.k_stride = args.k_pool.stride(0);
  call.v_stride = args.v_pool.stride(0);
  call.pages = args.page_table.data<int32_t>() + task.request * args.page_table.stride(0);
  call.sinks = args.sinks.empty() ? nullptr : args.sinks.data<float>() + head;
  if (!args.lse.empty()) {
    call.lse = args.lse.data<float>() + token * args.lse.stride(0) + head;
    call.lse_stride = args.lse.stride(0);
  }
  call.scale = args.scale;
  call.softcap = args.softcap;
  call.window = args.window;
  call.scratch = scratch;
  table_.attention(call);
}

}  // namespace minisgl::cpu
