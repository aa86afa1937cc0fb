#include "tokenizer/chat_template/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "tokenizer/chat_template/lexer.h"

namespace minisgl::jinja {
namespace {

constexpr int kMaxNesting = 100;  // of blocks, brackets and prefix operators

using Names = std::initializer_list<std::string_view>;

class Parser {
 public:
  explicit Parser(std::string_view source) : tokens_(tokenize(source)) {}

  Ast run() {
    ast_.root = parse_block({});
    return std::move(ast_);
  }

 private:
  // One level of nesting while it lives.
  struct Nest {
    Parser& parser;
    explicit Nest(Parser& p) : parser(p) {
      if (++parser.depth_ > kMaxNesting) {
        parser.fail_at(parser.current().line,
                       fmt::format("nested deeper than {} levels", kMaxNesting));
      }
    }
    ~Nest() { --parser.depth_; }
  };

  // ---- tokens
  const Token& current() const { return tokens_[pos_]; }
  const Token& look() const { return tokens_[std::min(pos_ + 1, tokens_.size() - 1)]; }
  const Token& take() {
    const Token& token = tokens_[pos_];
    if (pos_ + 1 < tokens_.size()) ++pos_;
    return token;
  }
  bool is_op(std::string_view op) const {
    return current().kind == TokenKind::kOperator && current().text == op;
  }
  bool is_name(std::string_view name) const {
    return current().kind == TokenKind::kName && current().text == name;
  }
  bool skip_op(std::string_view op) {
    const bool found = is_op(op);
    if (found) take();
    return found;
  }
  bool skip_name(std::string_view name) {
    const bool found = is_name(name);
    if (found) take();
    return found;
  }

  [[noreturn]] void fail_at(int line, const std::string& message) const {
    throw_template_error(ErrorKind::kInvalidArgument, line, message);
  }
  std::string describe(const Token& token) const {
    switch (token.kind) {
      case TokenKind::kEnd:
        return "the end of the template";
      case TokenKind::kBlockEnd:
        return "the end of the block ('%}')";
      case TokenKind::kVariableEnd:
        return "the end of the print statement ('}}')";
      case TokenKind::kData:
        return "text";
      default:
        return fmt::format("'{}'", token.text);
    }
  }
  void expect_op(std::string_view op) {
    if (!skip_op(op)) {
      fail_at(current().line, fmt::format("expected '{}', found {}", op, describe(current())));
    }
  }
  std::string expect_name() {
    if (current().kind != TokenKind::kName) {
      fail_at(current().line, fmt::format("expected a name, found {}", describe(current())));
    }
    return take().text;
  }
  void expect_name(std::string_view name) {
    if (!skip_name(name)) {
      fail_at(current().line, fmt::format("expected '{}', found {}", name, describe(current())));
    }
  }
  void expect_kind(TokenKind kind, const char* what) {
    if (current().kind != kind) {
      fail_at(current().line, fmt::format("expected {}, found {}", what, describe(current())));
    }
    take();
  }

  template <class Node>
  const Expr* make(int line, Node node) {
    return &ast_.exprs.emplace_back(Expr{line, std::move(node)});
  }
  template <class Node>
  const Stmt* make_stmt(int line, Node node) {
    return &ast_.stmts.emplace_back(Stmt{line, std::move(node)});
  }

  // ---- statements

  // Statements up to a tag named in `end_names`, which becomes the current token (its {% is taken).
  Block parse_block(Names end_names) {
    const Nest nest(*this);
    Block block;
    while (current().kind != TokenKind::kEnd) {
      const int line = current().line;
      if (current().kind == TokenKind::kData) {
        block.push_back(make_stmt(line, TextStmt{take().text}));
      } else if (current().kind == TokenKind::kVariableBegin) {
        take();
        block.push_back(make_stmt(line, PrintStmt{parse_tuple(true)}));
        expect_kind(TokenKind::kVariableEnd, "'}}'");
      } else {
        expect_kind(TokenKind::kBlockBegin, "'{%'");
        for (const auto name : end_names) {
          if (is_name(name)) return block;
        }
        parse_statement(block);
        expect_kind(TokenKind::kBlockEnd, "'%}'");
      }
    }
    if (end_names.size() > 0) {
      fail_at(current().line, fmt::format("the template ends where '{}' was expected",
                                          fmt::join(end_names, "' or '")));
    }
    return block;
  }

