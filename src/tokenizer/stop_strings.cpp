#include "tokenizer/stop_strings.h"

#include <algorithm>

#include "tokenizer/utf8.h"
#include "utils/error.h"
#include "utils/quote.h"

namespace minisgl {

StopStrings::StopStrings(std::vector<std::string> stops, bool include_in_text)
    : include_in_text_(include_in_text) {
  for (std::string& text : stops) {
    if (text.empty() || !is_valid_utf8(text)) {
      throw_error(ErrorKind::kInvalidArgument, "stop string {} is {}", quote(text),
                  text.empty() ? "empty; leave it out" : "not valid UTF-8");
    }
    Stop stop{std::move(text), {0, 0}, 0};
    for (size_t n = 1; n < stop.text.size(); ++n) {
      stop.failure.push_back(advance(stop, stop.failure[n], stop.text[n]));
    }
    stops_.push_back(std::move(stop));
  }
}

// The state after one more byte; state < text.size().
uint32_t StopStrings::advance(const Stop& stop, uint32_t state, char c) {
  while (state > 0 && stop.text[state] != c) state = stop.failure[state];
  return stop.text[state] == c ? state + 1 : 0;
}

bool StopStrings::push(std::string_view text, std::string& out) {
  if (matched()) return true;
  if (stops_.empty()) {
    out += text;
    return false;
  }
  for (const char c : text) {
    held_.push_back(c);
    size_t longest = 0;
    for (size_t i = 0; i < stops_.size(); ++i) {
      Stop& stop = stops_[i];
      stop.state = advance(stop, stop.state, c);
      if (stop.state == stop.text.size() && stop.text.size() > longest) {
        longest = stop.text.size();
        match_ = static_cast<int>(i);
      }
    }
    if (matched()) {
      out.append(held_, 0, include_in_text_ ? held_.size() : held_.size() - longest);
      held_.clear();
      return true;
    }
  }
  size_t keep = 0;
  for (const Stop& stop : stops_) keep = std::max<size_t>(keep, stop.state);
  out.append(held_, 0, held_.size() - keep);
  held_.erase(0, held_.size() - keep);
  return false;
}

void StopStrings::finish(std::string& out) {
  out += held_;
  held_.clear();
}

}  // namespace minisgl
