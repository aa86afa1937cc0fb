// A request's generated ids as text, as they come.
#pragma once

#include "tokenizer/stop_strings.h"
#include "tokenizer/tokenizer.h"

namespace minisgl {

struct DetokenizerOptions {
  bool skip_special = true;
  std::vector<std::string> stop = {};  // none empty
  bool include_stop = false;           // whether the stop string is part of the text
};

// Every piece is whole UTF-8 characters. All pieces together equal Tokenizer::decode of all ids,
// cut at the first stop string. One thread at a time; must not outlive the tokenizer.
class Detokenizer {
 public:
  // Errors: kInvalidArgument (a stop string that is empty or not valid UTF-8).
  Detokenizer(const Tokenizer& tokenizer, DetokenizerOptions options = {})
      : stream_(tokenizer.new_stream({.skip_special = options.skip_special})),
        stop_strings_(std::move(options.stop), options.include_stop) {}

  // The text that `id` makes certain; often empty. After a stop string always.
  std::string push(int32_t id);
  // The generation ends here, whatever for: the rest of the text. To be called once.
  std::string finish();

  // A stop string was completed: generation should end.
  bool stopped() const { return stop_strings_.matched(); }
  // Which one; only when stopped().
  const std::string& stop_string() const { return stop_strings_.match(); }

 private:
  std::unique_ptr<DecodeStream> stream_;
  StopStrings stop_strings_;
};

}  // namespace minisgl
