// How a model on a hub is written, and which names from a server may become local paths.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace minisgl {

// "ORG/REPO", "ORG/REPO:Q4_K_M", "ORG/REPO:folder/file.gguf", each also with "@REVISION".
struct HubName {
  std::string org, repo;
  std::string gguf;      // a quantisation or a GGUF file of the repository; "" for none
  std::string revision;  // branch, tag or commit; "" for the default

  std::string id() const { return org + "/" + repo; }
};

// Empty when `name` is not written like a model on a hub (it may then be a local path).
std::optional<HubName> parse_hub_name(std::string_view name);

// 40 hexadecimal digits: such a revision never changes.
bool is_commit_hash(std::string_view revision);
// May be used as a file name inside the cache: a commit, an etag.
bool is_plain_name(std::string_view name);
// A relative path that stays inside its folder: no empty, "." or ".." component, no control
// characters, every component at most 255 bytes.
bool is_safe_relative_path(std::string_view path);

}  // namespace minisgl
