#include "utils/error.h"

#include <cstring>

namespace minisgl {
namespace {

struct KindInfo {
  ErrorKind kind;
  const char* name;
  int exit_code;
  int http_status;
};

constexpr KindInfo kKinds[] = {
    {ErrorKind::kInvalidArgument, "invalid argument", 2, 400},
    {ErrorKind::kNotFound, "not found", 3, 404},
    {ErrorKind::kBadFile, "bad file", 4, 500},
    {ErrorKind::kUnsupported, "unsupported", 5, 400},
    {ErrorKind::kResource, "resource", 6, 503},
    {ErrorKind::kNetwork, "network", 7, 503},
    {ErrorKind::kCancelled, "cancelled", 8, 499},
    {ErrorKind::kInternal, "internal", 70, 500},
};

const KindInfo& info(ErrorKind kind) {
  for (const KindInfo& entry : kKinds) {
    if (entry.kind == kind) return entry;
  }
  return info(ErrorKind::kInternal);
}

}  // namespace

const char* error_kind_name(ErrorKind kind) { return info(kind).name; }
int exit_code(ErrorKind kind) { return info(kind).exit_code; }
int http_status(ErrorKind kind) { return info(kind).http_status; }

namespace detail {

void check_failed(const char* condition, const char* file, int line, const std::string& message) {
  const char* slash = std::strrchr(file, '/');
  throw Error(
      ErrorKind::kInternal,
      fmt::format("internal error at {}:{}: {} does not hold{}{}; please report this",
                  slash ? slash + 1 : file, line, condition, message.empty() ? "" : ": ", message));
}

}  // namespace detail
}  // namespace minisgl
