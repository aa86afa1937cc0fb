// The ragged, paged batch in numbers: filled once a batch, the same for every layer.
//
//   requests      A: 6 new           B: 4 cached, 3 new      C: 8 cached, 1 new
//   cu_seqlens_q  [0, 6, 9, 10]      rows of q that are A's, B's and C's
//   cache_seqlens [6, 7, 9]          keys that each of them sees at its last row
//   page_table    where those keys lie in the pool, one row a request
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/batch.h"
#include "tensor/tensor.h"

namespace minisgl {

// Fills everything but page_table from batch.padded_reqs. A request without a new token is allowed
// and owns no row. Requests longer than the page table's rows, or in rows that it does not have,
// are internal errors.
void fill_lengths(AttentionMetadata& metadata, const Batch& batch);

// fill_lengths(), then page_table: [bs, max_seqlen_k]. Only the first cache_seqlens[i] columns of
// row i are written; what stands after them is left from earlier batches.
// Allocates when a batch is larger than any before; not in the steady state.
void fill_metadata(AttentionMetadata& metadata, const Batch& batch);

// Row i of `batch`'s page table up to its length: token locations, on the host.
std::span<const int32_t> page_table_row(const Batch& batch, size_t i);

// The two shapes of batch that kernels have faster ways for.
// One new token each: cu_seqlens_q is 0, 1, …, bs.
bool is_pure_decode(const AttentionMetadata& metadata);
// Nothing cached: as many keys as queries, cu_seqlens_q is the prefix sum of cache_seqlens.
bool is_fresh_prefill(const AttentionMetadata& metadata);

// [bs + 1] prefix sums of cache_seqlens, for kernels that want keys packed the way queries are.
// A fresh prefill's are cu_seqlens_q itself; otherwise they are built in `scratch`.
std::span<const int32_t> cu_seqlens_k(const AttentionMetadata& metadata,
                                      std::vector<int32_t>& scratch);

}  // namespace minisgl
