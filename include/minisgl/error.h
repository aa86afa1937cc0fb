// Errors that a person outside can act on: a wrong file, flag, request or machine.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace minisgl {

// Who can act on an error. The edges turn a kind into an exit code, an HTTP status or a C code.
enum class ErrorKind {
  kInvalidArgument,  // a flag or a request is wrong          (400, exit code 2)
  kNotFound,         // a file, model or name does not exist  (404, exit code 3)
  kBadFile,          // a file is malformed or truncated      (exit code 4)
  kUnsupported,      // well-formed, but not something we do  (400, exit code 5)
  kResource,         // memory, disk, sockets, permissions    (503, exit code 6)
  kNetwork,          // a download failed                     (503, exit code 7)
  kCancelled,        // the caller asked to stop              (499, exit code 8)
  kInternal,         // our own promise is broken: a bug      (500, exit code 70)
};

// The message says what was expected, what was found and what to do about it.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const noexcept { return kind_; }

 private:
  ErrorKind kind_;
};

}  // namespace minisgl
