// A template's source into tokens, with Jinja's white space rules as chat templates are written
// for: trim_blocks and lstrip_blocks are on, the last newline of the source is dropped.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/chat_template/value.h"

namespace minisgl::jinja {

enum class TokenKind {
  kData,           // text: goes to the output as it is
  kBlockBegin,     // {%
  kBlockEnd,       // %}
  kVariableBegin,  // {{
  kVariableEnd,    // }}
  kName,
  kString,  // text: with its escapes undone
  kInteger,
  kFloat,
  kOperator,  // text: one of + - / // * % ** ~ [ ] ( ) { } == != > >= < <= = . : | , ;
  kEnd,
};

struct Token {
  TokenKind kind;
  int line;
  std::string text;
  Value number;  // kInteger and kFloat
};

// Errors: kInvalidArgument with the line. The last token is kEnd.
std::vector<Token> tokenize(std::string_view source);

// "chat template, line 3: …" as an Error.
[[noreturn]] void throw_template_error(ErrorKind kind, int line, const std::string& message);

}  // namespace minisgl::jinja
