#include "kernel/checks.h"

#include "utils/error.h"

namespace minisgl::checks {
namespace {

void is_float32(const char* operation, const char* name, const TensorView& view) {
  MINISGL_CHECK(view.dtype() == DType::kFloat32 && view.device().is_cpu(),
                "{}: {} is {}, expected float32 on cpu", operation, name, view.describe());
}

void is_int32(const char* operation, const char* name, const TensorView& view, int64_t size) {
  MINISGL_CHECK(view.dtype() == DType::kInt32 && view.rank() == 1 && view.dim(0) == size &&
                    view.device().is_cpu(),
                "{}: {} is {}, expected int32 [{}] on cpu", operation, name, view.describe(), size);
}

void has_shape(const char* operation, const char* name, const TensorView& view,
               std::initializer_list<int64_t> shape) {
  bool equal = view.rank() == static_cast<int>(shape.size());
  int i = 0;
  for (const int64_t d : shape) equal = equal && view.dim(i++) == d;
  MINISGL_CHECK(equal, "{}: {} is {}, expected [{}]", operation, name, view.describe(),
                fmt::join(shape, ", "));
}

void float_matrix(const char* operation, const char* name, const TensorView& view, int64_t rows,
                  int64_t cols) {
  is_float32(operation, name, view);
  has_shape(operation, name, view, {rows, cols});
}

void float_vector(const char* operation, const char* name, const TensorView& view, int64_t size) {
  is_float32(operation, name, view);
  has_shape(operation, name, view, {size});
}

bool same_shape(const TensorView& a, const TensorView& b) {
  bool same = a.rank() == b.rank();
  for (int i = 0; same && i < a.rank(); ++i) same = a.dim(i) == b.dim(i);
  return same;
}

void has_rank(const char* operation, const char* name, const TensorView& view, int rank) {
  MINISGL_CHECK(view.rank() == rank, "{}: {} is {}, expected {} dimensions", operation, name,
                view.describe(), rank);
}

}  // namespace

void embedding(TensorView out, TensorView ids, const PackedMatrix& table) {
  has_rank("embedding", "ids", ids, 1);
  is_int32("embedding", "ids", ids, ids.dim(0));
  float_matrix("embedding", "out", out, ids.dim(0), table.cols());
}

void linear(TensorView y, TensorView x, const PackedMatrix& w, TensorView bias) {
  has_rank("linear", "x", x, 2);
  float_matrix("linear", "x", x, x.dim(0), w.cols());
  float_matrix("linear", "y", y, x.dim(0), w.rows());
  if (!bias.empty()) float_vector("linear", "bias", bias, w.rows());
}

void rms_norm(TensorView y, TensorView x, TensorView w) {
  is_float32("rms_norm", "x", x);
  is_float32("rms_norm", "y", y);
  MINISGL_CHECK(x.rank() >= 1 && same_shape(x, y), "rms_norm: x is {}, y is {}", x.describe(),
                y.describe());
  float_vector("rms_norm", "w", w, x.dim(-1));
}

void add_rms_norm(TensorView y, TensorView x, TensorView addend, TensorView w) {
  has_rank("add_rms_norm", "x", x, 2);
  float_matrix("add_rms_norm", "x", x, x.dim(0), x.dim(1));
  float_matrix("add_rms_norm", "y", y, x.dim(0), x.dim(1));
  float_matrix("add_rms_norm", "addend", addend, x.dim(0), x.dim(1));
  float_vector("add_rms_norm", "w", w, x.dim(1));
}

void add(TensorView x, TensorView addend) {
  has_rank("add", "x", x, 2);
  float_matrix("add", "x", x, x.dim(0), x.dim(1));
  float_matrix("add", "addend", addend, x.dim(0), x.dim(1));
}

void rope(TensorView q, TensorView k, TensorView positions, TensorView cos_sin) {
  has_rank("rope", "q", q, 3);
  has_rank("rope", "k", k, 3);
  has_rank("rope", "cos_sin", cos_sin, 2);
  is_float32("rope", "q", q);
  is_float32("rope", "k", k);
  is_float32("rope", "cos_sin", cos_sin);
  has_shape("rope", "k", k, {q.dim(0), k.dim(1), q.dim(2)});
  is_int32("rope", "positions", positions, q.dim(0));
  MINISGL_CHECK(cos_sin.dim(1) % 2 == 0 && cos_sin.dim(1) <= q.dim(2),
                "rope: cos_sin is {}, expected an even R of at most D={}", cos_sin.describe(),
                q.dim(2));
}

void gated(const char* operation, TensorView y, TensorView gate_up) {
  has_rank(operation, "y", y, 2);
  float_matrix(operation, "y", y, y.dim(0), y.dim(1));
  float_matrix(operation, "gate_up", gate_up, y.dim(0), 2 * y.dim(1));
}

void softcap(TensorView x, float cap) {
  is_float32("softcap", "x", x);
  MINISGL_CHECK(x.rank() >= 1 && cap > 0, "softcap: x is {}, cap is {}", x.describe(), cap);
}

void store_kv(TensorView pool, TensorView rows, TensorView loc) {
  has_rank("store_kv", "pool", pool, 3);
  has_rank("store_kv", "rows", rows, 3);
  is_float32("store_kv", "rows", rows);
  MINISGL_CHECK(is_floating(pool.dtype()), "store_kv: pool is {}, expected a float dtype",
                pool.describe());
  has_shape("store_kv", "rows", rows, {rows.dim(0), pool.dim(1), pool.dim(2)});
  is_int32("store_kv", "loc", loc, rows.dim(0));
}

void paged_attention(const PagedAttentionArgs& args) {
  const char* name = "paged_attention";
  has_rank(name, "q", args.q, 3);
  is_float32(name, "q", args.q);
  is_float32(name, "out", args.out);
  MINISGL_CHECK(same_shape(args.q, args.out), "paged_attention: q is {}, out is {}",
                args.q.describe(), args.out.describe());
  has_rank(name, "k_pool", args.k_pool, 3);
  const int64_t num_qo_heads = args.q.dim(1);
  const int64_t num_kv_heads = args.k_pool.dim(1);
  has_shape(name, "k_pool", args.k_pool, {args.k_pool.dim(0), num_kv_heads, args.q.dim(2)});
  MINISGL_CHECK(same_shape(args.k_pool, args.v_pool) &&
                    args.k_pool.dtype() == args.v_pool.dtype() && is_floating(args.k_pool.dtype()),
                "paged_attention: k_pool is {}, v_pool is {}, expected equal float pools",
                args.k_pool.describe(), args.v_pool.describe());
  MINISGL_CHECK(num_kv_heads > 0 && num_qo_heads % num_kv_heads == 0,
                "paged_attention: {} query heads over {} KV heads", num_qo_heads, num_kv_heads);
  has_rank(name, "cache_seqlens", args.cache_seqlens, 1);
  const int64_t bs = args.cache_seqlens.dim(0);
  is_int32(name, "cache_seqlens", args.cache_seqlens, bs);
  is_int32(name, "cu_seqlens_q", args.cu_seqlens_q, bs + 1);
  MINISGL_CHECK(args.page_table.dtype() == DType::kInt32 && args.page_table.rank() == 2 &&
                    args.page_table.dim(0) == bs && args.page_table.dim(1) >= args.max_seqlen_k,
                "paged_attention: page_table is {}, expected int32 [{}, >= {}]",
                args.page_table.describe(), bs, args.max_seqlen_k);
  if (!args.sinks.empty()) float_vector(name, "sinks", args.sinks, num_qo_heads);
  if (!args.lse.empty()) float_matrix(name, "lse", args.lse, args.q.dim(0), num_qo_heads);
  const auto cu = args.cu_seqlens_q.values<const int32_t>();
  const auto seqlens = args.cache_seqlens.values<const int32_t>();
  MINISGL_CHECK(cu[0] == 0 && cu[static_cast<size_t>(bs)] <= args.q.dim(0),
                "paged_attention: cu_seqlens_q spans [{}, {}) of {} rows", cu[0],
                cu[static_cast<size_t>(bs)], args.q.dim(0));
  for (size_t i = 0; i < static_cast<size_t>(bs); ++i) {
    const int32_t n = cu[i + 1] - cu[i];
    MINISGL_CHECK(n >= 0 && n <= seqlens[i] && seqlens[i] <= args.max_seqlen_k,
                  "paged_attention: request {} has {} new tokens and {} keys (at most {})", i, n,
                  seqlens[i], args.max_seqlen_k);
  }
}

void gather_rows(TensorView out, TensorView x, TensorView rows) {
  has_rank("gather_rows", "x", x, 2);
  is_float32("gather_rows", "x", x);
  has_rank("gather_rows", "out", out, 2);
  is_int32("gather_rows", "rows", rows, out.dim(0));
  float_matrix("gather_rows", "out", out, out.dim(0), x.dim(1));
}

void argmax(TensorView ids, TensorView logits) {
  has_rank("argmax", "logits", logits, 2);
  is_float32("argmax", "logits", logits);
  is_int32("argmax", "ids", ids, logits.dim(0));
  MINISGL_CHECK(logits.dim(1) > 0, "argmax: logits is {}", logits.describe());
}

void moe_route(TensorView experts, TensorView weights, TensorView logits) {
  has_rank("moe_route", "logits", logits, 2);
  has_rank("moe_route", "weights", weights, 2);
  is_float32("moe_route", "logits", logits);
  float_matrix("moe_route", "weights", weights, logits.dim(0), weights.dim(1));
  MINISGL_CHECK(experts.dtype() == DType::kInt32, "moe_route: experts is {}", experts.describe());
  has_shape("moe_route", "experts", experts, {logits.dim(0), weights.dim(1)});
  MINISGL_CHECK(weights.dim(1) <= logits.dim(1), "moe_route: top {} of {} experts", weights.dim(1),
                logits.dim(1));
}

void moe_mlp(TensorView y, TensorView x, TensorView experts, TensorView weights,
             std::span<const std::unique_ptr<PackedMatrix>> gate_up,
             std::span<const std::unique_ptr<PackedMatrix>> down) {
  has_rank("moe_mlp", "x", x, 2);
  float_matrix("moe_mlp", "x", x, x.dim(0), x.dim(1));
  float_matrix("moe_mlp", "y", y, x.dim(0), x.dim(1));
  has_rank("moe_mlp", "weights", weights, 2);
  float_matrix("moe_mlp", "weights", weights, x.dim(0), weights.dim(1));
  MINISGL_CHECK(experts.dtype() == DType::kInt32, "moe_mlp: experts is {}", experts.describe());
  has_shape("moe_mlp", "experts", experts, {x.dim(0), weights.dim(1)});
  MINISGL_CHECK(!gate_up.empty() && gate_up.size() == down.size(),
                "moe_mlp: {} gate_up and {} down matrices", gate_up.size(), down.size());
  const int64_t intermediate = down[0]->cols();
  for (size_t e = 0; e < down.size(); ++e) {
    MINISGL_CHECK(gate_up[e]->rows() == 2 * intermediate && gate_up[e]->cols() == x.dim(1) &&
                      down[e]->rows() == x.dim(1) && down[e]->cols() == intermediate,
                  "moe_mlp: expert {} has gate_up [{}, {}], down [{}, {}], x is {}", e,
                  gate_up[e]->rows(), gate_up[e]->cols(), down[e]->rows(), down[e]->cols(),
                  x.describe());
  }
}

int64_t pack(std::span<const RawMatrix> parts, DType dtype) {
  MINISGL_CHECK(!parts.empty() && is_floating(dtype), "pack: {} parts as {}", parts.size(),
                dtype_name(dtype));
  const int64_t cols = parts[0].cols;
  for (const RawMatrix& part : parts) {
    MINISGL_CHECK(
        part.cols == cols && cols > 0 && part.rows >= 0 && cols % block_size(part.dtype) == 0,
        "pack: a part is {} [{}, {}], the first has {} columns", dtype_name(part.dtype), part.rows,
        part.cols, cols);
    MINISGL_CHECK(
        part.interleaved_head_dim == 0 ||
            (part.interleaved_head_dim % 2 == 0 && part.rows % part.interleaved_head_dim == 0),
        "pack: {} rows with heads of {} interleaved", part.rows, part.interleaved_head_dim);
    if (!is_floating(part.dtype) && !is_block_format(part.dtype)) {
      throw_error(ErrorKind::kUnsupported,
                  "a weight matrix of {} cannot be used, expected float32, float16, bfloat16 or a "
                  "GGUF block format",
                  dtype_name(part.dtype));
    }
  }
  return cols;
}

void index_below(const char* operation, int64_t index, int64_t limit) {
  MINISGL_CHECK(index >= 0 && index < limit, "{}: index {} of {}", operation, index, limit);
}

}  // namespace minisgl::checks
