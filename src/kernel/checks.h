// The shapes that the operations of kernels.h promise to check, for every implementation.
// A violation is an internal error that names the operation and prints the views.
#pragma once

#include <memory>
#include <span>

#include "kernel/kernels.h"

namespace minisgl::checks {

void embedding(TensorView out, TensorView ids, const PackedMatrix& table);
void linear(TensorView y, TensorView x, const PackedMatrix& w, TensorView bias);
void rms_norm(TensorView y, TensorView x, TensorView w);
void add_rms_norm(TensorView y, TensorView x, TensorView addend, TensorView w);
void add(TensorView x, TensorView addend);
void rope(TensorView q, TensorView k, TensorView positions, TensorView cos_sin);
void gated(const char* operation, TensorView y, TensorView gate_up);
void softcap(TensorView x, float cap);
void store_kv(TensorView pool, TensorView rows, TensorView loc);
void paged_attention(const PagedAttentionArgs& args);
void gather_rows(TensorView out, TensorView x, TensorView rows);
void argmax(TensorView ids, TensorView logits);
void moe_route(TensorView experts, TensorView weights, TensorView logits);
void moe_mlp(TensorView y, TensorView x, TensorView experts, TensorView weights,
             std::span<const std::unique_ptr<PackedMatrix>> gate_up,
             std::span<const std::unique_ptr<PackedMatrix>> down);
// One dtype of pack(), parts of equal columns, whole blocks; cols of the result.
int64_t pack(std::span<const RawMatrix> parts, DType dtype);
// Ids and locations that index memory.
void index_below(const char* operation, int64_t index, int64_t limit);

}  // namespace minisgl::checks
