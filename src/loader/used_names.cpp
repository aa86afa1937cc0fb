#include "loader/used_names.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "utils/error.h"
#include "utils/quote.h"

namespace minisgl {

void UsedNames::check(const std::vector<std::string>& all, const std::vector<std::string>& ignored,
                      std::string_view path) const {
  constexpr size_t kMaxShown = 8;
  std::vector<std::string> surplus;
  for (const std::string& name : all) {
    const bool is_ignored = std::any_of(
        ignored.begin(), ignored.end(),
        [&](const std::string& affix) { return name.starts_with(affix) || name.ends_with(affix); });
    if (!is_ignored && !used_.contains(name)) surplus.push_back(quote(name));
  }
  if (surplus.empty()) return;
  const size_t count = surplus.size();
  if (count > kMaxShown) surplus.resize(kMaxShown);
  throw_error(ErrorKind::kBadFile,
              "{}: has {} tensors that a model of its config does not use: {}{}; the config and "
              "the weights do not belong together, or the architecture differs from its name",
              path, count, fmt::join(surplus, ", "), count > kMaxShown ? ", ..." : "");
}

}  // namespace minisgl
