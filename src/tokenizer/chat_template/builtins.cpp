#include "tokenizer/chat_template/builtins.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <memory>

#include "tokenizer/chat_template/operators.h"
#include "tokenizer/chat_template/raised.h"

namespace minisgl::jinja {
namespace {

Value make_range(Interpreter& interpreter, Arguments& arguments) {
  if (!arguments.keyword.empty()) fail("range() takes no keyword arguments");
  const auto& given = arguments.positional;
  if (given.empty() || given.size() > 3) {
    fail(fmt::format("range expected 1 to 3 arguments, got {}", given.size()));
  }
  std::vector<Integer> bounds;
  for (const Value& value : given) bounds.push_back(to_index(value));
  const Integer start = bounds.size() > 1 ? bounds[0] : 0;
  const Integer stop = bounds.size() > 1 ? bounds[1] : bounds[0];
  const Integer step = bounds.size() > 2 ? bounds[2] : 1;
  if (step == 0) fail("range() arg 3 must not be zero");
  const Integer span = step > 0 ? stop - start : start - stop;
  const Integer stride = step > 0 ? step : -step;
  const Integer count = span > 0 ? (span - 1) / stride + 1 : 0;
  const int64_t limit = interpreter.heap().limits().max_range;
  if (count > limit) fail_limit(fmt::format("range() of more than {} items", limit));
  std::vector<Value> items;
  for (Integer i = 0; i < count; ++i) items.emplace_back(start + i * step);
  Value range = interpreter.heap().list(std::move(items), ListKind::kRange);
  range.list().start = start;
  range.list().stop = stop;
  range.list().step = step;
  return range;
}

Value global_dict(Interpreter& interpreter, Arguments& arguments) {
  return make_dict(interpreter, "dict", arguments);
}

Value global_namespace(Interpreter& interpreter, Arguments& arguments) {
  return Value(make_dict(interpreter, "namespace", arguments), Type::kNamespace);
}

Value raise_exception(Interpreter& interpreter, Arguments& arguments) {
  const auto values = bind("raise_exception", arguments, {{"message"}});
  throw TemplateRaised(to_text(values[0]), interpreter.line());
}

// The local time has no zone and whole seconds, as datetime.now() formatted by C.
std::string without_zone(const std::string& format) {
  std::string out;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 >= format.size()) {
      out += format[i];
      continue;
    }
    const char c = format[++i];
    if (c == 'f') {
      out += "000000";
    } else if (c != 'z' && c != 'Z') {
      out += {'%', c};
    }
  }
  return out;
}

Value strftime_now(Interpreter& interpreter, Arguments& arguments) {
  const auto values = bind("strftime_now", arguments, {{"format"}});
  // The mark behind the format tells an empty result from one that did not fit.
  const std::string format = without_zone(text_of("strftime_now", values[0])) + ".";
  if (format.size() > 1024) fail_limit("strftime_now: the format is longer than 1024 bytes");
  const std::tm now = interpreter.clock()();
  std::string text(format.size() * 128, '\0');
  const size_t length = std::strftime(text.data(), text.size(), format.c_str(), &now);
  if (length == 0) fail("strftime_now: the result is too long");
  text.resize(length - 1);
  return interpreter.heap().text(std::move(text));
}

Value make_cycler(Interpreter& interpreter, Arguments& arguments) {
  if (arguments.positional.empty()) fail("at least one item has to be provided");
  Heap& heap = interpreter.heap();
  auto items = std::make_shared<std::vector<Value>>(arguments.positional);
  heap.charge(items->size() * sizeof(Value));
  auto position = std::make_shared<size_t>(0);
  DictObject* attributes = heap.new_dict();
  const auto show = [attributes, items, position](Heap& h) {
    h.set(*attributes, Value::constant("current"), (*items)[*position]);
  };
  const auto next = [items, position, show](Interpreter& in, Arguments&) {
    Value value = (*items)[*position];
    *position = (*position + 1) % items->size();
    show(in.heap());
    return value;
  };
  const auto reset = [position, show](Interpreter& in, Arguments&) {
    *position = 0;
    show(in.heap());
    return Value();
  };
  show(heap);
  heap.set(*attributes, Value::constant("next"), heap.new_native({"next", next}));
  heap.set(*attributes, Value::constant("reset"), heap.new_native({"reset", reset}));
  const auto refuse = [](Interpreter&, Arguments&) -> Value {
    fail("'Cycler' object is not callable");
  };
  return heap.new_native({"cycler", refuse, attributes});
}

