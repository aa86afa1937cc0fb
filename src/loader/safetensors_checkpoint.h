// A checkpoint of one or more safetensors files.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "loader/safetensors.h"
#include "loader/stored_part.h"
#include "loader/used_names.h"
#include "loader/weights.h"

namespace minisgl {

// Answers from the mapped files without copying (a tensor that lies unaligned in its file is copied
// once). Weights must be float32, float16 or bfloat16.
class SafetensorsCheckpoint final : public Checkpoint {
 public:
  // One file.
  static std::unique_ptr<SafetensorsCheckpoint> open(const std::string& path, FusedRows fused);
  // The shards that an index ("model.safetensors.index.json") names, beside it.
  // Errors: a shard that is missing, or has not the tensors that the index says.
  static std::unique_ptr<SafetensorsCheckpoint> open_index(const std::string& path,
                                                           FusedRows fused);

  RawMatrix get(const std::string& name, int64_t rows, int64_t cols) override;
  bool has(const std::string& name) const override;
  void release(const RawMatrix& matrix) override;
  void check_all_used(const std::vector<std::string>& ignored) const override;
  int64_t total_bytes() const override;

  // The dtype of the first floating tensor in the file's order; bfloat16 when there is none.
  DType first_dtype() const;

 private:
  struct Stored {
    const SafetensorsTensor* tensor;
    size_t file;
  };
  SafetensorsCheckpoint(std::string path, FusedRows fused)
      : path_(std::move(path)), fused_(fused) {}
  void add_file(std::unique_ptr<SafetensorsFile> file);
  const Stored* find(const std::string& name) const;
  RawMatrix matrix_of(const Stored& stored, const StoredPart& part, int64_t rows, int64_t cols);
  const std::byte* aligned(const SafetensorsTensor& tensor, DType dtype);

  std::string path_;  // the file or the index
  FusedRows fused_;
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::unordered_map<std::string, Stored> tensors_;
  std::unordered_map<std::string, std::vector<std::byte>> copies_;
  UsedNames used_;
};

}  // namespace minisgl
