// The tokenizer on streams of JSON lines, and a chat request as a prompt: what `minisgl tokenize`
// does, without its command line.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>

#include "tokenizer/chat_template/chat_template.h"
#include "tokenizer/tokenizer.h"
#include "utils/json.h"

namespace minisgl {

// For each line {"text", "add_special", "parse_special"} writes one {"ids"}; the last two default
// to true. Lines of white space are passed over. Each answer is flushed, so that a program may wait
// for it.
// Errors: kInvalidArgument naming the line, for what is not such an object or has other keys;
// the answers before it are written.
void encode_jsonl(const Tokenizer& tokenizer, std::istream& in, std::ostream& out);

// For each line {"ids"} writes one {"text"}, special tokens written out. Ids that no token has
// decode to nothing. Otherwise as encode_jsonl.
void decode_jsonl(const Tokenizer& tokenizer, std::istream& in, std::ostream& out);

// bos_token, eos_token, pad_token and unk_token as a template sees them; those that the model has.
Json special_tokens_of(const Tokenizer& tokenizer);

// The tokenizer's own template: "tool_use" where it names one and the request has tools.
// Errors: kInvalidArgument where it has none.
const std::string& own_chat_template(const Tokenizer& tokenizer, bool has_tools);

// The prompt of a chat request's body (see parse_chat_request). template_source: instead of the
// tokenizer's own; then `tokenizer` may be null, and special tokens come from chat_template_kwargs.
// Errors: those of render_chat; kInvalidArgument without a template.
std::string chat_prompt(const Json& body, const std::optional<std::string>& template_source,
                        const Tokenizer* tokenizer);

// The same with the files of a command line.
// chat_path, template_path (empty: the tokenizer's own).
// Errors: further kNotFound and kBadFile for the files.
std::string chat_prompt_of_file(const std::string& chat_path, const std::string& template_path,
                                const Tokenizer* tokenizer);

}  // namespace minisgl
