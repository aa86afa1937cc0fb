// Where the tests' reference data lies.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

namespace minisgl::testing {

// The full set, where it is present: MINISGL_GOLDENS, or ../shared/goldens beside the repository.
inline std::optional<std::string> goldens_dir() {
  const char* named = std::getenv("MINISGL_GOLDENS");
  const std::string dir = named ? named : MINISGL_SOURCE_DIR "/../shared/goldens";
  if (!std::filesystem::is_directory(dir)) return std::nullopt;
  return dir;
}

// The selection committed with the tests; always there.
inline std::string test_data_dir() { return MINISGL_TEST_DATA; }

}  // namespace minisgl::testing
