#include "tokenizer/detokenizer.h"

namespace minisgl {

std::string Detokenizer::push(int32_t id) {
  std::string text, out;
  stream_->push(id, text);
  stop_strings_.push(text, out);
  return out;
}

std::string Detokenizer::finish() {
  std::string text, out;
  stream_->finish(text);
  stop_strings_.push(text, out);
  stop_strings_.finish(out);
  return out;
}

}  // namespace minisgl
