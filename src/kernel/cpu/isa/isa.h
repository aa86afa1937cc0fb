// The functions that one instruction set's sources give to its table.
// MINISGL_ISA is the namespace, MINISGL_ISA_NAME what users call it; both come from the build.
#pragma once

#include "kernel/cpu/isa/vec.h"
#include "kernel/cpu/table.h"

namespace minisgl::cpu::MINISGL_ISA {

#if defined(__AVX512F__)
constexpr int kTileRows = 12;  // 24 accumulators, 2 of W, 1 of x in 32 registers
#else
constexpr int kTileRows = 6;  // 12 accumulators, 2 of W, 1 of x in 16 registers
#endif

void gemv(const GemmArgs& args, int64_t begin, int64_t end);
void gemm(const GemmArgs& args, int64_t panel, float* scratch);

void rms_norm(float* y, const float* x, const float* w, int64_t n, float eps);
void add_rms_norm(float* y, float* x, const float* addend, const float* w, int64_t n, float eps);
void add(float* x, const float* addend, int64_t n);
void rope(float* head, const float* cosines, const float* sines, int64_t half);
void silu_mul(float* y, const float* gate, const float* up, int64_t n);
void gelu_mul(float* y, const float* gate, const float* up, int64_t n);
void softcap(float* x, float cap, int64_t n);
void to_bf16(uint16_t* y, const float* x, int64_t n);
void to_half(uint16_t* y, const float* x, int64_t n);
void add_scaled(float* y, const float* x, float factor, int64_t n);
int64_t argmax(const float* x, int64_t n);
void exp_shifted(float* y, const float* x, float shift, int64_t n);

void attention(const AttentionArgs& args);

}  // namespace minisgl::cpu::MINISGL_ISA