  // The body of a statement whose head ends here.
  Block parse_body(Names end_names) {
    skip_op(":");
    expect_kind(TokenKind::kBlockEnd, "'%}'");
    return parse_block(end_names);
  }
  Block parse_last_body(std::string_view end_name) {
    Block block = parse_body({end_name});
    take();
    return block;
  }

  void parse_statement(Block& out) {
    const Token& tag = current();
    const int line = tag.line;
    const std::string name = expect_name();
    if (name == "if") return out.push_back(parse_if(line));
    if (name == "for") return out.push_back(parse_for(line));
    if (name == "set") return out.push_back(parse_set(line));
    if (name == "macro") return out.push_back(parse_macro(line));
    if (name == "call") return out.push_back(parse_call_block(line));
    if (name == "filter") return out.push_back(parse_filter_block(line));
    if (name == "with") return out.push_back(parse_with(line));
    if (name == "print") return parse_print(line, out);
    if (name == "block") return out.push_back(parse_named_block(line));
    if (name == "generation") return out.push_back(parse_generation(line));
    if (name == "autoescape") return out.push_back(parse_autoescape(line));
    if (name == "break" || name == "continue") {
      if (loop_depth_ == 0) fail_at(line, fmt::format("'{}' outside of a loop", name));
      return out.push_back(make_stmt(line, LoopControlStmt{name == "break"}));
    }
    for (const char* other : {"extends", "include", "import", "from"}) {
      if (name != other) continue;
      throw_template_error(
          ErrorKind::kUnsupported, line,
          fmt::format("'{}' loads another template; a chat template stands alone", name));
    }
    fail_at(line, fmt::format("unknown tag '{}'", name));
  }

  const Stmt* parse_if(int line) {
    IfStmt node;
    while (true) {
      const Expr* condition = parse_tuple(false);
      node.branches.emplace_back(condition, parse_body({"elif", "else", "endif"}));
      const std::string end = take().text;
      if (end == "elif") continue;
      if (end == "else") node.otherwise = parse_last_body("endif");
      return make_stmt(line, std::move(node));
    }
  }

  const Stmt* parse_for(int line) {
    ForStmt node{};
    node.target = parse_target(false);
    expect_name("in");
    node.iterable = parse_tuple(false, {"recursive"});
    if (skip_name("if")) node.condition = parse_expression();
    node.recursive = skip_name("recursive");
    ++loop_depth_;
    node.body = parse_body({"endfor", "else"});
    --loop_depth_;
    if (take().text == "else") node.otherwise = parse_last_body("endfor");
    return make_stmt(line, std::move(node));
  }

  const Stmt* parse_set(int line) {
    const Expr* target = parse_target(true);
    if (skip_op("=")) return make_stmt(line, SetStmt{target, parse_tuple(true)});
    const Expr* filter = is_op("|") ? parse_filters(nullptr) : nullptr;
    return make_stmt(line, SetBlockStmt{target, filter, parse_last_body("endset")});
  }

  // Parses a macro's body, noting which of the special names it reads.
  void parse_macro_body(MacroBody& macro, std::string_view end_name) {
    macros_.push_back(&macro);
    const int loops = std::exchange(loop_depth_, 0);
    macro.body = parse_last_body(end_name);
    loop_depth_ = loops;
    macros_.pop_back();
  }

  void parse_signature(MacroBody& macro) {
    expect_op("(");
    while (!is_op(")")) {
      if (!macro.parameters.empty()) expect_op(",");
      macro.parameters.push_back(expect_name());
      if (skip_op("=")) {
        macro.defaults.push_back(parse_expression());
      } else if (!macro.defaults.empty()) {
        fail_at(current().line, "a parameter without a default follows one that has a default");
      }
    }
    expect_op(")");
  }

