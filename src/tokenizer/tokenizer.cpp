#include "tokenizer/tokenizer.h"

namespace minisgl {

std::vector<int32_t> Tokenizer::encode_prompt(std::string_view text) const {
  std::vector<int32_t> ids = encode(text);
  const bool twice = info_.adds_bos && info_.bos_id >= 0 && ids.size() >= 2 &&
                     ids[0] == info_.bos_id && ids[1] == info_.bos_id;
  if (twice) ids.erase(ids.begin());
  return ids;
}

std::string Tokenizer::decode(std::span<const int32_t> ids, DecodeOptions options) const {
  std::string text;
  const std::unique_ptr<DecodeStream> stream = new_stream(options);
  for (const int32_t id : ids) stream->push(id, text);
  stream->finish(text);
  return text;
}

}  // namespace minisgl
