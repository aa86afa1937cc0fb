// Where a model's weights come from: a checkpoint, and a path into it.
//
// Weights are named once, by their Hugging Face path, in a layer's constructor; safetensors files,
// GGUF files and dummy weights all answer the same names:
//   Weights w(checkpoint);
//   RawMatrix q = (w / "model" / "layers" / 0 / "self_attn" / "q_proj").matrix("weight", {Hq*D,
//   H});
#pragma once

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/raw_matrix.h"

namespace minisgl {

// An open checkpoint. Not thread-safe.
class Checkpoint {
 public:
  virtual ~Checkpoint() = default;
  // The tensor `name` (Hugging Face's full name), which must be a matrix of rows x cols (a vector:
  // rows = 1). Errors name file, tensor, expected and found.
  virtual RawMatrix get(const std::string& name, int64_t rows, int64_t cols) = 0;
  virtual bool has(const std::string& name) const = 0;
  // The caller has copied `matrix`: its pages need not stay resident.
  virtual void release(const RawMatrix& matrix) = 0;
  // Every tensor of the file(s) must have been asked for, except those whose full name starts or
  // ends with one of `ignored`. Error: the list of surplus names.
  virtual void check_all_used(const std::vector<std::string>& ignored) const = 0;
  // Bytes of all tensors as stored, for memory plans and progress.
  virtual int64_t total_bytes() const = 0;
};

// A path into a checkpoint: cheap to copy.
class Weights {
 public:
  explicit Weights(Checkpoint& checkpoint, std::string prefix = "")
      : checkpoint_(&checkpoint), prefix_(std::move(prefix)) {}

  Weights operator/(std::string_view name) const { return Weights(*checkpoint_, full_name(name)); }
  Weights operator/(int64_t index) const { return *this / std::to_string(index); }

  RawMatrix matrix(std::string_view name, int64_t rows, int64_t cols) const {
    return checkpoint_->get(full_name(name), rows, cols);
  }
  RawMatrix vector(std::string_view name, int64_t n) const { return matrix(name, 1, n); }
  bool has(std::string_view name) const { return checkpoint_->has(full_name(name)); }
  void release(const RawMatrix& matrix) const { checkpoint_->release(matrix); }

  std::string full_name(std::string_view name) const {
    return prefix_.empty() ? std::string(name) : prefix_ + "." + std::string(name);
  }

 private:
  Checkpoint* checkpoint_;
  std::string prefix_;
};

}  // namespace minisgl