  const Stmt* parse_macro(int line) {
    MacroStmt node;
    node.macro.name = expect_name();
    parse_signature(node.macro);
    parse_macro_body(node.macro, "endmacro");
    return make_stmt(line, std::move(node));
  }

  const Stmt* parse_call_block(int line) {
    CallStmt node{};
    node.caller.name = "caller";
    if (is_op("(")) parse_signature(node.caller);
    node.call = parse_expression();
    if (!std::holds_alternative<CallExpr>(node.call->node)) fail_at(line, "expected a call");
    parse_macro_body(node.caller, "endcall");
    return make_stmt(line, std::move(node));
  }

  const Stmt* parse_filter_block(int line) {
    const Expr* filter = parse_filters(nullptr, true);
    return make_stmt(line, FilterStmt{filter, parse_last_body("endfilter")});
  }

  const Stmt* parse_with(int line) {
    WithStmt node;
    while (current().kind != TokenKind::kBlockEnd) {
      if (!node.variables.empty()) expect_op(",");
      const Expr* target = parse_target(false);
      expect_op("=");
      node.variables.emplace_back(target, parse_expression());
    }
    node.body = parse_last_body("endwith");
    return make_stmt(line, std::move(node));
  }

  void parse_print(int line, Block& out) {
    for (bool first = true; current().kind != TokenKind::kBlockEnd; first = false) {
      if (!first) expect_op(",");
      out.push_back(make_stmt(line, PrintStmt{parse_expression()}));
    }
  }

  const Stmt* parse_named_block(int line) {
    const std::string name = expect_name();
    skip_name("scoped");
    const int loops = std::exchange(loop_depth_, 0);
    ScopeStmt node{parse_last_body("endblock")};
    loop_depth_ = loops;
    skip_name(name);
    return make_stmt(line, std::move(node));
  }

  const Stmt* parse_generation(int line) {
    const int loops = std::exchange(loop_depth_, 0);
    ScopeStmt node{parse_last_body("endgeneration")};
    loop_depth_ = loops;
    return make_stmt(line, std::move(node));
  }

  const Stmt* parse_autoescape(int line) {
    const Expr* value = parse_expression();
    const auto* constant = std::get_if<ConstExpr>(&value->node);
    if (constant == nullptr || truthy(constant->value)) {
      throw_template_error(ErrorKind::kUnsupported, line,
                           "autoescape is not supported: prompts are no HTML");
    }
    return make_stmt(line, ScopeStmt{parse_last_body("endautoescape")});
  }

  // ---- targets of assignments

  const Expr* parse_one_target(bool with_namespace) {
    const int line = current().line;
    if (skip_op("(")) {
      const Expr* inner = parse_target(with_namespace);
      expect_op(")");
      return inner;
    }
    const std::string name = expect_name();
    for (const char* constant : {"true", "false", "none", "True", "False", "None"}) {
      if (name == constant) fail_at(line, fmt::format("can't assign to '{}'", name));
    }
    if (with_namespace && skip_op(".")) return make(line, NamespaceTarget{name, expect_name()});
    return make(line, NameExpr{name});
  }

  const Expr* parse_target(bool with_namespace) {
    const Nest nest(*this);
    const int line = current().line;
    const Expr* first = parse_one_target(with_namespace);
    if (!is_op(",")) return first;
    TupleExpr tuple{{first}};
    while (skip_op(",")) {
      if (is_name("in") || is_op("=") || is_op(")")) break;
      tuple.items.push_back(parse_one_target(with_namespace));
    }
    return make(line, std::move(tuple));
  }

  // ---- expressions

  bool at_tuple_end(Names extra_ends) const {
    if (current().kind == TokenKind::kVariableEnd || current().kind == TokenKind::kBlockEnd ||
        is_op(")")) {
      return true;
    }
    return std::any_of(extra_ends.begin(), extra_ends.end(),
                       [&](std::string_view name) { return is_name(name); });
  }

