#include "attention/cuda/gpu_batch.h"

#include <algorithm>
#include <bit>

#include "utils/error.h"
#include "utils/math.h"

namespace minisgl::cuda {
namespace {

constexpr int64_t kAlign = 64;  // elements: sections start on 256 bytes

}  // namespace

GpuBatch::Sections::Sections(int64_t capacity) {
  const int64_t section = align_up(capacity + 1, kAlign);
  cu_seqlens_q = 0;
  cache_seqlens = section;
  page_indptr = 2 * section;
  last_page_len = 3 * section;
  page_indices = 4 * section;
}

void GpuBatch::build(const Batch& batch, int64_t page_size, bool round_table_width) {
  MINISGL_CHECK(static_lengths_ == nullptr, "a captured batch takes prepare_for_replay()");
  fill_lengths(*this, batch);
  page_size_ = page_size;
  num_tokens_ = cu_seqlens_q.back();
  max_pages_ = div_ceil(max_seqlen_k, page_size);
  if (round_table_width) {
    max_pages_ = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(max_pages_)));
  }
  is_current_ = false;
  pack_lengths(batch, page_size);
}

void GpuBatch::pack_lengths(const Batch& batch, int64_t page_size) {
  const int64_t bs = batch_size();
  const Sections sections(bs);
  int64_t pages = 0;
  for (const int32_t length : cache_seqlens) pages += div_ceil(int64_t{length}, page_size);
  table_ = align_up(sections.page_indices + pages, kAlign);
  packed_.resize(static_cast<size_t>(table_ + bs * max_pages_));
  int32_t* packed = packed_.data();
  std::ranges::copy(cu_seqlens_q, packed + sections.cu_seqlens_q);
  std::ranges::copy(cache_seqlens, packed + sections.cache_seqlens);
  int32_t* indptr = packed + sections.page_indptr;
  int32_t* indices = packed + sections.page_indices;
  indptr[0] = 0;
  for (int64_t i = 0; i < bs; ++i) {
    const int64_t length = cache_seqlens[static_cast<size_t>(i)];
    const auto n = static_cast<int32_t>(div_ceil(length, page_size));
    const std::span<const int32_t> locations = page_table_row(batch, static_cast<size_t>(i));
    int32_t* row = packed + table_ + i * max_pages_;
    for (int32_t page = 0; page < n; ++page) {
      row[page] =
          locations[static_cast<size_t>(page * page_size)] / static_cast<int32_t>(page_size);
    }
    std::copy_n(row, n, indices + indptr[i]);
    std::fill(row + n, row + max_pages_, 0);  // kernels may fetch past the end, into any page
    indptr[i + 1] = indptr[i] + n;
    packed[sections.last_page_len + i] =
        n == 0 ? 0 : static_cast<int32_t>(length - (n - 1) * page_size);
  }
}

void GpuBatch::upload(CudaKernels& kernels) {
  const auto n = static_cast<int64_t>(packed_.size());
  if (device_.empty() || device_.view().numel() < n) {
    const int64_t shape[] = {2 * n};
    kernels.synchronize();  // the old memory may still be read
    device_ = kernels.allocate(DType::kInt32, shape);
  }
  kernels.copy(device_.view().slice(0, n), TensorView::of(std::span(packed_)));
  is_current_ = true;
}

PagedCall GpuBatch::call() const {
  PagedCall call;
  call.batch = static_cast<int>(batch_size());
  call.num_tokens = static_cast<int>(num_tokens_);
  call.max_seqlen_q = static_cast<int>(max_seqlen_q);
  call.max_seqlen_k = static_cast<int>(max_seqlen_k);
  call.page_size = static_cast<int>(page_size_);
  const bool is_static = static_lengths_ != nullptr;
  const Sections sections(is_static ? static_capacity_ : batch_size());
  const int32_t* base = is_static ? static_lengths_ : device_.view().data<int32_t>();
  call.cu_seqlens_q = base + sections.cu_seqlens_q;
  call.cache_seqlens = base + sections.cache_seqlens;
  call.page_indptr = base + sections.page_indptr;
  call.last_page_len = base + sections.last_page_len;
  call.page_indices = base + sections.page_indices;
  call.page_table = is_static ? static_table_ : base + table_;
  call.page_table_stride = static_cast<int>(is_static ? static_stride_ : max_pages_);
  const Sections host(batch_size());
  call.cu_seqlens_q_host = packed_.data() + host.cu_seqlens_q;
  call.cache_seqlens_host = packed_.data() + host.cache_seqlens;
  call.page_indptr_host = packed_.data() + host.page_indptr;
  return call;
}

