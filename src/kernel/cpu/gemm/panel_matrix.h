// Weights packed in panels of 32 rows, in the order that the matrix kernels stream them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernel/cpu/gemm/layout.h"
#include "kernel/kernels.h"

namespace minisgl::cpu {

// Zeroed memory of weights, 64-byte aligned; on huge pages where it is large and they are allowed.
class PanelMemory {
 public:
  PanelMemory() = default;
  // Errors: kResource with the size asked for.
  explicit PanelMemory(int64_t bytes);
  ~PanelMemory();
  PanelMemory& operator=(PanelMemory&& other) noexcept;  // the other gets what this one had

  uint8_t* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  uint8_t* data_ = nullptr;
  int64_t bytes_ = 0;
};

// Consecutive rows of a matrix in one layout; starts on a panel of its own.
struct PanelSegment {
  PanelLayout layout;
  const float* values;  // of 4-bit codes
  int64_t first_row;
  int64_t rows;
  const uint8_t* panels;
  int64_t panel_bytes;
  int64_t num_panels() const { return (rows + kPanel - 1) / kPanel; }
};

class PanelMatrix : public PackedMatrix {
 public:
  // Packs with all threads. Reads the parts once, in order; keeps nothing of them.
  PanelMatrix(std::span<const RawMatrix> parts, DType dtype, ThreadPool& threads);

  int64_t bytes() const override { return memory_.bytes(); }
  std::string format() const override { return format_; }

  std::span<const PanelSegment> segments() const { return segments_; }
  // out: [cols], row r, the same bits as linear() multiplies with. Thread-safe.
  void row(float* out, int64_t r) const;

 private:
  std::vector<PanelSegment> segments_;
  PanelMemory memory_;
  std::string format_;
};

}  // namespace minisgl::cpu
