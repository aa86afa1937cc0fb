// The vocabulary of a step. Everything that varies between requests is described here, once a
// batch; layers never look at requests.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/req.h"
#include "tensor/tensor.h"

namespace minisgl {

class AttentionBackend;

enum class Phase : uint8_t { kPrefill, kDecode };

// The ragged, paged batch as attention sees it, filled by AttentionBackend::prepare_metadata().
// Covers padded_reqs. Backends derive from it to keep what only they need (plans, device copies).
// The vectors keep their capacity from step to step: the steady state allocates nothing.
struct AttentionMetadata {
  std::vector<int32_t> cu_seqlens_q;   // [bs + 1] request i's queries are rows cu[i] … cu[i+1]-1
  std::vector<int32_t> cache_seqlens;  // [bs] KV length this step, the new tokens included
  std::vector<int32_t> page_table;     // [bs, max_seqlen_k] token locations; past a request's
                                       // cache_seqlens anything may stand
  int64_t max_seqlen_q = 0;
  int64_t max_seqlen_k = 0;
  const AttentionBackend* made_by = nullptr;  // who may reuse it, and knows its derived type

  virtual ~AttentionMetadata() = default;
  // cu_seqlens_q[i + 1] - 1: the rows whose logits are needed. The first n requests only: metadata
  // covers padding, logits do not.
  void last_indices(std::vector<int32_t>& out, size_t n) const {
    out.resize(n);
    for (size_t i = 0; i < n; ++i) out[i] = cu_seqlens_q[i + 1] - 1;
  }
};

// One step's work. T = tokens of padded_reqs, packed end to end.
struct Batch {
  std::vector<Req*> reqs;         // the real requests
  std::vector<Req*> padded_reqs;  // reqs, then dummies that fill a captured size
  Phase phase = Phase::kPrefill;
  TensorView input_ids;   // [T] int32
  TensorView positions;   // [T] int32
  TensorView out_loc;     // [T] int32: where this step's K and V go in the pool
  TensorView logit_rows;  // [n] int32: rows of T whose logits are wanted; empty: every row
  TensorView page_table;  // [max_running + 1, max_seq_len] int32, host: row table_idx, column
                          // position -> token location; read by prepare_metadata()
  std::unique_ptr<AttentionMetadata> attn_metadata;

  size_t size() const { return reqs.size(); }
  size_t padded_size() const { return padded_reqs.size(); }
  int64_t num_tokens() const { return input_ids.dim(0); }
};

}  // namespace minisgl
