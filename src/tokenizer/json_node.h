// A value in a big JSON file that knows where it stands, for messages that name the place.
#pragma once

#include <simdjson.h>

#include <optional>
#include <string>
#include <string_view>

namespace minisgl {

// A view into a parsed document, which must outlive it. The accessors throw kBadFile with the
// path ("tokenizer.json: pre_tokenizer.pattern") when the value is not what was asked for.
class JsonNode {
 public:
  JsonNode(simdjson::dom::element element, std::string path)
      : element_(element), path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  simdjson::dom::element element() const { return element_; }
  bool is_null() const { return element_.is_null(); }
  bool is_string() const { return element_.is_string(); }
  bool is_object() const { return element_.is_object(); }

  // Absent or null: nothing.
  std::optional<JsonNode> find(std::string_view key) const;
  JsonNode at(std::string_view key) const;
  // The value itself.
  std::string_view as_string() const;
  bool as_bool() const;
  int64_t as_integer() const;
  double as_number() const;
  simdjson::dom::array as_array() const;
  simdjson::dom::object as_object() const;
  // A member with a default, for when it is absent or null.
  std::string_view string_or(std::string_view key, std::string_view otherwise) const;
  bool bool_or(std::string_view key, bool otherwise) const;
  int64_t integer_or(std::string_view key, int64_t otherwise) const;

  [[noreturn]] void fail_expected(std::string_view expected) const;
  // "…: 'Foo' is not known; known: …"
  [[noreturn]] void fail_unknown(std::string_view what, std::string_view known) const;

 private:
  simdjson::dom::element element_;
  std::string path_;
};

}  // namespace minisgl
