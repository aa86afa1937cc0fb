// Chat templates against what Jinja 2 gives (tests/data/chat_template), against the reference
// prompts where those are present, and against hostile templates.
#include "tokenizer/chat_template/chat_template.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "goldens.h"
#include "utils/files.h"
#include "utils/json.h"

namespace minisgl {
namespace {

const std::string kData = std::string(MINISGL_TEST_DATA) + "/chat_template/";

// 26 July 2024, 14:05:09, a Friday: what the cases were made with.
std::tm fixed_time() {
  std::tm time{};
  time.tm_year = 124;
  time.tm_mon = 6;
  time.tm_mday = 26;
  time.tm_hour = 14;
  time.tm_min = 5;
  time.tm_sec = 9;
  time.tm_wday = 5;
  time.tm_yday = 207;
  time.tm_isdst = -1;
  return time;
}

std::string render(const std::string& source, const Json& variables = Json::object(),
                   const TemplateLimits& limits = {}) {
  return ChatTemplate(source, limits, fixed_time).render(variables);
}

// The message of the error that rendering ends with; empty where it does not fail.
std::string failure(const std::string& source, const Json& variables = Json::object(),
                    const TemplateLimits& limits = {}) {
  try {
    render(source, variables, limits);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

std::vector<Json> read_lines(const std::string& path) {
  std::vector<Json> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(Json::parse(line));
  return lines;
}

std::string source_of(const Json& test_case) {
  if (test_case.contains("template")) return test_case.at("template").get<std::string>();
  return read_file(kData + "families/" + test_case.at("family").get<std::string>() + ".jinja");
}

void check_case(const Json& test_case) {
  const std::string source = source_of(test_case);
  SCOPED_TRACE(test_case.value("family", source));
  SCOPED_TRACE(test_case.at("variables").dump());
  try {
    const std::string text = render(source, test_case.at("variables"));
    ASSERT_TRUE(test_case.contains("expected")) << "should fail, renders: " << text;
    EXPECT_EQ(text, test_case.at("expected").get<std::string>());
  } catch (const TemplateRaised& raised) {
    ASSERT_TRUE(test_case.contains("raised")) << "raised: " << raised.what();
    EXPECT_EQ(std::string(raised.what()), test_case.at("raised").get<std::string>());
  } catch (const Error& error) {
    EXPECT_TRUE(test_case.contains("fails")) << "failed: " << error.what();
    EXPECT_NE(std::string(error.what()).find("line "), std::string::npos) << error.what();
  }
}

TEST(ChatTemplateTest, GivesWhatJinjaGivesForEveryCase) {
  const auto cases = read_lines(kData + "cases.jsonl");
  ASSERT_GT(cases.size(), 800U);
  for (const Json& test_case : cases) check_case(test_case);
}

ChatRequest golden_request(const Json& golden, const Json& config) {
  Json body = golden.at("kwargs");
  ChatRequest request;
  request.messages = golden.at("messages");
  for (const auto& [name, value] : body.items()) {
    if (name == "tools") {
      request.tools = value;
    } else if (name == "add_generation_prompt") {
      request.add_generation_prompt = value.get<bool>();
    } else {
      request.extra_variables[name] = value;
    }
  }
  for (const char* name : {"bos_token", "eos_token", "unk_token", "pad_token"}) {
    if (!config.contains(name) || config.at(name).is_null()) continue;
    const Json& token = config.at(name);
    request.special_tokens[name] = token.is_object() ? token.at("content") : token;
  }
  return request;
}

TEST(ChatTemplateTest, GivesTheReferencePrompts) {
  const auto folder = testing::goldens_dir();
  if (!folder) GTEST_SKIP() << "the reference data is not here";
  for (const std::string name : {"qwen3", "deepseek_v3"}) {
    const Json config =
        read_json_file(*folder + "/../tokenizers/" + name + "/tokenizer_config.json");
    const ChatTemplate chat_template(config.at("chat_template").get<std::string>());
    int count = 0;
    for (const Json& golden : read_lines(*folder + "/tokenizers/" + name + ".jsonl")) {
      if (golden.at("kind") != "chat") continue;
      SCOPED_TRACE(golden.dump());
      ++count;
      try {
        const std::string text = render_chat(chat_template, golden_request(golden, config));
        ASSERT_TRUE(golden.contains("rendered"));
        EXPECT_EQ(text, golden.at("rendered").get<std::string>());
      } catch (const TemplateRaised& raised) {
        ASSERT_TRUE(golden.contains("error")) << raised.what();
      }
    }
    EXPECT_GE(count, 20);
  }
}

// ---- errors

TEST(ChatTemplateTest, ErrorsNameTheLine) {
  EXPECT_EQ(
      failure("a\n{{ messages[0].role.name }}\n", {{"messages", Json::array({Json::object()})}}),
      "chat template, line 2: 'dict object' has no attribute 'role'");
  EXPECT_EQ(failure("\n\n{{ x + 1 }}"), "chat template, line 3: 'x' is undefined");
  EXPECT_EQ(
      failure("a\n{% if x %}\n"),
      "chat template, line 2: the template ends where 'elif' or 'else' or 'endif' was expected");
  EXPECT_EQ(failure("{{ 'a' +\n\n 1 }}"),
            "chat template, line 1: can only concatenate str (not \"int\") to str");
  EXPECT_EQ(failure("{% macro m() %}\n{{ 1 / 0 }}{% endmacro %}\n\n{{ m() }}"),
            "chat template, line 2: division by zero");
}

TEST(ChatTemplateTest, ARefusalIsItsOwnErrorWithTheTemplatesMessage) {
  const ChatTemplate chat_template(
      "{% for m in messages %}\n{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
      "{{ raise_exception('roles must alternate') }}{% endif %}{{ m.content }}{% endfor %}");
  const Json user = {{"role", "user"}, {"content", "hi"}};
  ChatRequest request{Json::array({user, user})};
  try {
    render_chat(chat_template, request);
    FAIL() << "did not refuse";
  } catch (const TemplateRaised& raised) {
    EXPECT_STREQ(raised.what(), "roles must alternate");
    EXPECT_EQ(raised.line(), 2);
    EXPECT_EQ(raised.kind(), ErrorKind::kInvalidArgument);
  }
  request.messages = Json::array({user});
  EXPECT_EQ(render_chat(chat_template, request), "hi");  // the next request works
}

TEST(ChatTemplateTest, UnknownFiltersAndOtherTemplatesAreUnsupported) {
  const auto kind = [](const std::string& source) {
    try {
      render(source);
    } catch (const Error& error) {
      return error.kind();
    }
    return ErrorKind::kInternal;
  };
  EXPECT_EQ(kind("{{ 'a' | nofilter }}"), ErrorKind::kUnsupported);
  EXPECT_EQ(kind("{{ 'a' is notest }}"), ErrorKind::kUnsupported);
  EXPECT_EQ(kind("{% include 'x' %}"), ErrorKind::kUnsupported);
  EXPECT_EQ(kind("{% autoescape true %}{% endautoescape %}"), ErrorKind::kUnsupported);
}

TEST(ChatTemplateTest, RefusesTextThatIsNotUtf8) {
  EXPECT_EQ(failure("a\xFF"), "chat template: not UTF-8 at byte 1");
  EXPECT_EQ(failure("{{ x }}", {{"x", "\xC3"}}),
            "chat template, line 1: a variable's text is not UTF-8 at byte 0");
}

// ---- hostile templates

struct HostileCase {
  const char* name;
  std::string source;
  std::string message;  // a part of it
};

class HostileTemplate : public ::testing::TestWithParam<HostileCase> {};

TEST_P(HostileTemplate, EndsWithAnErrorInBoundedTime) {
  TemplateLimits limits;
  limits.max_steps = 2'000'000;
  limits.max_memory_bytes = size_t{64} << 20;
  limits.max_output_bytes = size_t{8} << 20;
  const std::string message = failure(GetParam().source, Json::object(), limits);
  EXPECT_NE(message.find(GetParam().message), std::string::npos) << message;
}

std::string repeat(const std::string& text, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += text;
  return out;
}

const std::string kMillion = "{% for a in range(1000) %}{% for b in range(1000) %}";
const std::string kEnds = "{% endfor %}{% endfor %}";

INSTANTIATE_TEST_SUITE_P(
    Jinja, HostileTemplate,
    ::testing::ValuesIn(std::vector<HostileCase>{
        {"NestedLoops", kMillion + kMillion + kEnds + kEnds, "steps"},
        {"EndlessMacro", "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "levels"},
        {"MutualMacros",
         "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}",
         "levels"},
        {"EndlessCaller",
         "{% macro m() %}{{ caller() }}{% endmacro %}{% macro r() %}{% call m() %}{{ r() }}{% "
         "endcall %}"
         "{% endmacro %}{{ r() }}",
         "levels"},
        {"RecursiveLoop", "{% set l = [1] %}{% for x in l recursive %}{{ loop(l) }}{% endfor %}",
         "levels"},
        {"DoublingText",
         "{% set ns = namespace(x='xx') %}{% for a in range(100) %}{% set ns.x = ns.x + ns.x %}{% "
         "endfor %}",
         "bytes"},
        {"DoublingList",
         "{% set ns = namespace(x=[1, 2]) %}{% for a in range(100) %}{% set ns.x = ns.x + ns.x "
         "%}{% endfor %}",
         "more than"},
        {"RepeatedText", "{{ 'abc' * 1000000000000 }}", "bytes"},
        {"RepeatedList", "{{ [1] * 1000000000000 }}", "steps"},
        {"WideFormat", "{{ '%1000000000000d' % 1 }}", "bytes"},
        {"WideFormatMethod", "{{ '{:1000000000000}'.format(1) }}", "bytes"},
        {"PreciseFormat", "{{ '%.100000000f' % 1.5 }}", "precision"},
        {"WideJustify", "{{ 'a'.ljust(1000000000000) }}", "bytes"},
        {"WideZfill", "{{ 'a'.zfill(1000000000000) }}", "bytes"},
        {"WideIndent", "{{ 'a\nb' | indent(1000000000000) }}", "bytes"},
        {"WideTojson", "{{ [1] | tojson(indent=1000000000000) }}", "bytes"},
        {"ReplaceBlowsUp", "{% set x = 'a' * 1000000 %}{{ x.replace('a', x) }}", "bytes"},
        {"JoinBlowsUp", "{% set x = 'a' * 1000000 %}{{ x | join(x) }}", "more than"},
        {"HugeRange", "{{ range(1000000000000) | list }}", "range()"},
        {"HugePower", "{{ 9 ** 9 ** 9 }}", "126 bits"},
        {"HugeProduct", "{{ 2 ** 100 * 2 ** 100 }}", "126 bits"},
        {"HugeBatch", "{{ [1] | batch(1000000000000, 'x') | list }}", "more than"},
        {"HugeSlices", "{{ [1] | slice(1000000000000) | list }}", "more than"},
        {"HugeStrftime", "{{ strftime_now('%A' * 100000) }}", "1024 bytes"},
        {"ListInItself", "{% set l = [] %}{% set _ = l.append(l) %}{{ l }}", "levels"},
        {"DictInItself", "{% set d = {} %}{% set _ = d.update(a=d) %}{{ d | tojson }}",
         "nested too deeply"},
        {"ListEqualsItself",
         "{% set a = [] %}{% set _ = a.append(a) %}{% set b = [] %}{% set _ = b.append(b) %}{{ a "
         "== b }}",
         "levels"},
        {"DeepList",
         "{% set ns = namespace(x=[]) %}{% for i in range(10000) %}{% set ns.x = [ns.x] %}{% "
         "endfor %}{{ ns.x }}",
         "levels"},
        {"DeepHash",
         "{% set ns = namespace(x=()) %}{% for i in range(10000) %}{% set ns.x = (ns.x,) %}{% "
         "endfor %}{{ {ns.x: 1} }}",
         "levels"},
        {"DeepParentheses", "{{ " + repeat("(", 100000) + "1" + repeat(")", 100000) + " }}",
         "levels"},
        {"DeepBrackets", "{{ " + repeat("[", 100000) + repeat("]", 100000) + " }}", "levels"},
        {"DeepNot", "{{ " + repeat("not ", 100000) + "1 }}", "levels"},
        {"DeepMinus", "{{ " + repeat("-", 100000) + "1 }}", "levels"},
        {"DeepElse", "{{ " + repeat("1 if 0 else ", 50000) + "1 }}", "levels"},
        {"DeepIf", repeat("{% if 1 %}", 10000), "levels"},
        {"DeepTarget", "{% set " + repeat("(", 100000) + "a" + repeat(")", 100000) + " = 1 %}",
         "levels"},
        {"LongSum", "{{ 1" + repeat(" + 1", 100000) + " }}", "levels"},
        {"LongChainOfAttributes", "{{ x" + repeat(".a", 100000) + " }}", "levels"},
        {"LongChainOfFilters", "{{ x" + repeat("|e", 100000) + " }}", "levels"},
        {"LongCallChain", "{{ x" + repeat("()", 100000) + " }}", "levels"},
        {"NestedFormatFields", "{{ '{:{:{:{:{}}}}}'.format(1, 2, 3, 4, 5) }}", "recursion"},
        {"OutputFlood", "{% for i in range(100000) %}" + std::string(1000, 'x') + "{% endfor %}",
         "bytes"},
        {"MemoryFlood",
         "{% set ns = namespace(l=[]) %}{% for i in range(100000) %}{% set _ = ns.l.append('" +
             std::string(1000, 'x') + "' ~ i) %}{% endfor %}",
         "memory"},
    }),
    [](const auto& info) { return std::string(info.param.name); });

TEST(ChatTemplateTest, ASourceThatIsTooLargeIsRefused) {
  TemplateLimits limits;
  limits.max_source_bytes = 10;
  EXPECT_EQ(failure("12345678901", Json::object(), limits),
            "chat template: 11 bytes, at most 10 are allowed");
}

TEST(ChatTemplateTest, DeepVariablesAreRefused) {
  Json deep = 1;
  for (int i = 0; i < 1000; ++i) deep = Json::array({deep});
  EXPECT_NE(failure("x", {{"x", deep}}).find("nested deeper"), std::string::npos);
}

TEST(ChatTemplateTest, ALongConversationStaysFarFromTheLimits) {
  const ChatTemplate chat_template(read_file(kData + "families/qwen25.jinja"));
  Json messages = Json::array();
  for (int i = 0; i < 2000; ++i) {
    messages.push_back(
        {{"role", i % 2 == 0 ? "user" : "assistant"}, {"content", std::string(2000, 'x')}});
  }
  EXPECT_GT(render_chat(chat_template, {messages}).size(), 4'000'000U);
}

// ---- apply_chat_template

const char* const kPlain =
    "{% for m in messages %}[{{ m.role }}]{{ m.content }}[/]{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}";
const char* const kTrims =
    "{% for m in messages %}[{{ m.role }}] {{ m.content | trim }}[/]{% endfor %}";

ChatRequest conversation(const std::string& last) {
  return {Json::array(
      {{{"role", "user"}, {"content", "hi"}}, {{"role", "assistant"}, {"content", last}}})};
}

TEST(RenderChatTest, ToolsAndDocumentsAreNoneUnlessGiven) {
  const ChatTemplate shows(
      "{{ tools }}{{ documents }}{{ add_generation_prompt }}{{ bos_token }}{{ x }}");
  ChatRequest request = conversation("a");
  EXPECT_EQ(render_chat(shows, request), "NoneNoneFalse");
  request.tools = Json::array({{{"type", "function"}}});
  request.special_tokens = {{"bos_token", "<s>"}};
  request.extra_variables = {{"x", 5}, {"bos_token", "<b>"}};
  EXPECT_EQ(render_chat(shows, request), "[{'type': 'function'}]NoneFalse<b>5");
}

TEST(RenderChatTest, ContinuesTheFinalMessage) {
  ChatRequest request = conversation("Sure, ");
  request.continue_final_message = "content";
  EXPECT_EQ(render_chat(ChatTemplate(kPlain), request), "[user]hi[/][assistant]Sure, ");
  EXPECT_EQ(render_chat(ChatTemplate(kTrims), request), "[user] hi[/][assistant] Sure,");
  request.messages.back()["content"] = "Sure";
  EXPECT_EQ(render_chat(ChatTemplate(kTrims), request), "[user] hi[/][assistant] Sure");
}

TEST(RenderChatTest, ContinuesTheLastTextOfAListOfParts) {
  ChatRequest request = conversation("");
  request.messages.back()["content"] = Json::array({{{"type", "text"}, {"text", "one"}},
                                                    {{"type", "text"}, {"text", "two"}},
                                                    {{"type", "image"}}});
  request.continue_final_message = "content";
  const ChatTemplate parts(
      "{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}"
      "{% for p in m.content %}<{{ p.text }}>{% endfor %}{% endif %}{% endfor %}");
  EXPECT_EQ(render_chat(parts, request), "hi<one><two");
}

TEST(RenderChatTest, ContinuesAnotherField) {
  ChatRequest request = conversation("x");
  request.messages.back()["thinking"] = "hmm";
  request.continue_final_message = "thinking";
  EXPECT_EQ(render_chat(
                ChatTemplate("{% for m in messages %}{{ m.thinking }}|{{ m.content }}{% endfor %}"),
                request),
            "|hihmm");
}

TEST(RenderChatTest, RefusesWhatCannotBeContinued) {
  const auto refused = [](const char* source, ChatRequest request) -> std::string {
    request.continue_final_message = request.continue_final_message.value_or("content");
    try {
      return "rendered " + render_chat(ChatTemplate(source), request);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
      return error.what();
    }
  };
  ChatRequest request = conversation("x");
  request.add_generation_prompt = true;
  EXPECT_NE(refused(kPlain, request).find("not compatible"), std::string::npos);
  request = conversation("x");
  request.messages.back().erase("content");
  EXPECT_NE(refused(kPlain, request).find("no \"content\""), std::string::npos);
  request.messages.back()["content"] = Json::array({{{"type", "image"}}});
  EXPECT_NE(refused(kPlain, request).find("no text to continue"), std::string::npos);
  request = conversation("x");
  EXPECT_NE(refused("{% for m in messages %}{{ m.content | length }}{% endfor %}", request)
                .find("does not appear"),
            std::string::npos);
  request.continue_final_message = "thinking";
  EXPECT_NE(refused(kPlain, request).find("no \"thinking\""), std::string::npos);
  request.messages.back()["thinking"] = "x";
  EXPECT_NE(refused(kPlain, request).find("does not use the field"), std::string::npos);
}

TEST(RenderChatTest, RefusesWhatIsNoConversation) {
  const ChatTemplate chat_template(kPlain);
  for (const Json& messages : {Json::array(), Json("hi"), Json(), Json::array({"hi"})}) {
    EXPECT_THROW(render_chat(chat_template, {messages}), Error) << messages.dump();
  }
  ChatRequest request = conversation("x");
  request.tools = "tools";
  EXPECT_THROW(render_chat(chat_template, request), Error);
  request = conversation("x");
  request.extra_variables = {{"messages", 1}};
  EXPECT_THROW(render_chat(chat_template, request), Error);
}

TEST(RenderChatTest, ReadsTheBodyOfARequest) {
  const ChatRequest request = parse_chat_request(Json::parse(R"({
      "model": "m", "messages": [{"role": "user", "content": "hi"}], "tools": [{"a": 1}],
      "continue_final_message": true, "chat_template_kwargs": {"bos_token": "<s>"}})"));
  EXPECT_EQ(request.messages.size(), 1U);
  EXPECT_EQ(request.tools.size(), 1U);
  EXPECT_FALSE(request.add_generation_prompt);
  EXPECT_EQ(request.continue_final_message, "content");
  EXPECT_EQ(request.extra_variables.at("bos_token"), "<s>");
  EXPECT_THROW(parse_chat_request(Json::parse("[]")), Error);
  EXPECT_THROW(parse_chat_request(Json::parse("{}")), Error);
  EXPECT_THROW(parse_chat_request(Json::parse(R"({"messages": [], "add_generation_prompt": 1})")),
               Error);
  EXPECT_THROW(parse_chat_request(Json::parse(R"({"messages": [], "chat_template_kwargs": 1})")),
               Error);
}

}  // namespace
}  // namespace minisgl
