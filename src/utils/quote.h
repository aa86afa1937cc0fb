// Names from outside, made fit for a message.
#pragma once

#include <string>
#include <string_view>

namespace minisgl {

// 'name', with control characters written as \x1b and cut after 100 bytes.
std::string quote(std::string_view name);

}  // namespace minisgl