StaticGpuBatch::StaticGpuBatch(CudaKernels& kernels, int64_t max_seq_len, int64_t page_size,
                               std::span<const int> batch_sizes)
    : kernels_(kernels),
      max_seq_len_(max_seq_len),
      stride_(div_ceil(max_seq_len, page_size)),
      batch_sizes_(batch_sizes.begin(), batch_sizes.end()) {
  MINISGL_CHECK(max_seq_len >= 1 && !batch_sizes.empty() && std::ranges::min(batch_sizes) >= 1);
  capacity_ = std::ranges::max(batch_sizes);
  const int64_t lengths[] = {GpuBatch::Sections(capacity_).page_indices + capacity_ * stride_};
  const int64_t table[] = {capacity_, stride_};
  lengths_ = kernels.allocate(DType::kInt32, lengths);
  table_ = kernels.allocate(DType::kInt32, table);
}

void StaticGpuBatch::bind(GpuBatch& batch) {
  batch.static_lengths_ = lengths_.view().data<int32_t>();
  batch.static_table_ = table_.view().data<int32_t>();
  batch.static_capacity_ = capacity_;
  batch.static_stride_ = stride_;
  batch.max_seqlen_k = max_seq_len_;
  batch.is_current_ = true;
  captured_.push_back(&batch);
}

GpuBatch* StaticGpuBatch::refresh(const GpuBatch& batch) {
  const int64_t bs = batch.batch_size();
  MINISGL_CHECK(std::ranges::count(batch_sizes_, bs) > 0,
                "a batch of {} was not announced to init_capture_graph()", bs);
  MINISGL_CHECK(batch.static_lengths_ == nullptr && is_pure_decode(batch),
                "only decode is captured");
  MINISGL_CHECK(batch.max_seqlen_k <= max_seq_len_, "{} keys, captured for {}", batch.max_seqlen_k,
                max_seq_len_);
  const GpuBatch::Sections from(bs), to(capacity_);
  const int32_t* source = batch.packed_.data();
  const int64_t pages = source[from.page_indptr + bs];
  packed_.resize(static_cast<size_t>(to.page_indices + pages));
  std::copy_n(source + from.cu_seqlens_q, bs + 1, packed_.begin() + to.cu_seqlens_q);
  std::copy_n(source + from.cache_seqlens, bs, packed_.begin() + to.cache_seqlens);
  std::copy_n(source + from.page_indptr, bs + 1, packed_.begin() + to.page_indptr);
  std::copy_n(source + from.last_page_len, bs, packed_.begin() + to.last_page_len);
  std::copy_n(source + from.page_indices, pages, packed_.begin() + to.page_indices);
  kernels_.copy(lengths_.view().slice(0, static_cast<int64_t>(packed_.size())),
                TensorView::of(std::span(packed_)));
  for (int64_t i = 0; i < bs; ++i) {  // columns past a row's pages are never used
    const int32_t n = source[from.page_indptr + i + 1] - source[from.page_indptr + i];
    if (n == 0) continue;
    auto* row = const_cast<int32_t*>(source + batch.table_ + i * batch.max_pages_);
    kernels_.copy(table_.view().select(i).slice(0, n),
                  TensorView::of(std::span(row, static_cast<size_t>(n))));
  }
  const auto captured = std::ranges::find_if(
      captured_, [&](const GpuBatch* other) { return other->batch_size() == bs; });
  if (captured == captured_.end()) return nullptr;
  (*captured)->packed_ = batch.packed_;
  return *captured;
}

}  // namespace minisgl::cuda
