#include "tokenizer/chat_template/interpreter.h"

#include <fmt/format.h>

#include "tokenizer/chat_template/builtins.h"
#include "tokenizer/chat_template/operators.h"
#include "tokenizer/chat_template/python_text.h"

namespace minisgl::jinja {

class Interpreter::DepthGuard {
 public:
  explicit DepthGuard(Interpreter& interpreter) : depth_(interpreter.depth_) {
    if (++depth_ > interpreter.heap_.limits().max_depth) {
      --depth_;
      fail_limit(fmt::format("nested deeper than {} levels; does a macro call itself for ever?",
                             interpreter.heap_.limits().max_depth));
    }
  }
  ~DepthGuard() { --depth_; }
  DepthGuard(const DepthGuard&) = delete;
  DepthGuard& operator=(const DepthGuard&) = delete;

 private:
  int& depth_;
};

// Collects what is printed while it lives.
class Interpreter::Capture {
 public:
  explicit Capture(Interpreter& interpreter) : interpreter_(interpreter), outer_(interpreter.out_) {
    interpreter.out_ = &text_;
  }
  ~Capture() {
    interpreter_.out_ = outer_;
    interpreter_.heap_.give_back(text_.size());
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  Value value() { return interpreter_.heap_.text(text_); }

 private:
  Interpreter& interpreter_;
  std::string* outer_;
  std::string text_;
};

// Enters a new scope below `parent` and comes back to the one before.
class Interpreter::ScopeGuard {
 public:
  ScopeGuard(Interpreter& interpreter, Scope* parent)
      : interpreter_(interpreter), outer_(interpreter.scope_) {
    interpreter.scope_ = interpreter.new_scope(parent);
  }
  ~ScopeGuard() {
    interpreter_.release(interpreter_.scope_);
    interpreter_.scope_ = outer_;
  }
  ScopeGuard(const ScopeGuard&) = delete;
  ScopeGuard& operator=(const ScopeGuard&) = delete;

