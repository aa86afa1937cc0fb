// The values of a template, with Python's meaning. Scalars and text live in the Value; lists, dicts
// and other things with identity belong to the Heap of one rendering and are only pointed at, so
// that cycles neither leak nor recurse when they go.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "minisgl/error.h"
#include "tokenizer/chat_template/limits.h"

namespace minisgl::jinja {

// Integers hold 126 bits and a sign: every JSON integer. More is an error, never a wrong value.
__extension__ typedef __int128 Integer;

// What went wrong in a template, before the line is known. The interpreter adds it.
struct Failure : std::runtime_error {
  Failure(ErrorKind error_kind, const std::string& message)
      : std::runtime_error(message), kind(error_kind) {}
  ErrorKind kind;
};
[[noreturn]] void fail(const std::string& message);        // kInvalidArgument
[[noreturn]] void fail_limit(const std::string& message);  // kInvalidArgument, a limit was met

class Heap;
struct ListObject;
struct DictObject;
struct MacroObject;
struct LoopObject;
struct NativeObject;
struct MethodObject;

struct TextObject {
  std::string text;
  bool markup = false;   // marked safe: joins escape what is not
  Heap* heap = nullptr;  // whose account the bytes are on; none for the template's own constants
  TextObject(std::string t, bool is_markup, Heap* account);
  ~TextObject();
  TextObject(const TextObject&) = delete;
  TextObject& operator=(const TextObject&) = delete;
};

enum class Type : uint8_t {
  kUndefined,  // text: what is undefined, for the error message
  kNone,
  kBool,
  kInt,
  kFloat,
  kString,
  kList,  // and its kin, see ListKind
  kDict,
  kNamespace,
  kMacro,
  kLoop,
  kNative,  // a global function, cycler or joiner
  kMethod,  // bound to its object
};

class Value {
 public:
  Value() : type_(Type::kNone), int_(0) {}
  Value(bool b) : type_(Type::kBool), int_(b) {}       // NOLINT: scalars convert as in Python
  Value(int i) : type_(Type::kInt), int_(i) {}         // NOLINT
  Value(int64_t i) : type_(Type::kInt), int_(i) {}     // NOLINT
  Value(Integer i) : type_(Type::kInt), int_(i) {}     // NOLINT
  Value(double d) : type_(Type::kFloat), float_(d) {}  // NOLINT
  Value(const char*) = delete;
  Value(ListObject* list) : type_(Type::kList), list_(list) {}                    // NOLINT
  Value(DictObject* dict, Type type = Type::kDict) : type_(type), dict_(dict) {}  // NOLINT
  Value(MacroObject* macro) : type_(Type::kMacro), macro_(macro) {}               // NOLINT
  Value(LoopObject* loop) : type_(Type::kLoop), loop_(loop) {}                    // NOLINT
  Value(NativeObject* native) : type_(Type::kNative), native_(native) {}          // NOLINT
  Value(MethodObject* method) : type_(Type::kMethod), method_(method) {}          // NOLINT

  // Text that is on nobody's account: constants and messages, bounded by the template's size.
  static Value constant(std::string text);
  static Value undefined(std::string message);
  static Value text(std::shared_ptr<const TextObject> object);

  Type type() const { return type_; }
  bool is(Type type) const { return type_ == type; }
  bool is_number() const {
    return type_ == Type::kBool || type_ == Type::kInt || type_ == Type::kFloat;
  }
  bool is_integral() const { return type_ == Type::kBool || type_ == Type::kInt; }
  bool as_bool() const { return int_ != 0; }
  Integer as_int() const { return int_; }  // kBool and kInt
  double as_float() const { return type_ == Type::kFloat ? float_ : static_cast<double>(int_); }
  const std::string& str() const { return text_->text; }  // kString; kUndefined: its message
  bool is_markup() const { return type_ == Type::kString && text_->markup; }
  ListObject& list() const { return *list_; }
  DictObject& dict() const { return *dict_; }  // kDict and kNamespace
  MacroObject& macro() const { return *macro_; }
  LoopObject& loop() const { return *loop_; }
  NativeObject& native() const { return *native_; }
  MethodObject& method() const { return *method_; }
  const void* identity() const { return list_; }

