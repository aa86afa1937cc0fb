// A checkpoint of a GGUF file under Hugging Face's names.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "core/model_config.h"
#include "loader/gguf_names.h"
#include "loader/stored_part.h"
#include "loader/used_names.h"
#include "loader/weights.h"
#include "utils/gguf.h"

namespace minisgl {

// Answers matrices from the mapped file without copying, block formats as they are. Copied are only
// small vectors whose stored form differs: norms that hold 1 + w, biases in interleaved order.
class GgufCheckpoint final : public Checkpoint {
 public:
  // config: what config_from_gguf(file) gave.
  GgufCheckpoint(GgufFile file, const ModelConfig& config);

  RawMatrix get(const std::string& name, int64_t rows, int64_t cols) override;
  bool has(const std::string& name) const override;
  void release(const RawMatrix& matrix) override;
  void check_all_used(const std::vector<std::string>& ignored) const override;
  int64_t total_bytes() const override;

  const GgufFile& file() const { return file_; }

 private:
  const GgufTensor* find(const StoredPart& part) const;
  RawMatrix matrix_of(const GgufTensor& tensor, const StoredPart& part, int64_t rows,
                      int64_t cols) const;
  std::vector<float> floats_of(const RawMatrix& vector, const std::string& name) const;
  RawMatrix keep(const std::string& name, const std::vector<float>& values);

  GgufFile file_;
  const GgufFamily& family_;
  int64_t head_dim_;
  FusedRows fused_;
  std::unordered_map<std::string, std::vector<float>> copies_;
  UsedNames used_;
};

}  // namespace minisgl
