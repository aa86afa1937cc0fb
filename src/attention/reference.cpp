#include "attention/reference.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "kernel/kernels.h"
#include "utils/error.h"

namespace minisgl {

PagedBackend::PagedBackend(std::string name, Kernels& kernels, KVPool& pool)
    : name_(std::move(name)), kernels_(kernels), pool_(pool) {}

PagedBackend::PagedBackend(std::string name, std::unique_ptr<Kernels> kernels, KVPool& pool)
    : name_(std::move(name)), owned_(std::move(kernels)), kernels_(*owned_), pool_(pool) {}

void PagedBackend::prepare_metadata(Batch& batch) {
  AttentionMetadata* made = batch.attn_metadata.get();
  if (made == nullptr || made->made_by != this) {
    batch.attn_metadata = std::make_unique<PagedMetadata>();
    batch.attn_metadata->made_by = this;
  }
  PagedMetadata& metadata = metadata_of(batch);
  MINISGL_CHECK(!metadata.is_static, "a captured batch takes prepare_for_replay()");
  fill_metadata(metadata, batch);
  metadata.is_current = false;
}

// Write first, read second: the pool is the only place where a query finds keys, its own included.
void PagedBackend::forward(TensorView out, TensorView q, TensorView k, TensorView v,
                           const AttentionSpec& spec, Batch& batch) {
  pool_.store(k, v, batch.out_loc, spec.layer);

  PagedMetadata& metadata = metadata_of(batch);
  if (!metadata.is_current) make_current(metadata);
  PagedAttentionArgs args;
  args.out = out;
  args.q = q;
  args.k_pool = pool_.k(spec.layer);
  args.v_pool = pool_.v(spec.layer);
  args.cu_seqlens_q = metadata.lengths_q;
  args.cache_seqlens = metadata.lengths_k;
  args.page_table = metadata.table;
  args.sinks = spec.sinks;
  args.max_seqlen_q = metadata.max_seqlen_q;
  args.max_seqlen_k = metadata.max_seqlen_k;
  args.scale = spec.scale;
  args.softcap = spec.softcap;
  args.window = spec.window;
  kernels_.paged_attention(args);
}

PagedMetadata& PagedBackend::metadata_of(const Batch& batch) const {
  AttentionMetadata* metadata = batch.attn_metadata.get();
  MINISGL_CHECK(metadata != nullptr && metadata->made_by == this,
                "attention backend {}: this batch's metadata was not prepared", name_);
  return static_cast<PagedMetadata&>(*metadata);
}

namespace {

// `values` on the device, in memory that is kept and grows by doubling.
TensorView upload(Kernels& kernels, Tensor& memory, std::span<int32_t> values) {
  const auto n = static_cast<int64_t>(values.size());
  if (memory.empty() || memory.view().numel() < n) {
    const int64_t shape[] = {2 * n};
    kernels.synchronize();  // the old memory may still be read
    memory = kernels.allocate(DType::kInt32, shape);
  }
  const TensorView part = memory.view().slice(0, n);
  kernels.copy(part, TensorView::of(values));
  return part;
}

}  // namespace

void PagedBackend::make_current(PagedMetadata& metadata) {
  const auto bs = static_cast<int64_t>(metadata.cache_seqlens.size());
  TensorView table;
  if (kernels_.device().is_cpu()) {
    metadata.lengths_q = TensorView::of(std::span(metadata.cu_seqlens_q));
    metadata.lengths_k = TensorView::of(std::span(metadata.cache_seqlens));
    table = TensorView::of(std::span(metadata.page_table));
  } else {
    metadata.lengths_q = upload(kernels_, metadata.device_q, metadata.cu_seqlens_q);
    metadata.lengths_k = upload(kernels_, metadata.device_k, metadata.cache_seqlens);
    table = upload(kernels_, metadata.device_table, metadata.page_table);
  }
  metadata.table = table.reshape({bs, metadata.max_seqlen_k});
  metadata.is_current = true;
}

void PagedBackend::init_capture_graph(int64_t max_seq_len, std::span<const int> batch_sizes) {
  MINISGL_CHECK(!capture_ && max_seq_len >= 1 && !batch_sizes.empty() &&
                std::ranges::min(batch_sizes) >= 1);
  CaptureBuffers& buffers = capture_.emplace();
  buffers.batch_sizes.assign(batch_sizes.begin(), batch_sizes.end());
  buffers.max_seq_len = max_seq_len;
  const int64_t max_bs = std::ranges::max(batch_sizes);
  const auto allocate = [&](std::initializer_list<int64_t> shape) {
    return kernels_.allocate(DType::kInt32, std::span(shape.begin(), shape.size()));
  };
  buffers.cu_seqlens_q = allocate({max_bs + 1});
  buffers.cache_seqlens = allocate({max_bs});
  buffers.page_table = allocate({max_bs, max_seq_len});

  std::vector<int32_t> one_row_each(static_cast<size_t>(max_bs + 1));
  std::iota(one_row_each.begin(), one_row_each.end(), 0);
  kernels_.copy(buffers.cu_seqlens_q, TensorView::of(std::span(one_row_each)));
  kernels_.synchronize();
}

void PagedBackend::prepare_for_capture(Batch& batch) {
  auto metadata = std::make_unique<PagedMetadata>();
  metadata->made_by = this;
  fill_metadata(*metadata, batch);
  copy_to_static(*metadata);

  const auto bs = static_cast<int64_t>(batch.padded_size());
  metadata->lengths_q = capture_->cu_seqlens_q.view().slice(0, bs + 1);
  metadata->lengths_k = capture_->cache_seqlens.view().slice(0, bs);
  metadata->table = capture_->page_table.view().slice(0, bs);
  metadata->max_seqlen_k = capture_->max_seq_len;  // any length that a replay may bring
  metadata->is_current = true;
  metadata->is_static = true;
  batch.attn_metadata = std::move(metadata);
}

void PagedBackend::prepare_for_replay(Batch& batch) { copy_to_static(metadata_of(batch)); }

// cu_seqlens_q never changes. Columns that an earlier, longer batch left in the table stand past
// cache_seqlens and are never read.
void PagedBackend::copy_to_static(PagedMetadata& metadata) {
  MINISGL_CHECK(capture_, "a graph hook before init_capture_graph()");
  const auto bs = static_cast<int64_t>(metadata.cache_seqlens.size());
  MINISGL_CHECK(std::ranges::count(capture_->batch_sizes, bs) > 0,
                "a batch of {} was not announced to init_capture_graph()", bs);
  MINISGL_CHECK(!metadata.is_static && is_pure_decode(metadata), "only decode is captured");
  MINISGL_CHECK(metadata.max_seqlen_k <= capture_->max_seq_len, "{} keys, captured for {}",
                metadata.max_seqlen_k, capture_->max_seq_len);

  kernels_.copy(capture_->cache_seqlens.view().slice(0, bs),
                TensorView::of(std::span(metadata.cache_seqlens)));
  const TensorView table =
      TensorView::of(std::span(metadata.page_table)).reshape({bs, metadata.max_seqlen_k});
  for (int64_t i = 0; i < bs; ++i) {
    const int64_t length = metadata.cache_seqlens[static_cast<size_t>(i)];
    kernels_.copy(capture_->page_table.view().select(i).slice(0, length),
                  table.select(i).slice(0, length));
  }
}

std::unique_ptr<AttentionBackend> make_reference_backend(Kernels& kernels, KVPool& pool) {
  if (kernels.device().is_cpu()) {
    return std::make_unique<PagedBackend>("reference", make_reference_kernels(), pool);
  }
  return std::make_unique<PagedBackend>("reference", kernels, pool);
}

std::unique_ptr<AttentionBackend> make_cpu_backend(Kernels& kernels, KVPool& pool) {
  return std::make_unique<PagedBackend>("cpu", kernels, pool);
}

}  // namespace minisgl
