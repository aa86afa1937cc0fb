#include "kvcache/prefix_cache.h"

#include "kvcache/naive_cache.h"
#include "kvcache/radix_cache.h"
#include "utils/error.h"

namespace minisgl {

std::unique_ptr<PrefixCache> make_prefix_cache(const std::string& type, int64_t page_size) {
  if (type == "radix") return std::make_unique<RadixCache>(page_size);
  if (type == "naive") return std::make_unique<NaiveCache>();
  throw_error(ErrorKind::kInvalidArgument, "unknown cache type '{}'; supported: radix, naive",
              type);
}

}  // namespace minisgl
