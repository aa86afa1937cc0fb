// Finds stop strings in a stream of text, wherever the borders of its parts fall.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace minisgl {

// Text that may still become a stop string is held back, and released when it cannot. The match
// that ends first counts, of several that end together the longest; so the outcome does not depend
// on how the text was cut. One thread at a time.
class StopStrings {
 public:
  // Errors: kInvalidArgument for a stop string that is empty or not valid UTF-8.
  explicit StopStrings(std::vector<std::string> stops, bool include_in_text = false);

  // text: whole UTF-8 characters. Appends to `out` what is now certain: whole characters too.
  // True once a stop string is complete: nothing further is appended then, ever.
  bool push(std::string_view text, std::string& out);
  // The stream ends: appends what was held back.
  void finish(std::string& out);

  bool matched() const { return match_ >= 0; }
  // Which of the strings it was; only after a match.
  const std::string& match() const { return stops_[static_cast<size_t>(match_)].text; }

 private:
  struct Stop {
    std::string text;
    // failure[n]: the longest proper prefix of text that text[0, n) ends with (Knuth, Morris,
    // Pratt).
    std::vector<uint32_t> failure;
    uint32_t state = 0;  // how much of the text the stream now ends with
  };
  static uint32_t advance(const Stop& stop, uint32_t state, char c);

  std::vector<Stop> stops_;
  bool include_in_text_;
  std::string held_;
  int match_ = -1;
};

}  // namespace minisgl