 private:
  Interpreter& interpreter_;
  Scope* outer_;
};

namespace {

void set_variable(Scope& scope, std::string_view name, const Value& value) {
  for (auto& [key, old] : scope.variables) {
    if (key == name) {
      old = value;
      return;
    }
  }
  scope.variables.emplace_back(name, value);
}

// How Jinja names an object in its messages.
std::string object_name(const Value& object) {
  if (object.is(Type::kNone)) return "None";
  if (object.is(Type::kNamespace)) return "jinja2.utils.Namespace object";
  return type_name(object) + " object";
}

}  // namespace

bool LoopObject::fetch() {
  while (next_ < source.size()) {
    Value item = std::move(source[next_++]);
    if (accepts && !accepts(item)) continue;
    ahead_.push_back(std::move(item));
    return true;
  }
  return false;
}

bool LoopObject::advance() {
  if (ahead_.empty() && !fetch()) return false;
  previous = std::move(current);
  current = std::move(ahead_.front());
  ahead_.pop_front();
  ++index0;
  return true;
}

const Value* LoopObject::peek() {
  if (ahead_.empty() && !fetch()) return nullptr;
  return &ahead_.front();
}

int64_t LoopObject::length() {
  while (fetch()) {
  }
  return index0 + 1 + static_cast<int64_t>(ahead_.size());
}

Interpreter::Interpreter(const Ast& ast, Heap& heap, const DictObject& context, const Clock& clock)
    : ast_(ast), heap_(heap), context_(context), clock_(clock), globals_(make_globals(heap)) {}

std::string Interpreter::run() {
  std::string text;
  out_ = &text;
  scope_ = new_scope(nullptr);
  exec(ast_.root);
  return text;
}

Scope* Interpreter::new_scope(Scope* parent) {
  Scope* scope = nullptr;
  if (free_scopes_.empty()) {
    heap_.charge(sizeof(Scope));
    scope = &scopes_.emplace_back();
  } else {
    scope = free_scopes_.back();
    free_scopes_.pop_back();
  }
  scope->parent = parent;
  return scope;
}

void Interpreter::release(Scope* scope) {
  if (scope->captured) return;
  scope->variables.clear();
  free_scopes_.push_back(scope);
}

void Interpreter::emit(std::string_view text) {
  heap_.check_text_size(out_->size() + text.size());
  heap_.touch_bytes(text.size());
  heap_.charge(text.size());
  out_->append(text);
}

// ---- expressions

Value Interpreter::eval(const Expr& expr) {
  const DepthGuard depth(*this);
  heap_.step();
  const int outer_line = std::exchange(line_, expr.line);
  Value value = std::visit([this](const auto& node) { return eval(node); }, expr.node);
  line_ = outer_line;  // not after a failure: the line stays where it happened
  return value;
}

Value Interpreter::eval(const ConstExpr& node) { return node.value; }

Value Interpreter::eval(const NameExpr& node) {
  for (const Scope* scope = scope_; scope != nullptr; scope = scope->parent) {
    for (const auto& [name, value] : scope->variables) {
      if (name == node.name) return value;
    }
  }
  if (const Value* value = context_.find(node.name)) return *value;
  if (const Value* value = globals_->find(node.name)) return *value;
  return Value::undefined(fmt::format("'{}' is undefined", node.name));
}

Value Interpreter::eval(const NamespaceTarget& node) {
  fail(fmt::format("'{}.{}' can only be assigned to", node.name, node.attribute));
}

std::vector<Value> Interpreter::eval_all(const std::vector<const Expr*>& exprs) {
  std::vector<Value> values;
  values.reserve(exprs.size());
  for (const Expr* expr : exprs) values.push_back(eval(*expr));
  return values;
}

Value Interpreter::eval(const TupleExpr& node) {
  return heap_.list(eval_all(node.items), ListKind::kTuple);
}

Value Interpreter::eval(const ListExpr& node) { return heap_.list(eval_all(node.items)); }

Value Interpreter::eval(const DictExpr& node) {
  DictObject* dict = heap_.new_dict();
  for (const auto& [key, value] : node.items) {
    const Value k = eval(*key);
    heap_.set(*dict, k, eval(*value));
  }
  return dict;
}

Value Interpreter::eval(const UnaryExpr& node) {
  const Value value = eval(*node.operand);
  if (node.negative) return negate(value);
  if (value.is(Type::kUndefined)) fail(value.str());
  if (!value.is_number()) {
    fail(fmt::format("bad operand type for unary +: '{}'", type_name(value)));
  }
  return value.is(Type::kBool) ? Value(value.as_int()) : value;
}

Value Interpreter::eval(const BinaryExpr& node) {
  const Value left = eval(*node.left);
  return binary(heap_, node.op, left, eval(*node.right));
}

Value Interpreter::eval(const LogicExpr& node) {
  Value left = eval(*node.left);
  if (truthy(left) != node.is_and) return left;
  return eval(*node.right);
}

Value Interpreter::eval(const NotExpr& node) { return !truthy(eval(*node.operand)); }

bool Interpreter::compare(CompareOp op, const Value& left, const Value& right) {
  switch (op) {
    case CompareOp::kEq:
      return equals(left, right);
    case CompareOp::kNe:
      return !equals(left, right);
    case CompareOp::kLt:
      return less_than(left, right, "<");
    case CompareOp::kGt:
      return less_than(right, left, ">");
    case CompareOp::kLe:
      return less_than(left, right, "<=") || equals(left, right);
    case CompareOp::kGe:
      return less_than(right, left, ">=") || equals(left, right);
    case CompareOp::kIn:
      return contains(heap_, right, left);
    case CompareOp::kNotIn:
      return !contains(heap_, right, left);
  }
  return false;
}

Value Interpreter::eval(const CompareExpr& node) {
  Value left = eval(*node.first);
  for (const auto& [op, expr] : node.rest) {
    Value right = eval(*expr);
    if (!compare(op, left, right)) return false;
    left = std::move(right);
  }
  return true;
}

Value Interpreter::eval(const ConcatExpr& node) {
  std::string text;
  for (const Value& value : eval_all(node.items)) {
    text += to_text(value);
    heap_.check_text_size(text.size());
  }
  return heap_.text(std::move(text));
}

Value Interpreter::eval(const ConditionalExpr& node) {
  if (truthy(eval(*node.condition))) return eval(*node.then);
  if (node.otherwise != nullptr) return eval(*node.otherwise);
  return Value::undefined(fmt::format(
      "the inline if-expression on line {} evaluated to false and no else section was defined.",
      line_));
}

Value Interpreter::eval(const AttributeExpr& node) {
  return attribute(eval(*node.object), node.name);
}

Value Interpreter::eval(const ItemExpr& node) {
  const Value object = eval(*node.object);
  return item(object, eval(*node.index));
}

Value Interpreter::eval(const SliceExpr& node) {
  const Value object = eval(*node.object);
  Value bounds[3];
  const Expr* exprs[3] = {node.start, node.stop, node.step};
  for (int i = 0; i < 3; ++i) {
    if (exprs[i] != nullptr) bounds[i] = eval(*exprs[i]);
  }
  if (auto result = slice(heap_, object, &bounds[0], &bounds[1], &bounds[2])) return *result;
  fail(fmt::format("'{}' object cannot be sliced", type_name(object)));
}

Arguments Interpreter::eval_arguments(const CallArguments& arguments) {
  Arguments values;
  values.positional = eval_all(arguments.positional);
  for (const auto& [name, expr] : arguments.keyword) values.keyword.emplace_back(name, eval(*expr));
  if (arguments.star != nullptr) {
    for (Value& value : iterate(heap_, eval(*arguments.star))) {
      values.positional.push_back(std::move(value));
    }
  }
  if (arguments.double_star != nullptr) {
    const Value mapping = eval(*arguments.double_star);
    if (!mapping.is(Type::kDict)) fail("argument after ** must be a mapping");
    for (const auto& [key, value] : mapping.dict().entries) {
      values.keyword.emplace_back(text_of("keywords", key), value);
    }
  }
  return values;
}

Value Interpreter::eval(const CallExpr& node) {
  const Value callee = eval(*node.callee);
  Arguments arguments = eval_arguments(node.arguments);
  return call(callee, arguments);
}

Value Interpreter::eval(const FilterExpr& node) {
  const Value input = node.input != nullptr ? eval(*node.input) : filter_inputs_.back();
  Arguments arguments = eval_arguments(node.arguments);
  return call_filter(node.name, input, arguments);
}

Value Interpreter::eval(const TestExpr& node) {
  const Value input = eval(*node.input);
  Arguments arguments = eval_arguments(node.arguments);
  return call_test(node.name, input, arguments);
}

Value Interpreter::call_filter(const std::string& name, const Value& input, Arguments& arguments) {
  const Filter filter = find_filter(name);
  if (filter == nullptr)
    throw Failure(ErrorKind::kUnsupported, fmt::format("no filter named '{}'", name));
  heap_.step();
  return filter(*this, input, arguments);
}

bool Interpreter::call_test(const std::string& name, const Value& input, Arguments& arguments) {
  const Test test = find_test(name);
  if (test == nullptr)
    throw Failure(ErrorKind::kUnsupported, fmt::format("no test named '{}'", name));
  heap_.step();
  return test(*this, input, arguments);
}

Value Interpreter::call(const Value& callee, Arguments& arguments) {
  const DepthGuard depth(*this);
  heap_.step();
  switch (callee.type()) {
    case Type::kUndefined:
      fail(callee.str());
    case Type::kMacro:
      return call_macro(callee.macro(), arguments);
    case Type::kNative:
      return callee.native().function(*this, arguments);
    case Type::kMethod:
      return call_method(*this, callee.method(), arguments);
    case Type::kLoop:
      return call_loop(callee.loop(), arguments);
    default:
      fail(fmt::format("'{}' object is not callable", type_name(callee)));
  }
}

Value Interpreter::missing(const Value& object, const Value& name) {
  if (name.is(Type::kString)) {
    return Value::undefined(
        fmt::format("'{}' has no attribute {}", object_name(object), repr_text(name.str())));
  }
  return Value::undefined(fmt::format("{} has no element {}", object_name(object), to_repr(name)));
}

Value Interpreter::attribute(const Value& object, const std::string& name) {
  switch (object.type()) {
    case Type::kUndefined:
      fail(object.str());
    case Type::kLoop:
      return loop_attribute(object.loop(), object, name);
    case Type::kNamespace:
      if (const Value* value = object.dict().find(name)) return *value;
      break;
    case Type::kMacro:
      if (name == "name") return heap_.text(object.macro().name);
      break;
    case Type::kNative:
      if (object.native().attributes == nullptr) break;
      if (const Value* value = object.native().attributes->find(name)) return *value;
      break;
    default:
      if (has_method(object, name)) return heap_.new_method({object, name});
      if (object.is(Type::kDict)) {
        if (const Value* value = object.dict().find(name)) return *value;
      } else if (object.is(Type::kList) && object.list().kind == ListKind::kGroup) {
        if (name == "grouper") return object.list().items[0];
        if (name == "list") return object.list().items[1];
      }
  }
  return missing(object, Value::constant(name));
}

Value Interpreter::item(const Value& object, const Value& key) {
  if (object.is(Type::kUndefined)) fail(object.str());
  if (object.is(Type::kDict)) {
    const bool hashable =
        !key.is(Type::kDict) && !(key.is(Type::kList) && key.list().kind == ListKind::kList);
    if (hashable) {
      if (const Value* value = object.dict().find(key)) return *value;
    }
  } else if (auto value = element(heap_, object, key)) {
    return *value;
  }
  if (!key.is(Type::kString)) return missing(object, key);
  if (object.is(Type::kDict)) {
    return has_method(object, key.str()) ? Value(heap_.new_method({object, key.str()}))
                                         : missing(object, key);
  }
  return attribute(object, key.str());
}

Value Interpreter::loop_attribute(LoopObject& loop, const Value& self, const std::string& name) {
  const int64_t index0 = loop.index0;
  if (name == "index") return index0 + 1;
  if (name == "index0") return index0;
  if (name == "first") return index0 == 0;
  if (name == "last") return loop.peek() == nullptr;
  if (name == "length") return loop.length();
  if (name == "revindex") return loop.length() - index0;
  if (name == "revindex0") return loop.length() - index0 - 1;
  if (name == "depth") return loop.depth0 + 1;
  if (name == "depth0") return loop.depth0;
  if (name == "previtem") {
    return index0 == 0 ? Value::undefined("there is no previous item") : loop.previous;
  }
  if (name == "nextitem") {
    const Value* next = loop.peek();
    return next == nullptr ? Value::undefined("there is no next item") : *next;
  }
  if (name == "cycle" || name == "changed") return heap_.new_method({self, name});
  return missing(self, Value::constant(name));
}

// ---- statements

Interpreter::Flow Interpreter::exec(const Block& block) {
  for (const Stmt* stmt : block) {
    if (const Flow flow = exec(*stmt); flow != Flow::kNormal) return flow;
  }
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::exec(const Stmt& stmt) {
  const DepthGuard depth(*this);
  heap_.step();
  line_ = stmt.line;
  return std::visit([this](const auto& node) { return exec(node); }, stmt.node);
}

Interpreter::Flow Interpreter::exec(const TextStmt& node) {
  emit(node.text);
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::exec(const PrintStmt& node) {
  const Value value = eval(*node.value);
  if (value.is(Type::kString)) {
    emit(value.str());
  } else {
    emit(to_text(value));
  }
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::exec(const IfStmt& node) {
  for (const auto& [condition, body] : node.branches) {
    if (truthy(eval(*condition))) return exec(body);
  }
  return exec(node.otherwise);
}

Interpreter::Flow Interpreter::exec(const ForStmt& node) {
  return run_loop(node, eval(*node.iterable), 0);
}

Interpreter::Flow Interpreter::run_loop(const ForStmt& node, const Value& iterable, int depth) {
  heap_.charge(sizeof(LoopObject));
  LoopObject& loop = loops_.emplace_back();
  loop.source = iterate(heap_, iterable);
  loop.statement = &node;
  loop.scope = scope_;
  loop.depth0 = depth;
  Scope* const outer = scope_;
  if (node.condition != nullptr) {
    loop.accepts = [this, &node, outer](const Value& item) {
      const ScopeGuard guard(*this, outer);
      assign(*node.target, item);
      return truthy(eval(*node.condition));
    };
  }
  bool completed = false;  // some pass of the body reached its end: no else
  while (loop.advance()) {
    heap_.step();
    const ScopeGuard guard(*this, outer);
    set_variable(*scope_, "loop", Value(&loop));
    assign(*node.target, loop.current);
    const Flow flow = exec(node.body);
    if (flow == Flow::kBreak) break;
    completed = completed || flow == Flow::kNormal;
  }
  loop.accepts = nullptr;
  loop.source = {};
  if (completed || node.otherwise.empty()) return Flow::kNormal;
  const ScopeGuard guard(*this, outer);
  return exec(node.otherwise);
}

Value Interpreter::call_loop(LoopObject& loop, Arguments& arguments) {
  if (!loop.statement->recursive) {
    fail("The loop must have the 'recursive' marker to be called recursively.");
  }
  const auto values = bind("loop", arguments, {{"iterable"}});
  Capture capture(*this);
  Scope* const outer = std::exchange(scope_, loop.scope);
  run_loop(*loop.statement, values[0], loop.depth0 + 1);
  scope_ = outer;
  return capture.value();
}

void Interpreter::assign(const Expr& target, const Value& value) {
  if (const auto* name = std::get_if<NameExpr>(&target.node)) {
    set_variable(*scope_, name->name, value);
  } else if (const auto* tuple = std::get_if<TupleExpr>(&target.node)) {
    unpack(*tuple, value);
  } else if (const auto* member = std::get_if<NamespaceTarget>(&target.node)) {
    const Value object = eval(NameExpr{member->name});
    if (!object.is(Type::kNamespace)) fail("cannot assign attribute on non-namespace object");
    heap_.set(object.dict(), Value::constant(member->attribute), value);
  } else {
    fail("cannot assign to this expression");
  }
}

void Interpreter::unpack(const TupleExpr& targets, const Value& value) {
  if (!is_iterable(value)) {
    fail(fmt::format("cannot unpack non-iterable {} object", type_name(value)));
  }
  const auto items = iterate(heap_, value);
  if (items.size() > targets.items.size()) {
    fail(fmt::format("too many values to unpack (expected {})", targets.items.size()));
  }
  if (items.size() < targets.items.size()) {
    fail(fmt::format("not enough values to unpack (expected {}, got {})", targets.items.size(),
                     items.size()));
  }
  for (size_t i = 0; i < items.size(); ++i) assign(*targets.items[i], items[i]);
}

Interpreter::Flow Interpreter::exec(const SetStmt& node) {
  assign(*node.target, eval(*node.value));
  return Flow::kNormal;
}

Value Interpreter::render_scoped(const Block& block) {
  Capture capture(*this);
  const ScopeGuard guard(*this, scope_);
  exec(block);
  return capture.value();
}

Value Interpreter::filter_text(const Expr& filter, const Value& text) {
  filter_inputs_.push_back(text);
  Value value = eval(filter);
  filter_inputs_.pop_back();
  return value;
}

Interpreter::Flow Interpreter::exec(const SetBlockStmt& node) {
  Value value = render_scoped(node.body);
  if (node.filter != nullptr) value = filter_text(*node.filter, value);
  assign(*node.target, value);
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::exec(const FilterStmt& node) {
  emit(to_text(filter_text(*node.filter, render_scoped(node.body))));
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::exec(const WithStmt& node) {
  std::vector<Value> values;  // all of them see the scope outside
  for (const auto& variable : node.variables) values.push_back(eval(*variable.second));
  const ScopeGuard guard(*this, scope_);
  for (size_t i = 0; i < values.size(); ++i) assign(*node.variables[i].first, values[i]);
  return exec(node.body);
}

Value Interpreter::make_macro(const MacroBody& body) {
  heap_.charge(sizeof(MacroObject));
  for (Scope* scope = scope_; scope != nullptr && !scope->captured; scope = scope->parent) {
    scope->captured = true;
  }
  return &macros_.emplace_back(MacroObject{body.name, &body, scope_});
}

Interpreter::Flow Interpreter::exec(const MacroStmt& node) {
  set_variable(*scope_, node.macro.name, make_macro(node.macro));
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::exec(const CallStmt& node) {
  const auto& call_expr = std::get<CallExpr>(node.call->node);
  const Value callee = eval(*call_expr.callee);
  Arguments arguments = eval_arguments(call_expr.arguments);
  arguments.keyword.emplace_back("caller", make_macro(node.caller));
  emit(to_text(call(callee, arguments)));
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::exec(const ScopeStmt& node) {
  const ScopeGuard guard(*this, scope_);
  return exec(node.body);
}

Interpreter::Flow Interpreter::exec(const LoopControlStmt& node) {
  return node.is_break ? Flow::kBreak : Flow::kContinue;
}

// ---- macros

namespace {

// Takes the keyword `name` out of the arguments.
std::optional<Value> take_keyword(Arguments& arguments, std::string_view name) {
  for (auto it = arguments.keyword.begin(); it != arguments.keyword.end(); ++it) {
    if (it->first != name) continue;
    Value value = std::move(it->second);
    arguments.keyword.erase(it);
    return value;
  }
  return std::nullopt;
}

}  // namespace

// The value of a parameter that no positional argument gave.
Value Interpreter::bind_parameter(const MacroBody& body, size_t index, Arguments& arguments) {
  if (auto value = take_keyword(arguments, body.parameters[index])) return *value;
  const size_t num_required = body.parameters.size() - body.defaults.size();
  if (index >= num_required) return eval(*body.defaults[index - num_required]);
  return Value::undefined(fmt::format("parameter '{}' was not provided", body.parameters[index]));
}

Value Interpreter::call_macro(MacroObject& macro, Arguments& arguments) {
  const MacroBody& body = *macro.body;
  Capture capture(*this);
  const ScopeGuard guard(*this, macro.scope);
  bool explicit_caller = false;
  const size_t num_given = std::min(arguments.positional.size(), body.parameters.size());
  for (size_t i = 0; i < body.parameters.size(); ++i) {
    explicit_caller = explicit_caller || body.parameters[i] == "caller";
    set_variable(*scope_, body.parameters[i],
                 i < num_given ? arguments.positional[i] : bind_parameter(body, i, arguments));
  }
  if (body.uses_caller && !explicit_caller) {
    const auto caller = take_keyword(arguments, "caller");
    set_variable(*scope_, "caller", caller ? *caller : Value::undefined("No caller defined"));
  }
  if (body.uses_kwargs) {
    DictObject* rest = heap_.new_dict();
    for (const auto& [name, value] : arguments.keyword) heap_.set(*rest, heap_.text(name), value);
    set_variable(*scope_, "kwargs", rest);
  } else if (!arguments.keyword.empty()) {
    fail(fmt::format("macro '{}' takes no keyword argument '{}'", macro.name,
                     arguments.keyword.front().first));
  }
  if (body.uses_varargs) {
    const auto first = arguments.positional.begin() + static_cast<std::ptrdiff_t>(num_given);
    set_variable(*scope_, "varargs",
                 heap_.list({first, arguments.positional.end()}, ListKind::kTuple));
  } else if (arguments.positional.size() > num_given) {
    fail(fmt::format("macro '{}' takes not more than {} argument(s)", macro.name,
                     body.parameters.size()));
  }
  const int outer_line = line_;
  exec(body.body);
  line_ = outer_line;
  return capture.value();
}

}  // namespace minisgl::jinja
