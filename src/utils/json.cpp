#include "utils/json.h"

#include <set>
#include <vector>

#include "utils/files.h"
#include "utils/quote.h"

namespace minisgl {
namespace {

// Checked before parsing: nlohmann's parser does not recurse, but destroying and walking a deep
// document does.
void check_depth(std::string_view text, std::string_view what, ErrorKind kind, int max_depth) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > max_depth) {
        throw_error(kind, "{}: JSON is nested deeper than {} levels at byte {}", what, max_depth,
                    i);
      }
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
}

}  // namespace

Json parse_json(std::string_view text, std::string_view what, ErrorKind kind, int max_depth) {
  check_depth(text, what, kind, max_depth);
  try {
    return Json::parse(text);
  } catch (const Json::exception& error) {
    throw_error(kind, "{}: not valid JSON: {}", what, error.what());
  }
}

SortedJson parse_json_unique(std::string_view text, std::string_view what, ErrorKind kind,
                             int max_depth) {
  check_depth(text, what, kind, max_depth);
  std::vector<std::set<std::string>> keys;  // seen so far, of every open object
  const auto check = [&](int, SortedJson::parse_event_t event, SortedJson& value) {
    if (event == SortedJson::parse_event_t::object_start) {
      keys.emplace_back();
    } else if (event == SortedJson::parse_event_t::object_end) {
      keys.pop_back();
    } else if (event == SortedJson::parse_event_t::key &&
               !keys.back().insert(value.get<std::string>()).second) {
      throw_error(kind, "{}: the name {} stands there twice", what,
                  quote(value.get<std::string>()));
    }
    return true;
  };
  try {
    return SortedJson::parse(text, check);
  } catch (const SortedJson::exception& error) {
    throw_error(kind, "{}: not valid JSON: {}", what, error.what());
  }
}

Json read_json_file(const std::string& path) { return parse_json(read_file(path), path); }

}  // namespace minisgl
