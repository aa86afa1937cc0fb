// Token texts and ids, found both ways.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace minisgl {

// No real vocabulary is near this; a file that asks for more is wrong or hostile.
inline constexpr int64_t kMaxTokenId = (int64_t{1} << 22) - 1;

uint64_t hash_bytes(std::string_view bytes);

// From a string to an id: open addressing, keys are not owned. Thread-safe to read.
class StringMap {
 public:
  void reserve(size_t count);
  // A key that is already there keeps its id. False in that case.
  bool insert(std::string_view key, int32_t id);
  // -1 where the key is not known.
  int32_t find(std::string_view key) const;
  size_t size() const { return size_; }

 private:
  struct Entry {
    uint64_t hash = 0;
    std::string_view key;
    int32_t id = -1;
  };
  void grow(size_t capacity);
  std::vector<Entry> entries_;  // a power of two, or empty
  size_t size_ = 0;
};

// Owns the texts. Ids may have gaps (token() is empty there). Thread-safe to read.
class Vocab {
 public:
  void reserve(size_t count);
  // id: 0 … kMaxTokenId, not yet taken. Of two ids with one text, find() gives the first.
  void add(std::string_view text, int32_t id);
  int32_t find(std::string_view text) const { return map_.find(text); }
  // Highest id + 1.
  int32_t size() const { return static_cast<int32_t>(tokens_.size()); }
  bool contains(int32_t id) const {
    return id >= 0 && id < size() && tokens_[static_cast<size_t>(id)].data() != nullptr;
  }
  std::string_view token(int32_t id) const {
    return contains(id) ? tokens_[static_cast<size_t>(id)] : std::string_view();
  }

 private:
  std::string_view store(std::string_view text);
  std::deque<std::string> chunks_;  // texts are packed here; chunks never move
  std::vector<std::string_view> tokens_;
  StringMap map_;
};

}  // namespace minisgl