  // One expression, or a tuple where commas follow.
  const Expr* parse_tuple(bool with_conditional, Names extra_ends = {},
                          bool in_parentheses = false) {
    const int line = current().line;
    TupleExpr tuple;
    bool is_tuple = false;
    while (!at_tuple_end(extra_ends)) {
      tuple.items.push_back(with_conditional ? parse_expression() : parse_or());
      if (!skip_op(",")) break;
      is_tuple = true;
    }
    if (is_tuple) return make(line, std::move(tuple));
    if (!tuple.items.empty()) return tuple.items.front();
    if (!in_parentheses) {
      fail_at(current().line, fmt::format("expected an expression, found {}", describe(current())));
    }
    return make(line, std::move(tuple));
  }

  const Expr* parse_expression() {
    const Nest nest(*this);
    const int line = current().line;
    const Expr* value = parse_or();
    while (skip_name("if")) {
      const Expr* condition = parse_or();
      const Expr* otherwise = skip_name("else") ? parse_expression() : nullptr;
      value = make(line, ConditionalExpr{condition, value, otherwise});
    }
    return value;
  }

  const Expr* parse_or() {
    const int line = current().line;
    const Expr* left = parse_and();
    while (skip_name("or")) left = make(line, LogicExpr{left, parse_and(), false});
    return left;
  }

  const Expr* parse_and() {
    const int line = current().line;
    const Expr* left = parse_not();
    while (skip_name("and")) left = make(line, LogicExpr{left, parse_not(), true});
    return left;
  }

  const Expr* parse_not() {
    const int line = current().line;
    if (skip_name("not")) {
      const Nest nest(*this);
      return make(line, NotExpr{parse_not()});
    }
    return parse_compare();
  }

  bool take_compare_op(CompareOp& op) {
    static constexpr std::pair<std::string_view, CompareOp> kOps[] = {
        {"==", CompareOp::kEq}, {"!=", CompareOp::kNe}, {"<", CompareOp::kLt},
        {"<=", CompareOp::kLe}, {">", CompareOp::kGt},  {">=", CompareOp::kGe}};
    for (const auto& [text, value] : kOps) {
      if (!skip_op(text)) continue;
      op = value;
      return true;
    }
    op = CompareOp::kIn;
    if (skip_name("in")) return true;
    if (!is_name("not") || look().kind != TokenKind::kName || look().text != "in") return false;
    take();
    take();
    op = CompareOp::kNotIn;
    return true;
  }

  const Expr* parse_compare() {
    const int line = current().line;
    CompareExpr node{parse_sum(), {}};
    for (CompareOp op{}; take_compare_op(op);) node.rest.emplace_back(op, parse_sum());
    return node.rest.empty() ? node.first : make(line, std::move(node));
  }

  const Expr* parse_sum() {
    const int line = current().line;
    const Expr* left = parse_concat();
    while (is_op("+") || is_op("-")) {
      const BinaryOp op = take().text == "+" ? BinaryOp::kAdd : BinaryOp::kSub;
      left = make(line, BinaryExpr{op, left, parse_concat()});
    }
    return left;
  }

  const Expr* parse_concat() {
    const int line = current().line;
    ConcatExpr node{{parse_product()}};
    while (skip_op("~")) node.items.push_back(parse_product());
    return node.items.size() == 1 ? node.items.front() : make(line, std::move(node));
  }

  const Expr* parse_product() {
    const int line = current().line;
    const Expr* left = parse_power();
    while (is_op("*") || is_op("/") || is_op("//") || is_op("%")) {
      const std::string& text = take().text;
      const BinaryOp op = text == "*"    ? BinaryOp::kMul
                          : text == "/"  ? BinaryOp::kDiv
                          : text == "//" ? BinaryOp::kFloorDiv
                                         : BinaryOp::kMod;
      left = make(line, BinaryExpr{op, left, parse_power()});
    }
    return left;
  }

