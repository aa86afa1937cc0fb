// What the radix cache costs: match + insert of a 32k-token prompt, against the size of the tree.
//
//   radix [--json FILE]    prints a table; appends a JSON line a row to FILE
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <random>

#include "kvcache/radix_cache.h"

using namespace minisgl;

namespace {

constexpr size_t kPromptTokens = 32768;
constexpr size_t kChunk = 512;  // prompts enter the tree chunk by chunk
constexpr int kRepeats = 50;

using Tokens = std::vector<int32_t>;

// A tree of prompts of 4096 tokens, half of which share a system prompt of 512.
class Tree {
 public:
  Tree(int64_t page_size, size_t num_tokens) : cache(page_size) {
    const Tokens system = random_tokens(512);
    while (next_ < num_tokens) {
      Tokens prompt = random_tokens(4096);
      if (random_() % 2 == 0) std::ranges::copy(system, prompt.begin());
      insert_in_chunks(prompt, {});
    }
  }
  Tokens random_tokens(size_t n) {
    Tokens tokens(n);
    for (int32_t& token : tokens) token = static_cast<int32_t>(random_() % 150000);
    return tokens;
  }
  void insert_in_chunks(const Tokens& prompt, const Tokens& locations) {
    Tokens own = locations;
    if (own.empty()) own = fresh_locations(prompt.size());
    for (size_t end = kChunk; end <= prompt.size(); end += kChunk) {
      cache.insert_prefix(std::span(prompt).first(end), std::span(own).first(end), 0);
    }
  }
  Tokens fresh_locations(size_t n) {
    Tokens locations(n);
    std::iota(locations.begin(), locations.end(), static_cast<int32_t>(next_));
    next_ += n;
    return locations;
  }

  RadixCache cache;

 private:
  std::mt19937 random_{1};
  size_t next_ = 0;  // first free location
};

double us_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
      .count();
}

struct Timing {
  double median, max;
};
Timing timing_of(std::vector<double> us) {
  std::ranges::sort(us);
  return {us[us.size() / 2], us.back()};
}

struct Row {
  const char* prompt;
  Timing match_insert, evict;
};

// `shared` tokens of each prompt are in the tree: another prompt's beginning.
Row measure(Tree& tree, const char* name, size_t shared) {
  const Tokens base = tree.random_tokens(kPromptTokens);
  tree.insert_in_chunks(base, {});
  std::vector<double> insert_us, evict_us;
  for (int i = 0; i < kRepeats; ++i) {
    Tokens prompt = tree.random_tokens(kPromptTokens);
    std::copy_n(base.begin(), shared, prompt.begin());
    const Tokens locations = tree.fresh_locations(kPromptTokens);
    auto begin = std::chrono::steady_clock::now();
    const PrefixHandle hit = tree.cache.match_prefix(std::span(prompt).first(prompt.size() - 1), 0);
    PrefixLock lock(tree.cache, hit);
    Tokens row(static_cast<size_t>(hit.length));
    tree.cache.locations(hit, 0, row);
    lock = PrefixLock(tree.cache, tree.cache.insert_prefix(prompt, locations, 0).handle);
    insert_us.push_back(us_since(begin));

    lock = PrefixLock();
    Tokens freed;
    freed.reserve(kPromptTokens + 4096);
    begin = std::chrono::steady_clock::now();
    tree.cache.evict(static_cast<int64_t>(kPromptTokens - shared), freed);
    evict_us.push_back(us_since(begin));
  }
  return {name, timing_of(insert_us), timing_of(evict_us)};
}

std::string machine() {
  char model[256] = "unknown CPU";
  if (FILE* file = std::fopen("/proc/cpuinfo", "r")) {
    char line[512];
    while (std::fgets(line, sizeof line, file) != nullptr) {
      if (std::strncmp(line, "model name", 10) != 0) continue;
      if (const char* colon = std::strchr(line, ':')) {
        std::snprintf(model, sizeof model, "%.*s", int(std::strcspn(colon + 2, "\n")), colon + 2);
      }
      break;
    }
    std::fclose(file);
  }
  return model;
}

}  // namespace

int main(int argc, char** argv) {
  FILE* json = nullptr;
  if (argc == 3 && std::strcmp(argv[1], "--json") == 0) {
    json = std::fopen(argv[2], "a");
    if (json == nullptr) {
      fmt::print(stderr, "cannot write {}\n", argv[2]);
      return 1;
    }
  } else if (argc != 1) {
    fmt::print(stderr, "usage: {} [--json FILE]\n", argv[0]);
    return 2;
  }
  fmt::print("{:>5} {:>8}  {:<12} {:>24} {:>24} {:>10}\n", "page", "tree", "prompt",
             "match+insert us [max]", "evict us [max]", "of 1 ms");
  for (const int64_t page_size : {1, 16}) {
    for (const size_t tokens : {size_t{10'000}, size_t{100'000}, size_t{1'000'000}}) {
      Tree tree(page_size, tokens);
      for (const Row& row : {measure(tree, "new", 0), measure(tree, "half cached", 16384),
                             measure(tree, "all but 1", kPromptTokens - kChunk)}) {
        fmt::print("{:>5} {:>8}  {:<12} {:>14.1f} [{:>7.1f}] {:>14.1f} [{:>7.1f}] {:>9.0f}%\n",
                   page_size, tokens, row.prompt, row.match_insert.median, row.match_insert.max,
                   row.evict.median, row.evict.max, row.match_insert.median / 10);
        if (json == nullptr) continue;
        fmt::print(json,
                   R"({{"benchmark":"radix","machine":"{}","commit":"{}","page_size":{},)"
                   R"("tree_tokens":{},"prompt_tokens":{},"prompt":"{}","match_insert_us":{:.1f},)"
                   R"("match_insert_max_us":{:.1f},"evict_us":{:.1f},"evict_max_us":{:.1f},)"
                   R"("limit_us":1000}})"
                   "\n",
                   machine(), MINISGL_COMMIT, page_size, tokens, kPromptTokens, row.prompt,
                   row.match_insert.median, row.match_insert.max, row.evict.median, row.evict.max);
      }
    }
  }
  if (json != nullptr) std::fclose(json);
}
