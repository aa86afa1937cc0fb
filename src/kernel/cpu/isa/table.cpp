#include "kernel/cpu/isa/isa.h"

namespace minisgl::cpu::MINISGL_ISA {

extern const Table kTable;
const Table kTable = {
    .isa = MINISGL_ISA_NAME,
    .tile_rows = kTileRows,
    .gemv = gemv,
    .gemm = gemm,
    .rms_norm = rms_norm,
    .add_rms_norm = add_rms_norm,
    .add = add,
    .rope = rope,
    .silu_mul = silu_mul,
    .gelu_mul = gelu_mul,
    .softcap = softcap,
    .to_bf16 = to_bf16,
    .to_half = to_half,
    .add_scaled = add_scaled,
    .argmax = argmax,
    .exp_shifted = exp_shifted,
    .attention = attention,
};

}  // namespace minisgl::cpu::MINISGL_ISA
