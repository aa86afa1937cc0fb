// Runs a parsed template once.
#pragma once

#include <ctime>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/chat_template/ast.h"
#include "tokenizer/chat_template/value.h"

namespace minisgl::jinja {

// Names of one level of a template. Unnamed levels are recycled unless a macro holds on to them.
struct Scope {
  Scope* parent = nullptr;
  std::vector<std::pair<std::string_view, Value>> variables;
  bool captured = false;
};

struct MacroObject {
  std::string name;
  const MacroBody* body;
  Scope* scope;  // where it was defined: its body sees those names
};

// The `loop` of a for statement. Items are taken (and tested) one by one, as the body may change
// what the condition sees; only last, nextitem and the length look ahead.
struct LoopObject {
  std::vector<Value> source;
  std::function<bool(const Value&)> accepts;  // may be empty
  const ForStmt* statement = nullptr;
  Scope* scope = nullptr;
  int64_t index0 = -1;
  int depth0 = 0;
  Value previous, current;
  std::vector<Value> last_changed;
  bool has_last_changed = false;

  bool advance();
  // The item after the current one, or null.
  const Value* peek();
  int64_t length();

 private:
  bool fetch();

  size_t next_ = 0;
  std::deque<Value> ahead_;
};

// One rendering. Throws Failure (see line()) or TemplateRaised. Not thread-safe; `ast`, `heap` and
// `context` must outlive it.
class Interpreter {
 public:
  using Clock = std::function<std::tm()>;

  Interpreter(const Ast& ast, Heap& heap, const DictObject& context, const Clock& clock);

  std::string run();
  // The line of the template that was being evaluated last.
  int line() const { return line_; }

  // ---- for the built-in functions
  Heap& heap() { return heap_; }
  const Clock& clock() const { return clock_; }
  Value call(const Value& callee, Arguments& arguments);
  Value call_filter(const std::string& name, const Value& input, Arguments& arguments);
  bool call_test(const std::string& name, const Value& input, Arguments& arguments);
  Value attribute(const Value& object, const std::string& name);  // object.name
  Value item(const Value& object, const Value& key);              // object[key]

 private:
  enum class Flow { kNormal, kBreak, kContinue };
  class DepthGuard;
  class Capture;
  class ScopeGuard;

  Value eval(const Expr& expr);
  Value eval(const ConstExpr& node);
  Value eval(const NameExpr& node);
  Value eval(const NamespaceTarget& node);
  Value eval(const TupleExpr& node);
  Value eval(const ListExpr& node);
  Value eval(const DictExpr& node);
  Value eval(const UnaryExpr& node);
  Value eval(const BinaryExpr& node);
  Value eval(const LogicExpr& node);
  Value eval(const NotExpr& node);
  Value eval(const CompareExpr& node);
  Value eval(const ConcatExpr& node);
  Value eval(const ConditionalExpr& node);
  Value eval(const AttributeExpr& node);
  Value eval(const ItemExpr& node);
  Value eval(const SliceExpr& node);
  Value eval(const CallExpr& node);
  Value eval(const FilterExpr& node);
  Value eval(const TestExpr& node);
  std::vector<Value> eval_all(const std::vector<const Expr*>& exprs);
  Arguments eval_arguments(const CallArguments& arguments);
  bool compare(CompareOp op, const Value& left, const Value& right);

  Flow exec(const Block& block);
  Flow exec(const Stmt& stmt);
  Flow exec(const TextStmt& node);
  Flow exec(const PrintStmt& node);
  Flow exec(const IfStmt& node);
  Flow exec(const ForStmt& node);
  Flow exec(const SetStmt& node);
  Flow exec(const SetBlockStmt& node);
  Flow exec(const WithStmt& node);
  Flow exec(const MacroStmt& node);
  Flow exec(const CallStmt& node);
  Flow exec(const FilterStmt& node);
  Flow exec(const ScopeStmt& node);
  Flow exec(const LoopControlStmt& node);

  Flow run_loop(const ForStmt& node, const Value& iterable, int depth);
  Value call_macro(MacroObject& macro, Arguments& arguments);
  Value call_loop(LoopObject& loop, Arguments& arguments);
  Value bind_parameter(const MacroBody& body, size_t index, Arguments& arguments);
  Value make_macro(const MacroBody& body);
  Value render_scoped(const Block& block);
  void assign(const Expr& target, const Value& value);
  void unpack(const TupleExpr& targets, const Value& value);
  Value filter_text(const Expr& filter, const Value& text);
  Value loop_attribute(LoopObject& loop, const Value& self, const std::string& name);
  Value missing(const Value& object, const Value& name);
  void emit(std::string_view text);
  Scope* new_scope(Scope* parent);
  void release(Scope* scope);

  const Ast& ast_;
  Heap& heap_;
  const DictObject& context_;
  const Clock& clock_;
  DictObject* globals_;
  Scope* scope_ = nullptr;
  std::string* out_ = nullptr;
  int line_ = 1;
  int depth_ = 0;
  std::vector<Value> filter_inputs_;  // texts of the filter blocks around
  std::deque<Scope> scopes_;
  std::vector<Scope*> free_scopes_;
  std::deque<MacroObject> macros_;
  std::deque<LoopObject> loops_;
};

}  // namespace minisgl::jinja
