// JSON for configs, requests and replies: nlohmann/json with the order of keys kept.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "utils/error.h"

namespace minisgl {

using Json = nlohmann::ordered_json;

// Parses `text`, or throws an Error that names `what` (a file or "request body") and the byte where
// it went wrong. Nesting deeper than `max_depth` is refused, so that hostile text cannot exhaust
// the stack.
Json parse_json(std::string_view text, std::string_view what, ErrorKind kind = ErrorKind::kBadFile,
                int max_depth = 128);

// For documents of very many keys (file headers): look-up in logarithmic time, keys sorted.
using SortedJson = nlohmann::json;
// As parse_json(), and an object with the same key twice is an error.
SortedJson parse_json_unique(std::string_view text, std::string_view what,
                             ErrorKind kind = ErrorKind::kBadFile, int max_depth = 128);

// parse_json() of a file.
Json read_json_file(const std::string& path);

}  // namespace minisgl
