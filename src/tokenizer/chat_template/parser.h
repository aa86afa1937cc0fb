// Tokens into a tree, by Jinja's grammar.
#pragma once

#include <string_view>

#include "tokenizer/chat_template/ast.h"

namespace minisgl::jinja {

// Errors: kInvalidArgument with the line, for what is no template or nested too deeply;
// kUnsupported for tags that load other templates.
Ast parse_template(std::string_view source);

}  // namespace minisgl::jinja