  const Expr* parse_power() {
    const int line = current().line;
    const Expr* left = parse_unary(true);
    while (skip_op("**")) left = make(line, BinaryExpr{BinaryOp::kPow, left, parse_unary(true)});
    return left;
  }

  const Expr* parse_unary(bool with_filters) {
    const int line = current().line;
    const Expr* value = nullptr;
    if (is_op("-") || is_op("+")) {
      const Nest nest(*this);
      const bool negative = take().text == "-";
      value = make(line, UnaryExpr{parse_unary(false), negative});
    } else {
      value = parse_primary();
    }
    value = parse_postfix(value);
    return with_filters ? parse_filter_expression(value) : value;
  }

  const Expr* parse_primary() {
    const Token& token = current();
    const int line = token.line;
    if (token.kind == TokenKind::kName) return parse_name();
    if (token.kind == TokenKind::kString) {
      std::string text;
      while (current().kind == TokenKind::kString) text += take().text;
      return make(line, ConstExpr{Value::constant(std::move(text))});
    }
    if (token.kind == TokenKind::kInteger || token.kind == TokenKind::kFloat) {
      return make(line, ConstExpr{take().number});
    }
    if (skip_op("(")) {
      const Expr* inner = parse_tuple(true, {}, true);
      expect_op(")");
      return inner;
    }
    if (is_op("[")) return parse_list();
    if (is_op("{")) return parse_dict();
    fail_at(line, fmt::format("unexpected {}", describe(token)));
  }

  const Expr* parse_name() {
    const Token& token = take();
    const std::string& name = token.text;
    if (name == "true" || name == "True") return make(token.line, ConstExpr{Value(true)});
    if (name == "false" || name == "False") return make(token.line, ConstExpr{Value(false)});
    if (name == "none" || name == "None") return make(token.line, ConstExpr{Value()});
    for (MacroBody* macro : macros_) {
      macro->uses_varargs = macro->uses_varargs || name == "varargs";
      macro->uses_kwargs = macro->uses_kwargs || name == "kwargs";
      macro->uses_caller = macro->uses_caller || name == "caller";
    }
    return make(token.line, NameExpr{name});
  }

  const Expr* parse_list() {
    const int line = take().line;
    ListExpr node;
    while (!is_op("]")) {
      if (!node.items.empty()) expect_op(",");
      if (is_op("]")) break;
      node.items.push_back(parse_expression());
    }
    expect_op("]");
    return make(line, std::move(node));
  }

  const Expr* parse_dict() {
    const int line = take().line;
    DictExpr node;
    while (!is_op("}")) {
      if (!node.items.empty()) expect_op(",");
      if (is_op("}")) break;
      const Expr* key = parse_expression();
      expect_op(":");
      node.items.emplace_back(key, parse_expression());
    }
    expect_op("}");
    return make(line, std::move(node));
  }

  const Expr* parse_postfix(const Expr* value) {
    while (true) {
      if (is_op(".") || is_op("[")) {
        value = parse_subscript(value);
      } else if (is_op("(")) {
        value = parse_call(value);
      } else {
        return value;
      }
    }
  }

  const Expr* parse_filter_expression(const Expr* value) {
    while (true) {
      if (is_op("|")) {
        value = parse_filters(value);
      } else if (is_name("is")) {
        value = parse_test(value);
      } else if (is_op("(")) {
        value = parse_call(value);
      } else {
        return value;
      }
    }
  }

  const Expr* parse_call(const Expr* callee) {
    const int line = current().line;
    return make(line, CallExpr{callee, parse_arguments()});
  }

  const Expr* parse_subscript(const Expr* object) {
    const Token& token = take();
    const int line = token.line;
    if (token.text == ".") {
      if (current().kind == TokenKind::kName) return make(line, AttributeExpr{object, take().text});
      if (current().kind != TokenKind::kInteger) {
        fail_at(current().line,
                fmt::format("expected a name or number behind '.', found {}", describe(current())));
      }
      const Expr* index = make(line, ConstExpr{take().number});
      return make(line, ItemExpr{object, index});
    }
    const Expr* node = parse_index(object, line);
    expect_op("]");
    return node;
  }

