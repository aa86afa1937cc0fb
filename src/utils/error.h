// How the library reports what went wrong. Three kinds that are never mixed:
//   someone outside can fix it   throw_error(ErrorKind::kBadFile, "{}: …", path)
//   we broke our own promise     MINISGL_CHECK(condition, "…", args), on in release builds too;
//                                MINISGL_DCHECK in inner loops (debug builds only)
//   a normal outcome             a return value, not an exception
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

#include "minisgl/error.h"

namespace minisgl {

template <class... Args>
[[noreturn]] void throw_error(ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(kind, fmt::format(format, std::forward<Args>(args)...));
}

// "invalid argument", "bad file", …
const char* error_kind_name(ErrorKind kind);
// The process exit code and the HTTP status of a kind.
int exit_code(ErrorKind kind);
int http_status(ErrorKind kind);

namespace detail {
[[noreturn]] void check_failed(const char* condition, const char* file, int line,
                               const std::string& message);

inline std::string check_message() { return {}; }
template <class... Args>
std::string check_message(fmt::format_string<Args...> format, Args&&... args) {
  return fmt::format(format, std::forward<Args>(args)...);
}
}  // namespace detail

#define MINISGL_CHECK(condition, ...)                                                 \
  do {                                                                                \
    if (!(condition)) [[unlikely]]                                                    \
      ::minisgl::detail::check_failed(#condition, __FILE__, __LINE__,                 \
                                      ::minisgl::detail::check_message(__VA_ARGS__)); \
  } while (false)

#ifdef NDEBUG
#define MINISGL_DCHECK(condition, ...) \
  do {                                 \
  } while (false && (condition))
#else
#define MINISGL_DCHECK(condition, ...) MINISGL_CHECK(condition __VA_OPT__(, ) __VA_ARGS__)
#endif

}  // namespace minisgl
