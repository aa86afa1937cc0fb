#include "tokenizer/vocab.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "utils/error.h"

namespace minisgl {

// 8 bytes at a time, multiply and fold. Good enough for hash tables of words; not against an
// attacker who may only choose words, whose cost is bounded by the table of a fixed vocabulary.
uint64_t hash_bytes(std::string_view bytes) {
  constexpr uint64_t kMul = 0x9E3779B97F4A7C15ull;
  uint64_t h = bytes.size() * kMul;
  const char* p = bytes.data();
  size_t n = bytes.size();
  while (n >= 8) {
    uint64_t v;
    std::memcpy(&v, p, 8);
    h = std::rotl((h ^ v) * kMul, 29);
    p += 8;
    n -= 8;
  }
  if (n > 0) {
    uint64_t v = 0;
    std::memcpy(&v, p, n);
    h = std::rotl((h ^ v) * kMul, 29);
  }
  h *= kMul;
  return h ^ (h >> 32);
}

void StringMap::reserve(size_t count) {
  const size_t capacity = std::bit_ceil(std::max<size_t>(16, count * 2));
  if (capacity > entries_.size()) grow(capacity);
}

void StringMap::grow(size_t capacity) {
  std::vector<Entry> old = std::exchange(entries_, std::vector<Entry>(capacity));
  for (const Entry& entry : old) {
    if (entry.id < 0) continue;
    size_t i = entry.hash & (capacity - 1);
    while (entries_[i].id >= 0) i = (i + 1) & (capacity - 1);
    entries_[i] = entry;
  }
}

bool StringMap::insert(std::string_view key, int32_t id) {
  if ((size_ + 1) * 2 > entries_.size()) grow(std::max<size_t>(16, entries_.size() * 2));
  const uint64_t hash = hash_bytes(key);
  size_t i = hash & (entries_.size() - 1);
  while (entries_[i].id >= 0) {
    if (entries_[i].hash == hash && entries_[i].key == key) return false;
    i = (i + 1) & (entries_.size() - 1);
  }
  entries_[i] = {hash, key, id};
  ++size_;
  return true;
}

int32_t StringMap::find(std::string_view key) const {
  if (entries_.empty()) return -1;
  const uint64_t hash = hash_bytes(key);
  size_t i = hash & (entries_.size() - 1);
  while (entries_[i].id >= 0) {
    if (entries_[i].hash == hash && entries_[i].key == key) return entries_[i].id;
    i = (i + 1) & (entries_.size() - 1);
  }
  return -1;
}

void Vocab::reserve(size_t count) {
  tokens_.reserve(count);
  map_.reserve(count);
}

std::string_view Vocab::store(std::string_view text) {
  constexpr size_t kChunkBytes = 1 << 16;
  if (chunks_.empty() || chunks_.back().capacity() - chunks_.back().size() < text.size() + 1) {
    chunks_.emplace_back().reserve(std::max(kChunkBytes, text.size() + 1));
  }
  std::string& chunk = chunks_.back();
  const size_t begin = chunk.size();
  chunk.append(text);
  chunk.push_back('\0');
  return {chunk.data() + begin, text.size()};
}

void Vocab::add(std::string_view text, int32_t id) {
  MINISGL_CHECK(id >= 0 && id <= kMaxTokenId && !contains(id));
  if (id >= size()) tokens_.resize(static_cast<size_t>(id) + 1);
  const std::string_view stored = store(text);
  tokens_[static_cast<size_t>(id)] = stored;
  map_.insert(stored, id);
}

}  // namespace minisgl