Value make_joiner(Interpreter& interpreter, Arguments& arguments) {
  const auto values = bind("joiner", arguments, {{"sep", Value::constant(", ")}});
  auto used = std::make_shared<bool>(false);
  return interpreter.heap().new_native(
      {"joiner", [separator = values[0], used](Interpreter& in, Arguments&) {
         return std::exchange(*used, true) ? separator : in.heap().text("");
       }});
}

}  // namespace

std::vector<Value> bind(std::string_view function, Arguments& arguments,
                        std::initializer_list<Parameter> parameters) {
  if (arguments.positional.size() > parameters.size()) {
    fail(fmt::format("{}() takes at most {} argument(s), {} given", function, parameters.size(),
                     arguments.positional.size()));
  }
  std::vector<Value> values;
  size_t num_keywords = 0;
  for (const Parameter& parameter : parameters) {
    const size_t index = values.size();
    const auto named =
        std::find_if(arguments.keyword.begin(), arguments.keyword.end(),
                     [&](const auto& keyword) { return keyword.first == parameter.name; });
    const bool is_named = named != arguments.keyword.end();
    if (is_named) ++num_keywords;
    if (index < arguments.positional.size()) {
      if (is_named) {
        fail(fmt::format("{}() got multiple values for argument '{}'", function, parameter.name));
      }
      values.push_back(arguments.positional[index]);
    } else if (is_named) {
      values.push_back(named->second);
    } else if (parameter.fallback) {
      values.push_back(*parameter.fallback);
    } else {
      fail(fmt::format("{}() misses its argument '{}'", function, parameter.name));
    }
  }
  if (num_keywords < arguments.keyword.size()) {
    for (const auto& keyword : arguments.keyword) {
      const std::string& name = keyword.first;
      const bool known = std::any_of(parameters.begin(), parameters.end(),
                                     [&](const Parameter& p) { return name == p.name; });
      if (!known) fail(fmt::format("{}() got an unexpected keyword argument '{}'", function, name));
    }
    fail(fmt::format("{}() got a keyword argument twice", function));
  }
  return values;
}

const std::string& text_of(std::string_view function, const Value& value) {
  if (value.is(Type::kUndefined)) fail(value.str());
  if (!value.is(Type::kString)) {
    fail(fmt::format("{}: expected a string, found {}", function, type_name(value)));
  }
  return value.str();
}

DictObject* make_dict(Interpreter& interpreter, std::string_view function, Arguments& arguments) {
  if (arguments.positional.size() > 1) {
    fail(fmt::format("{} expected at most 1 argument, got {}", function,
                     arguments.positional.size()));
  }
  Heap& heap = interpreter.heap();
  DictObject* dict = heap.new_dict();
  if (!arguments.positional.empty()) {
    const Value& source = arguments.positional[0];
    if (source.is(Type::kDict)) {
      for (const auto& [key, value] : source.dict().entries) heap.set(*dict, key, value);
    } else {
      for (const Value& pair : iterate(heap, source)) {
        const auto items = iterate(heap, pair);
        if (items.size() != 2) fail("dictionary update sequence element must have length 2");
        heap.set(*dict, items[0], items[1]);
      }
    }
  }
  for (const auto& [name, value] : arguments.keyword) heap.set(*dict, heap.text(name), value);
  return dict;
}

DictObject* make_globals(Heap& heap) {
  static constexpr struct {
    const char* name;
    Value (*function)(Interpreter&, Arguments&);
  } kGlobals[] = {
      {"range", make_range},           {"dict", global_dict},
      {"namespace", global_namespace}, {"raise_exception", raise_exception},
      {"strftime_now", strftime_now},  {"cycler", make_cycler},
      {"joiner", make_joiner},
  };
  DictObject* globals = heap.new_dict();
  for (const auto& global : kGlobals) {
    heap.set(*globals, Value::constant(global.name),
             heap.new_native({global.name, global.function}));
  }
  return globals;
}

}  // namespace minisgl::jinja
