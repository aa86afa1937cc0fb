// Tokenizer cases as the reference data writes them.
#pragma once

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "tokenizer/tokenizer.h"
#include "utils/files.h"
#include "utils/json.h"

namespace minisgl::testing {

// One JSON object a line.
inline std::vector<Json> read_jsonl(const std::string& path) {
  std::vector<Json> lines;
  std::istringstream in(read_file(path));
  for (std::string line; std::getline(in, line);) {
    if (!line.empty()) lines.push_back(parse_json(line, path));
  }
  return lines;
}

inline std::vector<int32_t> ids_of(const Json& ids) { return ids.get<std::vector<int32_t>>(); }

}  // namespace minisgl::testing