 private:
  Type type_;
  union {
    Integer int_;
    double float_;
    ListObject* list_;
    DictObject* dict_;
    MacroObject* macro_;
    LoopObject* loop_;
    NativeObject* native_;
    MethodObject* method_;
  };
  std::shared_ptr<const TextObject> text_;
};

enum class ListKind : uint8_t { kList, kTuple, kGroup, kRange, kGenerator, kItems, kKeys, kValues };

struct ListObject {
  ListKind kind = ListKind::kList;
  std::vector<Value> items;
  bool consumed = false;                     // kGenerator: gives its items once
  Integer start = 0, stop = 0, step = 1;     // kRange: what repr shows
  const char* generator_name = "generator";  // kGenerator: what repr shows
};

// Keeps the order of insertion. Keys are hashable values; 1, 1.0 and True are one key.
struct DictObject {
  std::vector<std::pair<Value, Value>> entries;

  // Null where absent. Fails on an unhashable key.
  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;
  void set(const Value& key, Value value);
  void erase(size_t position);
  size_t position_of(const Value& key) const;  // entries.size() where absent
  void clear();

 private:
  std::unordered_multimap<size_t, size_t> index_;  // hash -> position
};

// Positional and keyword arguments of one call.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> keyword;
};

class Interpreter;
using NativeFunction = std::function<Value(Interpreter&, Arguments&)>;
struct NativeObject {
  std::string name;
  NativeFunction function;
  DictObject* attributes = nullptr;  // cycler.current and the like; may be null
};

struct MethodObject {
  Value self;
  std::string name;
};

// Owns every object of one rendering and keeps its accounts: steps, bytes, sizes.
// Not thread-safe; must outlive the values.
class Heap {
 public:
  explicit Heap(const TemplateLimits& limits) : limits_(limits) {}
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  const TemplateLimits& limits() const { return limits_; }

  Value text(std::string text, bool markup = false);
  Value list(std::vector<Value> items, ListKind kind = ListKind::kList);
  ListObject* new_list(ListKind kind = ListKind::kList);
  DictObject* new_dict();
  // `object` lives as long as the heap.
  NativeObject* new_native(NativeObject object);
  MethodObject* new_method(MethodObject object);
  void append(ListObject& list, Value value);
  void set(DictObject& dict, const Value& key, Value value);

  // Work done: fails when the template has used up its steps.
  void step(int64_t count = 1) {
    steps_ += count;
    if (steps_ > limits_.max_steps) out_of_steps();
  }
  void touch_bytes(size_t bytes) { step(static_cast<int64_t>(bytes / 64) + 1); }
  // Fails before something of that size is made.
  void check_text_size(size_t bytes) const;
  void charge(size_t bytes);
  void give_back(size_t bytes) { bytes_ -= bytes; }

 private:
  [[noreturn]] void out_of_steps() const;

  TemplateLimits limits_;
  int64_t steps_ = 0;
  size_t bytes_ = 0;
  std::deque<ListObject> lists_;
  std::deque<DictObject> dicts_;
  std::deque<NativeObject> natives_;
  std::deque<MethodObject> methods_;
};

// Python's meaning of a value.
bool truthy(const Value& value);
// type(value).__name__
std::string type_name(const Value& value);
// str() and repr(). Fail where values are nested too deeply.
std::string to_text(const Value& value);
std::string to_repr(const Value& value);
bool equals(const Value& a, const Value& b);
// a is b
bool same(const Value& a, const Value& b);
// a < b; fails on types that Python does not order.
bool less_than(const Value& a, const Value& b, const char* op = "<");
size_t hash_of(const Value& value);

std::string integer_text(Integer value);
// Python's repr of a float: the shortest digits that read back.
std::string float_text(double value);
// The integer part of a finite double; fails outside of 126 bits.
Integer to_integer(double value);

}  // namespace minisgl::jinja
