#include "loader/hub_names.h"

#include <algorithm>
#include <cctype>

namespace minisgl {
namespace {

constexpr size_t kMaxComponent = 255;
constexpr size_t kMaxHubComponent = 96;

bool is_alnum(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x80 && std::isalnum(byte);
}

bool is_word(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return is_alnum(c) || c == '-' || c == '_' || c == '.'; });
}

// What the hubs allow; "--" is what separates names in the cache.
bool is_hub_component(std::string_view text) {
  const auto edge = [](char c) { return is_alnum(c) || c == '_'; };
  return !text.empty() && text.size() <= kMaxHubComponent && is_word(text) && edge(text.front()) &&
         edge(text.back()) && text.find("--") == text.npos && text.find("..") == text.npos;
}

bool is_model_file(std::string_view text) {
  for (const std::string_view end : {".gguf", ".safetensors", ".json", ".bin"}) {
    if (text.ends_with(end)) return true;
  }
  return false;
}

}  // namespace

std::optional<HubName> parse_hub_name(std::string_view name) {
  const size_t suffix = std::min(name.find_first_of(":@"), name.size());
  const std::string_view id = name.substr(0, suffix);
  const size_t slash = id.find('/');
  if (slash == id.npos || is_model_file(id)) return std::nullopt;
  HubName out;
  out.org = id.substr(0, slash);
  out.repo = id.substr(slash + 1);
  if (!is_hub_component(out.org) || !is_hub_component(out.repo)) return std::nullopt;

  for (std::string_view rest = name.substr(suffix); !rest.empty();) {
    const size_t next = std::min(rest.find_first_of(":@", 1), rest.size());
    std::string& part = rest[0] == ':' ? out.gguf : out.revision;
    if (!part.empty()) return std::nullopt;
    part = std::string(rest.substr(1, next - 1));
    if (!is_safe_relative_path(part)) return std::nullopt;
    rest = rest.substr(next);
  }
  return out;
}

bool is_commit_hash(std::string_view revision) {
  return revision.size() == 40 && std::all_of(revision.begin(), revision.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

bool is_plain_name(std::string_view name) {
  return !name.empty() && name.size() <= 128 && is_word(name) && name.front() != '.';
}

bool is_safe_relative_path(std::string_view path) {
  if (path.empty() || path.size() > 1024) return false;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) return false;
  }
  while (true) {
    const size_t slash = std::min(path.find('/'), path.size());
    const std::string_view component = path.substr(0, slash);
    if (component.empty() || component == "." || component == ".." ||
        component.size() > kMaxComponent) {
      return false;
    }
    if (slash == path.size()) return true;
    path.remove_prefix(slash + 1);
  }
}

}  // namespace minisgl
