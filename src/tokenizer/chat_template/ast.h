// A parsed template. Every node lives in the Ast's own lists and is pointed at, so that neither a
// long chain nor a deep nest recurses when it is destroyed.
#pragma once

#include <deque>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tokenizer/chat_template/value.h"

namespace minisgl::jinja {

struct Expr;
struct Stmt;
using Block = std::vector<const Stmt*>;

struct CallArguments {
  std::vector<const Expr*> positional;
  std::vector<std::pair<std::string, const Expr*>> keyword;
  const Expr* star = nullptr;         // *args
  const Expr* double_star = nullptr;  // **kwargs
};

enum class BinaryOp { kAdd, kSub, kMul, kDiv, kFloorDiv, kMod, kPow };
enum class CompareOp { kEq, kNe, kLt, kLe, kGt, kGe, kIn, kNotIn };

struct ConstExpr {
  Value value;
};
struct NameExpr {
  std::string name;
};
struct NamespaceTarget {
  std::string name, attribute;
};  // only as the target of a set
struct TupleExpr {
  std::vector<const Expr*> items;
};
struct ListExpr {
  std::vector<const Expr*> items;
};
struct DictExpr {
  std::vector<std::pair<const Expr*, const Expr*>> items;
};
struct UnaryExpr {
  const Expr* operand;
  bool negative;
};
struct BinaryExpr {
  BinaryOp op;
  const Expr *left, *right;
};
struct LogicExpr {
  const Expr *left, *right;
  bool is_and;
};
struct NotExpr {
  const Expr* operand;
};
struct CompareExpr {
  const Expr* first;
  std::vector<std::pair<CompareOp, const Expr*>> rest;
};
struct ConcatExpr {
  std::vector<const Expr*> items;
};
struct ConditionalExpr {
  const Expr *condition, *then, *otherwise;
};  // otherwise may be null
struct AttributeExpr {
  const Expr* object;
  std::string name;
};
struct ItemExpr {
  const Expr *object, *index;
};
struct SliceExpr {
  const Expr *object, *start, *stop, *step;
};  // bounds may be null
struct CallExpr {
  const Expr* callee;
  CallArguments arguments;
};
struct FilterExpr {
  const Expr* input;
  std::string name;
  CallArguments arguments;
};  // null: block's text
struct TestExpr {
  const Expr* input;
  std::string name;
  CallArguments arguments;
};

struct Expr {
  int line;
  std::variant<ConstExpr, NameExpr, NamespaceTarget, TupleExpr, ListExpr, DictExpr, UnaryExpr,
               BinaryExpr, LogicExpr, NotExpr, CompareExpr, ConcatExpr, ConditionalExpr,
               AttributeExpr, ItemExpr, SliceExpr, CallExpr, FilterExpr, TestExpr>
      node;
};

// What a macro and the body of a call block have in common.
struct MacroBody {
  std::string name;
  std::vector<std::string> parameters;
  std::vector<const Expr*> defaults;  // of the last parameters
  Block body;
  // Which of Jinja's special names the body reads: only then are surplus arguments welcome.
  bool uses_varargs = false, uses_kwargs = false, uses_caller = false;
};

struct TextStmt {
  std::string text;
};
struct PrintStmt {
  const Expr* value;
};
struct IfStmt {
  std::vector<std::pair<const Expr*, Block>> branches;
  Block otherwise;
};
struct ForStmt {
  const Expr *target, *iterable, *condition;  // condition may be null
  bool recursive;
  Block body, otherwise;
};
struct SetStmt {
  const Expr *target, *value;
};
struct SetBlockStmt {
  const Expr *target, *filter;
  Block body;
};  // filter may be null
struct WithStmt {
  std::vector<std::pair<const Expr*, const Expr*>> variables;
  Block body;
};
struct MacroStmt {
  MacroBody macro;
};
struct CallStmt {
  const Expr* call;
  MacroBody caller;
};
struct FilterStmt {
  const Expr* filter;
  Block body;
};
struct ScopeStmt {
  Block body;
};  // block, generation: rendered in place, sets stay inside
struct LoopControlStmt {
  bool is_break;
};

struct Stmt {
  int line;
  std::variant<TextStmt, PrintStmt, IfStmt, ForStmt, SetStmt, SetBlockStmt, WithStmt, MacroStmt,
               CallStmt, FilterStmt, ScopeStmt, LoopControlStmt>
      node;
};

struct Ast {
  std::deque<Expr> exprs;
  std::deque<Stmt> stmts;
  Block root;
};

}  // namespace minisgl::jinja
