#include "tokenizer/decoder.h"

#include <utility>

#include "tokenizer/bpe.h"
#include "tokenizer/byte_level.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/utf8.h"
#include "utils/error.h"

namespace minisgl {
namespace {

// Most stages change each text by itself.
template <class Change>
class MapStage : public DecodeStage {
 public:
  MapStage(DecodeStage* next, Change change) : DecodeStage(next), change_(std::move(change)) {}
  void take(std::string_view text) override { pass(change_(std::string(text))); }

 private:
  Change change_;
};

template <class Change>
std::unique_ptr<DecodeStage> map_stage(DecodeStage* next, Change change) {
  return std::make_unique<MapStage<Change>>(next, std::move(change));
}

class ByteLevelDecoder : public DecodeStep {
 public:
  std::unique_ptr<DecodeStage> make_stage(DecodeStage* next) const override {
    return std::make_unique<Stage>(next);
  }
  std::string mid_text(std::string token) const override {
    if (auto bytes = bytes_of_alphabet(token)) return std::move(*bytes);
    return token;
  }

 private:
  class Stage : public DecodeStage {
   public:
    using DecodeStage::DecodeStage;
    void take(std::string_view token) override {
      const auto bytes = bytes_of_alphabet(token);
      text_.clear();
      assembler_.push(bytes ? std::string_view(*bytes) : token, text_);
      if (!text_.empty()) pass(text_);
    }
    void finish() override {
      text_.clear();
      assembler_.finish(text_);
      if (!text_.empty()) pass(text_);
    }

   private:
    Utf8Assembler assembler_;
    std::string text_;
  };
};

class ByteFallbackDecoder : public DecodeStep {
 public:
  std::unique_ptr<DecodeStage> make_stage(DecodeStage* next) const override {
    return std::make_unique<Stage>(next);
  }
  std::string mid_text(std::string token) const override {
    const int byte = byte_of_token(token);
    return byte < 0 ? token : std::string(1, static_cast<char>(byte));
  }

 private:
  class Stage : public DecodeStage {
   public:
    using DecodeStage::DecodeStage;
    void take(std::string_view token) override {
      if (const int byte = byte_of_token(token); byte >= 0) {
        run_.push_back(static_cast<char>(byte));
        return;
      }
      finish();
      pass(token);
    }
    void finish() override {
      if (run_.empty()) return;
      if (is_valid_utf8(run_)) {
        pass(run_);
      } else {
        for (size_t i = 0; i < run_.size(); ++i) pass("\xEF\xBF\xBD");
      }
      run_.clear();
    }

   private:
    std::string run_;
  };
};

class ReplaceDecoder : public DecodeStep {
 public:
  ReplaceDecoder(std::string needle, std::string replacement)
      : needle_(std::move(needle)), replacement_(std::move(replacement)) {
    MINISGL_CHECK(!needle_.empty());
  }
  std::unique_ptr<DecodeStage> make_stage(DecodeStage* next) const override {
    return map_stage(next, [this](std::string text) { return mid_text(std::move(text)); });
  }
  std::string mid_text(std::string text) const override {
    replace_all(text, needle_, replacement_);
    return text;
  }

 private:
  std::string needle_, replacement_;
};

// Of every token by itself.
class StripDecoder : public DecodeStep {
 public:
  StripDecoder(std::string character, size_t left, size_t right)
      : character_(std::move(character)), left_(left), right_(right) {
    MINISGL_CHECK(!character_.empty());
  }
  std::unique_ptr<DecodeStage> make_stage(DecodeStage* next) const override {
    return map_stage(next, [this](std::string text) { return mid_text(std::move(text)); });
  }
  std::string mid_text(std::string text) const override {
    std::string_view rest = text;
    for (size_t i = 0; i < left_ && rest.starts_with(character_); ++i) {
      rest.remove_prefix(character_.size());
    }
    for (size_t i = 0; i < right_ && rest.ends_with(character_); ++i) {
      rest.remove_suffix(character_.size());
    }
    return std::string(rest);
  }

 private:
  std::string character_;
  size_t left_, right_;
};

// Of the whole text: characters that may be its last ones wait until more follows.
class StripTextDecoder : public DecodeStep {
 public:
  StripTextDecoder(std::string character, size_t left, size_t right)
      : character_(std::move(character)), left_(left), right_(right) {
    MINISGL_CHECK(!character_.empty());
  }
  std::unique_ptr<DecodeStage> make_stage(DecodeStage* next) const override {
    return std::make_unique<Stage>(*this, next);
  }

 private:
  class Stage : public DecodeStage {
   public:
    Stage(const StripTextDecoder& step, DecodeStage* next)
        : DecodeStage(next), step_(step), left_(step.left_) {}
    void take(std::string_view text) override {
      const std::string& character = step_.character_;
      while (left_ > 0 && text.starts_with(character)) {
        text.remove_prefix(character.size());
        --left_;
      }
      if (text.empty()) return;
      left_ = 0;
      waiting_ += text;
      size_t keep = 0;
      const std::string_view all = waiting_;
      while (keep < step_.right_ &&
             all.substr(0, all.size() - keep * character.size()).ends_with(character)) {
        ++keep;
      }
      const size_t ready = waiting_.size() - keep * character.size();
      if (ready > 0) pass(all.substr(0, ready));
      waiting_.erase(0, ready);
    }

   private:
    const StripTextDecoder& step_;
    size_t left_;
    std::string waiting_;  // at most right_ times the character; never passed on at the end
  };

  std::string character_;
  size_t left_, right_;
};

class MetaspaceDecoder : public DecodeStep {
 public:
  MetaspaceDecoder(std::string replacement, bool strips_first)
      : replacement_(std::move(replacement)), strips_first_(strips_first) {
    MINISGL_CHECK(!replacement_.empty());
  }
  std::unique_ptr<DecodeStage> make_stage(DecodeStage* next) const override {
    return map_stage(next, [this, first = strips_first_](std::string text) mutable {
      replace_all(text, replacement_, first ? "" : " ");
      first = false;
      return text;
    });
  }
  std::string mid_text(std::string text) const override {
    replace_all(text, replacement_, " ");
    return text;
  }

 private:
  std::string replacement_;
  bool strips_first_;
};

class SpaceJoiner : public DecodeStep {
 public:
  std::unique_ptr<DecodeStage> make_stage(DecodeStage* next) const override {
    return map_stage(next, [first = true](std::string text) mutable {
      const bool joins = !std::exchange(first, false);
      return joins ? ' ' + text : text;
    });
  }
};

}  // namespace

std::unique_ptr<DecodeStep> make_byte_level_decoder() {
  return std::make_unique<ByteLevelDecoder>();
}
std::unique_ptr<DecodeStep> make_byte_fallback_decoder() {
  return std::make_unique<ByteFallbackDecoder>();
}
std::unique_ptr<DecodeStep> make_replace_decoder(std::string needle, std::string replacement) {
  return std::make_unique<ReplaceDecoder>(std::move(needle), std::move(replacement));
}
std::unique_ptr<DecodeStep> make_strip_decoder(std::string character, size_t left, size_t right,
                                               bool whole_text) {
  if (whole_text) return std::make_unique<StripTextDecoder>(std::move(character), left, right);
  return std::make_unique<StripDecoder>(std::move(character), left, right);
}
std::unique_ptr<DecodeStep> make_metaspace_decoder(std::string replacement, bool strips_first) {
  return std::make_unique<MetaspaceDecoder>(std::move(replacement), strips_first);
}
std::unique_ptr<DecodeStep> make_space_joiner() { return std::make_unique<SpaceJoiner>(); }

}  // namespace minisgl
