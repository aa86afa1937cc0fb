// Environment variables, read once at the edges of the program.
#pragma once

#include <cctype>
#include <cstdlib>
#include <optional>
#include <string>

namespace minisgl {

// The variable's value; empty when it is not set or set to nothing.
inline std::optional<std::string> env_string(const char* name) {
  const char* value = std::getenv(name);
  if (!value || !*value) return std::nullopt;
  return std::string(value);
}

// 1, on, yes and true, in any case, are true; everything else is false.
inline bool env_flag(const char* name) {
  std::string value = env_string(name).value_or("");
  for (char& c : value) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return value == "1" || value == "on" || value == "yes" || value == "true";
}

// "~" and "~/…" become the home folder; other text is returned as it is.
inline std::string expand_home(const std::string& path) {
  if (path.empty() || path[0] != '~' || (path.size() > 1 && path[1] != '/')) return path;
  return env_string("HOME").value_or("") + path.substr(1);
}

}  // namespace minisgl
