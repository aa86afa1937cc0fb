#include "tokenizer/added_tokens.h"

#include <algorithm>

#include "tokenizer/utf8.h"

namespace minisgl {
namespace {

bool word_before(std::string_view text, size_t pos) {
  size_t begin = 0;
  return pos > 0 && is_word(last_code_point(text.substr(0, pos), begin));
}

bool word_after(std::string_view text, size_t pos) {
  return pos < text.size() && is_word(next_code_point(text, pos));
}

size_t skip_spaces_left(std::string_view text, size_t pos) {
  while (pos > 0) {
    size_t begin = 0;
    if (!is_space(last_code_point(text.substr(0, pos), begin))) break;
    pos = begin;
  }
  return pos;
}

size_t skip_spaces_right(std::string_view text, size_t pos) {
  while (pos < text.size()) {
    size_t next = pos;
    if (!is_space(next_code_point(text, next))) break;
    pos = next;
  }
  return pos;
}

}  // namespace

int32_t AddedTokens::child(int32_t node, char byte) const {
  int32_t c = nodes_[static_cast<size_t>(node)].child;
  while (c >= 0 && nodes_[static_cast<size_t>(c)].byte != byte) {
    c = nodes_[static_cast<size_t>(c)].sibling;
  }
  return c;
}

void AddedTokens::add(std::string_view content, const AddedToken& token) {
  if (content.empty()) return;
  begins_[static_cast<uint8_t>(content[0])] = true;
  int32_t node = 0;
  for (const char byte : content) {
    int32_t next = child(node, byte);
    if (next < 0) {
      next = static_cast<int32_t>(nodes_.size());
      nodes_.push_back({-1, nodes_[static_cast<size_t>(node)].child, -1, byte});
      nodes_[static_cast<size_t>(node)].child = next;
    }
    node = next;
  }
  nodes_[static_cast<size_t>(node)].token = static_cast<int32_t>(tokens_.size());
  tokens_.push_back(token);
}

AddedTokens::Found AddedTokens::longest_at(std::string_view text, size_t begin) const {
  Found found;
  int32_t node = 0;
  for (size_t i = begin; i < text.size(); ++i) {
    node = child(node, text[i]);
    if (node < 0) break;
    if (const int32_t token = nodes_[static_cast<size_t>(node)].token; token >= 0) {
      found = {i + 1, token};
    }
  }
  return found;
}

void AddedTokens::split(std::string_view text, bool parse_special,
                        std::vector<Section>& sections) const {
  size_t done = 0;  // everything before is in a section
  size_t pos = 0;
  while (pos < text.size() && !tokens_.empty()) {
    if (!begins_[static_cast<uint8_t>(text[pos])]) {
      ++pos;
      continue;
    }
    const Found found = longest_at(text, pos);
    if (found.token < 0) {
      ++pos;
      continue;
    }
    const AddedToken& token = tokens_[static_cast<size_t>(found.token)];
    size_t begin = pos, end = found.end;
    pos = end;  // a match that is not taken is still passed over
    if (token.special && !parse_special) continue;
    if (token.single_word && (word_before(text, begin) || word_after(text, end))) continue;
    if (token.lstrip) begin = std::max(skip_spaces_left(text, begin), done);
    if (token.rstrip) end = skip_spaces_right(text, end);
    if (begin > done) sections.push_back({done, begin, -1});
    sections.push_back({begin, end, token.id});
    done = end;
  }
  if (done < text.size()) sections.push_back({done, text.size(), -1});
}

}  // namespace minisgl
