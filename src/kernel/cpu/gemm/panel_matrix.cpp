#include "kernel/cpu/gemm/panel_matrix.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "kernel/cpu/gemm/split.h"
#include "tensor/half.h"
#include "utils/error.h"
#include "utils/math.h"
#include "utils/thread_pool.h"

namespace minisgl::cpu {
namespace {

constexpr int64_t kHugePage = int64_t{2} << 20;

int64_t total_rows(std::span<const RawMatrix> parts) {
  int64_t rows = 0;
  for (const RawMatrix& part : parts) rows += part.rows;
  return rows;
}

// The source's rows of one panel; null beyond the last.
using PanelRows = std::array<const std::byte*, kPanel>;

// Finds rows of a run of parts that share a segment.
class RowSource {
 public:
  explicit RowSource(std::span<const RawMatrix> parts) : parts_(parts) {}
  PanelRows rows_of_panel(int64_t panel) const {
    PanelRows rows{};
    for (int64_t i = 0; i < kPanel; ++i) rows[static_cast<size_t>(i)] = find(panel * kPanel + i);
    return rows;
  }

 private:
  const std::byte* find(int64_t row) const {
    for (const RawMatrix& part : parts_) {
      if (row < part.rows) return part.row(row);
      row -= part.rows;
    }
    return nullptr;
  }
  std::span<const RawMatrix> parts_;
};

// ---- plain weights: [K][32] ----

struct FromFloat32 {
  using Stored = float;
  static float value(float x) { return x; }
};
struct FromHalf {
  using Stored = uint16_t;
  static float value(uint16_t bits) { return half_to_float(bits); }
};
struct FromBFloat16 {
  using Stored = uint16_t;
  static float value(uint16_t bits) { return bfloat16_to_float(bits); }
};
template <class T>
struct Same {  // no conversion: the bits as they are
  using Stored = T;
  static T value(T x) { return x; }
};

uint16_t to_bfloat16(float x) { return float_to_bfloat16(x); }
uint16_t to_half(float x) { return float_to_half(x); }
template <class T>
T as_is(T x) {
  return x;
}

template <class From, class To, auto kConvert>
void pack_plain(uint8_t* out, const PanelRows& rows, int64_t cols) {
  auto* panel = reinterpret_cast<To*>(out);
  constexpr int64_t kRun = 16;  // of K: a cache line or less of each row
  for (int64_t k = 0; k < cols; k += kRun) {
    const int64_t num = std::min(kRun, cols - k);
    for (int64_t r = 0; r < kPanel; ++r) {
      const std::byte* row = rows[static_cast<size_t>(r)];
      if (row == nullptr) continue;
      typename From::Stored run[kRun];
      std::memcpy(run, row + k * int64_t{sizeof(run[0])},
                  static_cast<size_t>(num) * sizeof(run[0]));
      for (int64_t i = 0; i < num; ++i) {
        panel[(k + i) * kPanel + r] = kConvert(From::value(run[i]));
      }
    }
  }
}

void pack_plain_panel(uint8_t* out, const PanelRows& rows, int64_t cols, DType source,
                      PanelLayout layout) {
  const bool same = (source == DType::kFloat32 && layout == PanelLayout::kFloat32) ||
                    (source == DType::kFloat16 && layout == PanelLayout::kHalf) ||
                    (source == DType::kBFloat16 && layout == PanelLayout::kBFloat16);
  if (same && source == DType::kFloat32) {
    pack_plain<Same<uint32_t>, uint32_t, as_is<uint32_t>>(out, rows, cols);
  } else if (same) {
    pack_plain<Same<uint16_t>, uint16_t, as_is<uint16_t>>(out, rows, cols);
  } else if (source == DType::kFloat32 && layout == PanelLayout::kBFloat16) {
    pack_plain<FromFloat32, uint16_t, to_bfloat16>(out, rows, cols);
  } else if (source == DType::kFloat32) {
    pack_plain<FromFloat32, uint16_t, to_half>(out, rows, cols);
  } else if (source == DType::kFloat16) {
    pack_plain<FromHalf, uint16_t, to_bfloat16>(out, rows, cols);
  } else {
    pack_plain<FromBFloat16, uint16_t, to_half>(out, rows, cols);
  }
}

// ---- quantised weights ----

void put16(uint8_t* at, int64_t index, uint16_t value) {
  std::memcpy(at + 2 * index, &value, sizeof value);
}

// Eight codes of 4 bits in one word, the first in the lowest bits.
uint32_t join_nibbles(const uint8_t* codes) {
  uint64_t x = 0;
  std::memcpy(&x, codes, sizeof x);
  x = (x | x >> 4) & 0x00ff00ff00ff00ff;
  x = (x | x >> 8) & 0x0000ffff0000ffff;
  return static_cast<uint32_t>(x | x >> 16);
}

// One block of row `r` into the block of the panel.
void pack_block(uint8_t* out, const BlockParts& parts, const PanelShape& shape, int64_t r) {
  put16(out, r, parts.scale);
  if (shape.has_min) put16(out, kPanel + r, parts.minimum);
  if (shape.is_super()) {
    for (int64_t g = 0; g < shape.groups; ++g) {
      out[shape.factors_at + g * kPanel + r] = static_cast<uint8_t>(parts.factors[g]);
      if (shape.has_min) {
        out[shape.minima_at + g * kPanel + r] = static_cast<uint8_t>(parts.min_factors[g]);
      }
    }
  }
  uint8_t* codes = out + shape.codes_at;
  if (shape.bits == 4) {
    for (int64_t i = 0; i < shape.block; i += 8) {
      const uint32_t word = join_nibbles(parts.codes + i);
      std::memcpy(codes + (i / 8 * kPanel + r) * 4, &word, sizeof word);
    }
  } else {
    for (int64_t i = 0; i < shape.block; ++i) codes[i * kPanel + r] = parts.codes[i];
  }
}

void pack_quantised_panel(uint8_t* out, const PanelRows& rows, int64_t cols, DType source,
                          const PanelShape& shape) {
  BlockParts parts;
  const int64_t source_bytes = block_bytes(source);
  for (int64_t b = 0; b < cols / shape.block; ++b, out += shape.block_bytes) {
    for (int64_t r = 0; r < kPanel; ++r) {
      const std::byte* row = rows[static_cast<size_t>(r)];
      if (row == nullptr) continue;
      split_block(parts, row + b * source_bytes, source);
      pack_block(out, parts, shape, r);
    }
  }
}

// ---- single rows back ----

uint16_t get16(const uint8_t* at, int64_t index) {
  uint16_t bits = 0;
  std::memcpy(&bits, at + 2 * index, sizeof bits);
  return bits;
}

void plain_row(float* out, const uint8_t* panel, PanelLayout layout, int64_t lane, int64_t cols) {
  for (int64_t k = 0; k < cols; ++k) {
    const int64_t at = k * kPanel + lane;
    if (layout == PanelLayout::kFloat32) {
      std::memcpy(out + k, panel + 4 * at, sizeof(float));
    } else {
      const uint16_t bits = get16(panel, at);
      out[k] = layout == PanelLayout::kHalf ? half_to_float(bits) : bfloat16_to_float(bits);
    }
  }
}

// The products of scales, factors and codes fit a float32 exactly wherever a minimum is added, so
// that one rounding or two make no difference.
void quantised_block(float* out, const uint8_t* block, const PanelSegment& segment,
                     const PanelShape& shape, int64_t lane) {
  const uint16_t bits = get16(block, lane);
  const float block_scale =
      segment.layout == PanelLayout::k4BFloat16 ? bfloat16_to_float(bits) : half_to_float(bits);
  const float block_min = shape.has_min ? half_to_float(get16(block, kPanel + lane)) : 0.0f;
  const int64_t group_size = shape.block / shape.groups;
  const uint8_t* codes = block + shape.codes_at;
  for (int64_t g = 0; g < shape.groups; ++g) {
    float scale = block_scale;
    float minimum = block_min;
    if (shape.is_super()) {
      const int64_t at = g * kPanel + lane;
      scale *= static_cast<float>(static_cast<int8_t>(block[shape.factors_at + at]));
      if (shape.has_min) {
        minimum *= static_cast<float>(static_cast<int8_t>(block[shape.minima_at + at]));
      }
    }
    for (int64_t i = g * group_size; i < (g + 1) * group_size; ++i) {
      float value = 0.0f;
      if (shape.bits == 4) {
        uint32_t word = 0;
        std::memcpy(&word, codes + (i / 8 * kPanel + lane) * 4, sizeof word);
        value = segment.values[word >> (4 * (i % 8)) & 15];
      } else {
        value = static_cast<float>(static_cast<int8_t>(codes[i * kPanel + lane]));
      }
      out[i] = shape.has_min ? value * scale + minimum : value * scale;
    }
  }
}

std::string stored_name(DType source, PanelLayout layout) {
  if (is_block_format(source)) return std::string(dtype_name(source));
  if (layout == PanelLayout::kFloat32) return "float32";
  return layout == PanelLayout::kHalf ? "float16" : "bfloat16";
}

}  // namespace

PanelMemory::PanelMemory(int64_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  // A mapping that starts on a huge page; the few bytes cut off before it are never touched.
  const int64_t slack = bytes >= 2 * kHugePage ? kHugePage : 0;
  void* memory = mmap(nullptr, static_cast<size_t>(bytes + slack), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    throw_error(ErrorKind::kResource, "cannot get {} bytes for weights: {}", bytes,
                std::strerror(errno));
  }
  auto* begin = static_cast<uint8_t*>(memory);
  if (slack > 0) {
    const auto address = reinterpret_cast<intptr_t>(begin);
    const int64_t before = align_up(address, kHugePage) - address;
    if (before > 0) munmap(begin, static_cast<size_t>(before));
    begin += before;
    const int64_t after = align_down(slack - before, 4096);
    if (after > 0) munmap(begin + align_up(bytes, 4096), static_cast<size_t>(after));
    // Best effort: without huge pages the weights are only a little slower.
    madvise(begin, static_cast<size_t>(bytes), MADV_HUGEPAGE);
  }
  data_ = begin;
}

PanelMemory::~PanelMemory() {
  if (data_ != nullptr) munmap(data_, static_cast<size_t>(bytes_));
}

PanelMemory& PanelMemory::operator=(PanelMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

PanelMatrix::PanelMatrix(std::span<const RawMatrix> parts, DType dtype, ThreadPool& threads)
    : PackedMatrix(total_rows(parts), parts[0].cols) {
  // Neighbours of one dtype share a segment, so that only the last panel of each is short.
  std::vector<std::span<const RawMatrix>> runs;
  for (size_t begin = 0, end = 0; begin < parts.size(); begin = end) {
    while (end < parts.size() && parts[end].dtype == parts[begin].dtype) ++end;
    runs.push_back(parts.subspan(begin, end - begin));
  }

  int64_t bytes = 0;
  int64_t first_row = 0;
  for (const auto& run : runs) {
    const DType source = run[0].dtype;
    PanelSegment segment{};
    segment.layout = panel_layout(source, dtype);
    segment.values = code_values(source);
    segment.first_row = first_row;
    segment.rows = total_rows(run);
    const PanelShape shape = panel_shape(segment.layout);
    segment.panel_bytes = align_up(cols() / shape.block * shape.block_bytes, 64);
    bytes += segment.num_panels() * segment.panel_bytes;
    first_row += segment.rows;
    segments_.push_back(segment);
    if (!format_.empty()) format_ += '+';
    format_ += stored_name(source, segment.layout);
  }

  memory_ = PanelMemory(bytes);
  uint8_t* at = memory_.data();
  for (size_t i = 0; i < runs.size(); ++i) {
    PanelSegment& segment = segments_[i];
    segment.panels = at;
    const PanelShape shape = panel_shape(segment.layout);
    const DType source = runs[i][0].dtype;
    const RowSource rows(runs[i]);
    threads.parallel_for(segment.num_panels(), [&](int64_t panel) {
      uint8_t* out = at + panel * segment.panel_bytes;
      if (is_block_format(source)) {
        pack_quantised_panel(out, rows.rows_of_panel(panel), cols(), source, shape);
      } else {
        pack_plain_panel(out, rows.rows_of_panel(panel), cols(), source, segment.layout);
      }
    });
    at += segment.num_panels() * segment.panel_bytes;
  }
}

void PanelMatrix::row(float* out, int64_t r) const {
  const PanelSegment* segment = segments_.data();
  while (r >= segment->first_row + segment->rows) ++segment;
  const int64_t local = r - segment->first_row;
  const int64_t lane = local % kPanel;
  const uint8_t* block = segment->panels + local / kPanel * segment->panel_bytes;
  const PanelShape shape = panel_shape(segment->layout);
  if (shape.block == 1) {
    plain_row(out, block, segment->layout, lane, cols());
    return;
  }
  for (int64_t k = 0; k < cols(); k += shape.block, block += shape.block_bytes) {
    quantised_block(out + k, block, *segment, shape, lane);
  }
}

}  // namespace minisgl::cpu