  // Inside the brackets: an index, a slice, or a tuple of indices.
  const Expr* parse_index(const Expr* object, int line) {
    const Expr* start = is_op(":") ? nullptr : parse_expression();
    if (is_op(",")) {
      TupleExpr tuple{{start}};
      while (skip_op(",")) {
        if (is_op("]")) break;
        tuple.items.push_back(parse_expression());
      }
      return make(line, ItemExpr{object, make(line, std::move(tuple))});
    }
    if (!skip_op(":")) return make(line, ItemExpr{object, start});
    const auto bound = [&]() -> const Expr* {
      return is_op(":") || is_op("]") ? nullptr : parse_expression();
    };
    const Expr* stop = bound();
    const Expr* step = skip_op(":") ? bound() : nullptr;
    return make(line, SliceExpr{object, start, stop, step});
  }

  CallArguments parse_arguments() {
    const int line = current().line;
    const auto ensure = [&](bool ok) {
      if (!ok) fail_at(line, "arguments of a call are in the wrong order");
    };
    CallArguments arguments;
    expect_op("(");
    for (bool first = true; !is_op(")"); first = false) {
      if (!first) expect_op(",");
      if (is_op(")")) break;
      const bool plain = arguments.star == nullptr && arguments.double_star == nullptr;
      if (skip_op("*")) {
        ensure(plain);
        arguments.star = parse_expression();
      } else if (skip_op("**")) {
        ensure(arguments.double_star == nullptr);
        arguments.double_star = parse_expression();
      } else if (current().kind == TokenKind::kName && look().kind == TokenKind::kOperator &&
                 look().text == "=") {
        ensure(arguments.double_star == nullptr);
        std::string name = take().text;
        take();
        arguments.keyword.emplace_back(std::move(name), parse_expression());
      } else {
        ensure(plain && arguments.keyword.empty());
        arguments.positional.push_back(parse_expression());
      }
    }
    expect_op(")");
    return arguments;
  }

  std::string parse_dotted_name() {
    std::string name = expect_name();
    while (skip_op(".")) name += "." + expect_name();
    return name;
  }

  // input|filter|filter(…); with `inline_start` the first filter has no bar before it.
  const Expr* parse_filters(const Expr* input, bool inline_start = false) {
    while (inline_start || skip_op("|")) {
      inline_start = false;
      const int line = current().line;
      FilterExpr node{input, parse_dotted_name(), {}};
      if (is_op("(")) node.arguments = parse_arguments();
      input = make(line, std::move(node));
    }
    return input;
  }

  bool at_test_argument() const {
    switch (current().kind) {
      case TokenKind::kString:
      case TokenKind::kInteger:
      case TokenKind::kFloat:
        return true;
      case TokenKind::kName:
        return current().text != "else" && current().text != "or" && current().text != "and";
      default:
        return is_op("[") || is_op("{");
    }
  }

  const Expr* parse_test(const Expr* input) {
    const int line = take().line;
    const bool negated = skip_name("not");
    TestExpr node{input, parse_dotted_name(), {}};
    if (is_op("(")) {
      node.arguments = parse_arguments();
    } else if (at_test_argument()) {
      if (is_name("is")) fail_at(current().line, "tests cannot be chained with 'is'");
      node.arguments.positional.push_back(parse_postfix(parse_primary()));
    }
    const Expr* test = make(line, std::move(node));
    return negated ? make(line, NotExpr{test}) : test;
  }

  std::vector<Token> tokens_;
  size_t pos_ = 0;
  int depth_ = 0;
  int loop_depth_ = 0;
  std::vector<MacroBody*> macros_;  // those around the current token
  Ast ast_;
};

}  // namespace

Ast parse_template(std::string_view source) { return Parser(source).run(); }

}  // namespace minisgl::jinja
