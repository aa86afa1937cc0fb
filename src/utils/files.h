// Small whole-file reads and writes; big files are mapped (mmap.h).
#pragma once

#include <string>
#include <string_view>

namespace minisgl {

// The whole file. Errors: kNotFound, kResource (not readable, or larger than `max_bytes`).
std::string read_file(const std::string& path, size_t max_bytes = size_t{1} << 30);
// Written to a temporary name beside it and renamed, so that readers never see half a file.
void write_file(const std::string& path, std::string_view content);
bool file_exists(const std::string& path);

}  // namespace minisgl
