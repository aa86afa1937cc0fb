#include "tokenizer/chat_template/chat_template.h"

#include <new>

#include "tokenizer/chat_template/interpreter.h"
#include "tokenizer/chat_template/lexer.h"
#include "tokenizer/chat_template/parser.h"
#include "tokenizer/chat_template/python_text.h"
#include "utils/error.h"

namespace minisgl {
namespace {

using jinja::DictObject;
using jinja::Heap;
using jinja::Value;

constexpr int kMaxJsonDepth = 150;

std::tm local_time() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  return parts;
}

Value text_value(Heap& heap, const std::string& text) {
  if (const auto at = jinja::invalid_utf8_at(text)) {
    jinja::fail(fmt::format("a variable's text is not UTF-8 at byte {}", *at));
  }
  return heap.text(text);
}

Value to_value(Heap& heap, const Json& json, int depth) {
  if (depth > kMaxJsonDepth) {
    jinja::fail_limit(fmt::format("variables are nested deeper than {} levels", kMaxJsonDepth));
  }
  switch (json.type()) {
    case Json::value_t::boolean:
      return json.get<bool>();
    case Json::value_t::number_integer:
      return json.get<int64_t>();
    case Json::value_t::number_unsigned:
      return static_cast<jinja::Integer>(json.get<uint64_t>());
    case Json::value_t::number_float:
      return json.get<double>();
    case Json::value_t::string:
      return text_value(heap, json.get_ref<const std::string&>());
    case Json::value_t::array: {
      jinja::ListObject* list = heap.new_list();
      for (const Json& item : json) heap.append(*list, to_value(heap, item, depth + 1));
      return list;
    }
    case Json::value_t::object: {
      DictObject* dict = heap.new_dict();
      for (const auto& [key, item] : json.items()) {
        heap.set(*dict, text_value(heap, key), to_value(heap, item, depth + 1));
      }
      return dict;
    }
    default:
      return Value();
  }
}

}  // namespace

ChatTemplate::ChatTemplate(std::string source, TemplateLimits limits, Clock clock)
    : source_(std::move(source)), limits_(limits), clock_(clock ? std::move(clock) : local_time) {
  if (source_.size() > limits_.max_source_bytes) {
    throw_error(ErrorKind::kInvalidArgument, "chat template: {} bytes, at most {} are allowed",
                source_.size(), limits_.max_source_bytes);
  }
  if (const auto at = jinja::invalid_utf8_at(source_)) {
    throw_error(ErrorKind::kInvalidArgument, "chat template: not UTF-8 at byte {}", *at);
  }
  ast_ = std::make_shared<const jinja::Ast>(jinja::parse_template(source_));
}

std::string ChatTemplate::render(const Json& variables) const {
  if (!variables.is_object()) {
    throw_error(ErrorKind::kInvalidArgument, "chat template: variables must be an object, found {}",
                variables.type_name());
  }
  Heap heap(limits_);
  int line = 1;
  try {
    const Value context = to_value(heap, variables, 0);
    jinja::Interpreter interpreter(*ast_, heap, context.dict(), clock_);
    try {
      return interpreter.run();
    } catch (const jinja::Failure&) {
      line = interpreter.line();
      throw;
    }
  } catch (const jinja::Failure& failure) {
    jinja::throw_template_error(failure.kind, line, failure.what());
  } catch (const std::bad_alloc&) {
    throw_error(ErrorKind::kResource, "chat template: out of memory");
  }
}

}  // namespace minisgl
