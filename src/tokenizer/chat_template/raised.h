// What a template says when it refuses a conversation.
#pragma once

#include <string>

#include "minisgl/error.h"

namespace minisgl {

// raise_exception(message) in a chat template: what() is the template's own message, unchanged.
class TemplateRaised : public Error {
 public:
  TemplateRaised(const std::string& message, int line)
      : Error(ErrorKind::kInvalidArgument, message), line_(line) {}
  int line() const noexcept { return line_; }

 private:
  int line_;
};

}  // namespace minisgl
