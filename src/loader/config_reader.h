// Typed look-ups in a config's JSON, with bounds; messages name file, key, expected and found.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "utils/json.h"

namespace minisgl {

// Looks at one JSON object; both must outlive it. Absent keys and null are the same: empty.
// Errors: kBadFile.
class ConfigReader {
 public:
  ConfigReader(const Json& json, std::string path) : json_(&json), path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  const Json* find(const char* key) const;  // null: absent
  bool has(const char* key) const { return find(key) != nullptr; }
  // There at all, be it null.
  bool mentions(const char* key) const { return json_->contains(key); }

  std::optional<int64_t> integer(const char* key, int64_t min, int64_t max) const;
  std::optional<double> number(const char* key, double min, double max) const;
  std::optional<bool> boolean(const char* key) const;
  std::optional<std::string> string(const char* key) const;
  // The object under `key`, its messages named "path: key".
  std::optional<ConfigReader> object(const char* key) const;
  // As integer(), but must be there.
  int64_t need_integer(const char* key, int64_t min, int64_t max) const;

  [[noreturn]] void throw_bad(const char* key, std::string_view expected) const;

 private:
  const Json* json_;
  std::string path_;
};

}  // namespace minisgl
