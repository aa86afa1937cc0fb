// Which tensors of a checkpoint were asked for, to find those that no layer wanted.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace minisgl {

class UsedNames {
 public:
  void mark(const std::string& name) { used_.insert(name); }
  // Error kBadFile, when some of `all` are neither marked nor start or end with one of `ignored`:
  // names the first of them. `path` is for the message.
  void check(const std::vector<std::string>& all, const std::vector<std::string>& ignored,
             std::string_view path) const;

 private:
  std::set<std::string> used_;
};

}  // namespace minisgl
