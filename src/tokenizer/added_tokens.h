// Tokens that are found in the text before anything else is done to it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace minisgl {

struct AddedToken {
  std::string content;
  int32_t id = -1;
  bool single_word = false;  // only where no word character touches it
  bool lstrip = false;       // takes the spaces before it too
  bool rstrip = false;       // and those after it
  bool normalized = false;   // looked for in the normalized text instead of the raw one
  bool special = false;      // hidden by skip_special, not parsed without parse_special
};

// A stretch of text: plain (id -1), or one added token.
struct Section {
  size_t begin = 0, end = 0;
  int32_t id = -1;
};

// A set of strings to look for, leftmost and then longest first. Const and thread-safe once built.
class AddedTokens {
 public:
  // content: what is looked for (of `token`, perhaps normalized); an empty one is left out.
  void add(std::string_view content, const AddedToken& token);
  bool empty() const { return tokens_.empty(); }

  // Cuts valid UTF-8 into sections, in order. Without parse_special, special tokens are text.
  void split(std::string_view text, bool parse_special, std::vector<Section>& sections) const;

 private:
  struct Node {
    int32_t child = -1, sibling = -1;
    int32_t token = -1;  // index into tokens_, where one ends here
    char byte = 0;
  };
  struct Found {
    size_t end = 0;
    int32_t token = -1;
  };
  int32_t child(int32_t node, char byte) const;
  Found longest_at(std::string_view text, size_t begin) const;

  std::vector<Node> nodes_ = std::vector<Node>(1);  // a trie of bytes, the root first
  std::vector<AddedToken> tokens_;
  bool begins_[256] = {};  // bytes that begin some token
};

}  // namespace minisgl
