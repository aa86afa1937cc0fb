#include "utils/json.h"

#include "utils/files.h"

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

Json read_json_file(const std::string& path) { return parse_json(read_file(path), path); }

}  // namespace minisgl
