// json.dumps: text as it is (or ASCII only), no HTML escapes, Python's spellings of numbers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tokenizer/chat_template/builtins.h"
#include "tokenizer/chat_template/python_text.h"

namespace minisgl::jinja {
namespace {

constexpr int kMaxNesting = 200;

class JsonWriter {
 public:
  JsonWriter(Heap& heap, const JsonStyle& style) : heap_(heap), style_(style) {}

  std::string write(const Value& value) {
    add(value, 0);
    return std::move(out_);
  }

 private:
  void add(const Value& value, int depth) {
    if (depth > kMaxNesting) fail_limit("tojson: a value is nested too deeply, or contains itself");
    heap_.step();
    heap_.check_text_size(out_.size());
    switch (value.type()) {
      case Type::kNone:
        out_ += "null";
        return;
      case Type::kBool:
        out_ += value.as_bool() ? "true" : "false";
        return;
      case Type::kInt:
        out_ += integer_text(value.as_int());
        return;
      case Type::kFloat:
        add_float(value.as_float());
        return;
      case Type::kString:
        add_text(value.str());
        return;
      case Type::kDict:
        return add_dict(value.dict(), depth);
      case Type::kList:
        if (value.list().kind <= ListKind::kGroup) return add_list(value.list(), depth);
        [[fallthrough]];
      default:
        fail(fmt::format("Object of type {} is not JSON serializable", type_name(value)));
    }
  }

  void add_float(double value) {
    if (std::isnan(value)) {
      out_ += "NaN";
    } else if (std::isinf(value)) {
      out_ += value < 0 ? "-Infinity" : "Infinity";
    } else {
      out_ += float_text(value);
    }
  }

  void add_unit(uint32_t unit) { out_ += fmt::format("\\u{:04x}", unit); }

  void add_text(std::string_view text) {
    heap_.touch_bytes(text.size());
    out_ += '"';
    for (size_t pos = 0; pos < text.size();) {
      const size_t start = pos;
      const char32_t c = next_code_point(text, pos);
      static constexpr std::string_view kPlain = "\"\\\n\r\t\b\f";
      static constexpr std::string_view kEscaped = "\"\\nrtbf";
      const size_t short_form =
          c < 0x80 ? kPlain.find(static_cast<char>(c)) : std::string_view::npos;
      if (short_form != std::string_view::npos) {
        out_ += '\\';
        out_ += kEscaped[short_form];
      } else if (c < 0x20 || (style_.ensure_ascii && c >= 0x7F && c < 0x10000)) {
        add_unit(c);
      } else if (style_.ensure_ascii && c >= 0x10000) {
        add_unit(0xD800 + ((c - 0x10000) >> 10));
        add_unit(0xDC00 + ((c - 0x10000) & 0x3FF));
      } else {
        out_ += text.substr(start, pos - start);
      }
    }
    out_ += '"';
  }

  void new_line(int depth) {
    if (!style_.indent) return;
    out_ += '\n';
    heap_.check_text_size(out_.size() + style_.indent->size() * static_cast<size_t>(depth));
    for (int i = 0; i < depth; ++i) out_ += *style_.indent;
  }

  void add_list(const ListObject& list, int depth) {
    out_ += '[';
    for (size_t i = 0; i < list.items.size(); ++i) {
      if (i > 0) out_ += style_.item_separator;
      new_line(depth + 1);
      add(list.items[i], depth + 1);
    }
    if (!list.items.empty()) new_line(depth);
    out_ += ']';
  }

  static std::string key_text(const Value& key) {
    switch (key.type()) {
      case Type::kString:
        return key.str();
      case Type::kNone:
        return "null";
      case Type::kBool:
        return key.as_bool() ? "true" : "false";
      case Type::kInt:
      case Type::kFloat:
        return to_text(key);
      default:
        fail(fmt::format("keys must be str, int, float, bool or None, not {}", type_name(key)));
    }
  }

  void add_dict(const DictObject& dict, int depth) {
    std::vector<const std::pair<Value, Value>*> entries;
    for (const auto& entry : dict.entries) entries.push_back(&entry);
    if (style_.sort_keys) {
      std::stable_sort(entries.begin(), entries.end(),
                       [](const auto* a, const auto* b) { return less_than(a->first, b->first); });
    }
    out_ += '{';
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) out_ += style_.item_separator;
      new_line(depth + 1);
      add_text(key_text(entries[i]->first));
      out_ += style_.key_separator;
      add(entries[i]->second, depth + 1);
    }
    if (!entries.empty()) new_line(depth);
    out_ += '}';
  }

  Heap& heap_;
  const JsonStyle& style_;
  std::string out_;
};

}  // namespace

std::string to_json(Heap& heap, const Value& value, const JsonStyle& style) {
  return JsonWriter(heap, style).write(value);
}

}  // namespace minisgl::jinja
