#include "attention/metadata.h"

#include <algorithm>
#include <numeric>

#include "utils/error.h"

namespace minisgl {
namespace {

// Page tables up to this size are reserved whole at a batch's first use, so that sequences which
// grow by a token a step never reallocate; it is address space, touched only where it is used.
constexpr int64_t kReserveElements = int64_t{16} << 20;

void check_request(const Req& req, const Batch& batch) {
  MINISGL_CHECK(0 <= req.cached_len && req.cached_len <= req.device_len,
                "request {}: cached {}, device {}", req.uid, req.cached_len, req.device_len);
  MINISGL_CHECK(0 <= req.table_idx && req.table_idx < batch.page_table.dim(0) &&
                    req.device_len <= batch.page_table.dim(1),
                "request {}: row {} with {} tokens in a page table of {}", req.uid, req.table_idx,
                req.device_len, batch.page_table.describe());
}

void reserve_page_table(std::vector<int32_t>& table, int64_t needed, const Batch& batch) {
  if (static_cast<size_t>(needed) <= table.capacity()) return;
  const int64_t whole =
      static_cast<int64_t>(batch.padded_size()) * std::max<int64_t>(batch.page_table.dim(1), 1);
  const int64_t room = whole <= kReserveElements ? whole : std::min(whole, 2 * needed);
  table.clear();  // nothing in it is worth copying
  table.reserve(static_cast<size_t>(std::max(room, needed)));
}

}  // namespace

void fill_lengths(AttentionMetadata& metadata, const Batch& batch) {
  const size_t bs = batch.padded_size();
  MINISGL_CHECK(bs >= 1, "an empty batch");
  metadata.cu_seqlens_q.resize(bs + 1);
  metadata.cache_seqlens.resize(bs);
  metadata.max_seqlen_q = 0;
  metadata.max_seqlen_k = 0;
  metadata.cu_seqlens_q[0] = 0;
  for (size_t i = 0; i < bs; ++i) {
    const Req& req = *batch.padded_reqs[i];
    check_request(req, batch);
    metadata.cu_seqlens_q[i + 1] =
        metadata.cu_seqlens_q[i] + static_cast<int32_t>(req.extend_len());
    metadata.cache_seqlens[i] = static_cast<int32_t>(req.device_len);
    metadata.max_seqlen_q = std::max(metadata.max_seqlen_q, req.extend_len());
    metadata.max_seqlen_k = std::max(metadata.max_seqlen_k, req.device_len);
  }
}

void fill_metadata(AttentionMetadata& metadata, const Batch& batch) {
  fill_lengths(metadata, batch);
  const auto columns = static_cast<size_t>(metadata.max_seqlen_k);
  const size_t needed = batch.padded_size() * columns;
  reserve_page_table(metadata.page_table, static_cast<int64_t>(needed), batch);
  metadata.page_table.resize(needed);
  for (size_t i = 0; i < batch.padded_size(); ++i) {
    std::ranges::copy(page_table_row(batch, i), metadata.page_table.begin() + i * columns);
  }
}

std::span<const int32_t> page_table_row(const Batch& batch, size_t i) {
  const Req& req = *batch.padded_reqs[i];
  const TensorView row = batch.page_table.select(req.table_idx);
  return {row.data<int32_t>(), static_cast<size_t>(req.device_len)};
}

bool is_pure_decode(const AttentionMetadata& metadata) {
  return metadata.max_seqlen_q == 1 &&
         metadata.cu_seqlens_q.back() == static_cast<int32_t>(metadata.cache_seqlens.size());
}

bool is_fresh_prefill(const AttentionMetadata& metadata) {
  // Every request has at least as many keys as rows, so that equal sums mean equal terms.
  const int64_t keys =
      std::accumulate(metadata.cache_seqlens.begin(), metadata.cache_seqlens.end(), int64_t{0});
  return keys == metadata.cu_seqlens_q.back();
}

std::span<const int32_t> cu_seqlens_k(const AttentionMetadata& metadata,
                                      std::vector<int32_t>& scratch) {
  if (is_fresh_prefill(metadata)) return metadata.cu_seqlens_q;
  scratch.assign(1, 0);
  scratch.reserve(metadata.cache_seqlens.size() + 1);
  for (const int32_t length : metadata.cache_seqlens) scratch.push_back(scratch.back() + length);
  return scratch;
}

}  // namespace minisgl
