// A real model: SmolLM2-135M-Instruct in float32 gives Hugging Face's tokens and log-probabilities.
// The expectations are committed; the model is what `make model` fetches.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "minisgl/llm.h"
#include "utils/json.h"

namespace minisgl::testing {
namespace {

std::string model_path() {
  const char* named = std::getenv("MINISGL_SMOLLM2");
  return named ? named : MINISGL_SOURCE_DIR "/build/models/SmolLM2-135M-Instruct.Q4_1.gguf";
}

const Json& expected() {
  static const Json document = read_json_file(MINISGL_TEST_DATA "/smollm2/expected.json");
  return document;
}

LLMOptions options() {
  LLMOptions options;
  options.model = model_path();
  options.dtype = "float32";
  options.max_seq_len = 1024;
  options.threads = 2;
  return options;
}

std::vector<int32_t> ids(const Json& json) { return json.get<std::vector<int32_t>>(); }

SamplingParams greedy(int64_t max_tokens) { return {.max_tokens = max_tokens, .ignore_eos = true}; }

TEST(SmolLM2, GivesTheReferenceTokensOneByOneAndTogether) {
  LLM llm(options());
  std::vector<Prompt> prompts;
  for (const Json& c : expected().at("cases")) {
    prompts.emplace_back(ids(c.at("prompt_ids")));
    const auto one = llm.generate({prompts.back()}, greedy(48));
    EXPECT_EQ(one.front().token_ids, ids(c.at("greedy"))) << c.at("name");
  }
  const auto together = llm.generate(prompts, greedy(48));
  for (size_t i = 0; i < prompts.size(); ++i) {
    const Json& c = expected().at("cases").at(i);
    EXPECT_EQ(together[i].token_ids, ids(c.at("greedy"))) << c.at("name") << " in a batch";
    EXPECT_GT(together[i].cached_tokens, 0) << "the second run must find its prompt in the cache";
  }
}

TEST(SmolLM2, RendersAndEncodesTheReferencePrompts) {
  LLM llm(options());
  for (const Json& c : expected().at("cases")) {
    EXPECT_EQ(llm.encode(c.at("prompt").get<std::string>()), ids(c.at("prompt_ids")));
    if (c.at("kind") != "chat") continue;
    std::vector<ChatMessage> messages;
    for (const Json& m : c.at("messages")) {
      messages.push_back({.role = m.at("role"), .content = m.at("content")});
    }
    EXPECT_EQ(llm.render_chat(messages), c.at("prompt").get<std::string>()) << c.at("name");
  }
}

TEST(SmolLM2, AnswersAChatAndStopsAtItsEnd) {
  LLM llm(options());
  std::string streamed;
  const Output output = llm.chat({{.role = "user", .content = "What is the capital of France?"}},
                                 {.max_tokens = 48}, [&](const Piece& piece) {
                                   streamed += piece.text;
                                   return true;
                                 });
  EXPECT_EQ(output.text, "The capital of France is Paris.");
  EXPECT_EQ(streamed, output.text);
  EXPECT_EQ(output.finish_reason, "stop");
}

TEST(SmolLM2, StopStringsEndTheTextAndAreNotPartOfIt) {
  LLM llm(options());
  const std::vector<ChatMessage> messages = {
      {.role = "user", .content = "What is the capital of France?"}};
  SamplingParams params{.max_tokens = 48};
  params.stop = {"of Fra"};  // ends inside a token
  Output output = llm.chat(messages, params);
  EXPECT_EQ(output.text, "The capital ");
  EXPECT_EQ(output.finish_reason, "stop");
  params.include_stop = true;
  EXPECT_EQ(llm.chat(messages, params).text, "The capital of Fra");
  params = {.max_tokens = 2};
  params.stop = {"The capital of Rome"};  // held back, never completed: nothing may be lost
  output = llm.chat(messages, params);
  EXPECT_EQ(output.text, "The capital");
  EXPECT_EQ(output.finish_reason, "length");
}

TEST(SmolLM2, ACallbackCanEndAnAnswer) {
  LLM llm(options());
  int pieces = 0;
  const auto outputs = llm.generate({Prompt("Once upon a time")}, greedy(100),
                                    [&](const Piece&) { return ++pieces < 5; });
  EXPECT_EQ(outputs.front().finish_reason, "abort");
  EXPECT_LE(outputs.front().token_ids.size(), 6u);
  // The next request is none the worse for it.
  EXPECT_EQ(llm.generate({Prompt("Once upon a time")}, greedy(10)).front().token_ids.size(), 10u);
}

TEST(SmolLM2, TheSameSeedDrawsTheSameTokensInAnyCompany) {
  LLM llm(options());
  SamplingParams params{.temperature = 1.0, .top_k = 50, .top_p = 0.9, .max_tokens = 24};
  params.seed = 7;
  const auto alone = llm.generate({Prompt("Once upon a time")}, params).front().token_ids;
  const auto company =
      llm.generate({Prompt("The sea"), Prompt("Once upon a time"), Prompt("def main():")}, params);
  EXPECT_EQ(company[1].token_ids, alone);
  params.seed = 8;
  EXPECT_NE(llm.generate({Prompt("Once upon a time")}, params).front().token_ids, alone);
}

// Hugging Face's log-probabilities, of greedy answers that differ in nothing else.
constexpr double kTolerance = 2e-3;

TEST(SmolLM2, GivesTheReferenceLogprobsOfPromptAndAnswer) {
  LLM llm(options());
  SamplingParams params = greedy(48);
  params.logprobs = 5;
  params.prompt_logprobs = 0;
  for (const Json& c : expected().at("cases")) {
    const Output output = llm.generate({Prompt(ids(c.at("prompt_ids")))}, params).front();
    ASSERT_EQ(output.token_ids, ids(c.at("greedy"))) << c.at("name");
    ASSERT_EQ(output.logprobs.size(), output.token_ids.size());
    double sum = 0.0;
    for (size_t i = 0; i < output.logprobs.size(); ++i) {
      const PositionLogprobs& position = output.logprobs[i];
      EXPECT_EQ(position.token.token, output.token_ids[i]);
      EXPECT_NEAR(position.token.logprob, c.at("logprobs").at(i).get<double>(), kTolerance)
          << c.at("name") << ", token " << i;
      EXPECT_EQ(position.top.size(), 5u);
      EXPECT_EQ(position.top.front().token, output.token_ids[i]) << "greedy takes the first";
      sum += position.token.logprob;
    }
    EXPECT_NEAR(output.cumulative_logprob, sum, 1e-6);
    for (size_t i = 0; i < 5; ++i) {
      const Json& top = c.at("first_top5").at(i);
      EXPECT_EQ(output.logprobs[0].top[i].token, top.at(0).get<int32_t>()) << c.at("name");
      EXPECT_NEAR(output.logprobs[0].top[i].logprob, top.at(1).get<double>(), kTolerance);
    }
    // The reference counts the first token too, of which nothing can be said.
    const Json& prompt = c.at("prompt_logprobs");
    ASSERT_EQ(output.prompt_logprobs.size() + 1, prompt.size());
    for (size_t i = 0; i < output.prompt_logprobs.size(); ++i) {
      EXPECT_EQ(output.prompt_logprobs[i].token.token, ids(c.at("prompt_ids"))[i + 1]);
      EXPECT_NEAR(output.prompt_logprobs[i].token.logprob, prompt.at(i + 1).get<double>(),
                  kTolerance)
          << c.at("name") << ", prompt token " << i + 1;
    }
  }
}

TEST(SmolLM2, SamplesShareTheirPromptAndCountItOnce) {
  LLM llm(options());
  const std::vector<Prompt> prompts = {Prompt("Once upon a time"), Prompt("The sea")};
  SamplingParams params{.temperature = 1.0, .seed = 7, .max_tokens = 12, .logprobs = 0};
  const auto alone = llm.generate(prompts, params);
  params.n = 3;
  params.prompt_logprobs = 0;
  const auto outputs = llm.generate(prompts, params);
  ASSERT_EQ(outputs.size(), 6u);
  EXPECT_EQ(outputs[0].token_ids, alone[0].token_ids) << "sample 0 draws what n = 1 would";
  EXPECT_EQ(outputs[3].token_ids, alone[1].token_ids);
  EXPECT_NE(outputs[1].token_ids, outputs[0].token_ids);
  EXPECT_NE(outputs[2].token_ids, outputs[1].token_ids);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const bool first = i % 3 == 0;
    EXPECT_EQ(outputs[i].prompt_tokens, first ? alone[i / 3].prompt_tokens : 0);
    EXPECT_EQ(outputs[i].prompt_logprobs.empty(), !first);
    EXPECT_EQ(outputs[i].logprobs.size(), outputs[i].token_ids.size());
  }
  params.prompt_logprobs.reset();
  const auto again = llm.generate(prompts, params);
  for (size_t i = 0; i < outputs.size(); ++i) {
    EXPECT_EQ(again[i].token_ids, outputs[i].token_ids) << "seeds reproduce every sample";
    EXPECT_EQ(again[i].cached_tokens, i % 3 == 0 ? alone[i / 3].prompt_tokens - 1 : 0);
  }
  EXPECT_THROW(llm.generate(prompts, SamplingParams{.n = 0}), Error);
  EXPECT_THROW(llm.chat({{.role = "user", .content = "Hi"}}, SamplingParams{.n = 2}), Error);
}

TEST(SmolLM2, MinTokensPutsOffTheEndOfText) {
  LLM llm(options());
  const std::vector<ChatMessage> messages = {
      {.role = "user", .content = "What is the capital of France?"}};
  EXPECT_EQ(llm.chat(messages, {.max_tokens = 48}).token_ids.size(), 8u);
  const Output longer = llm.chat(messages, {.max_tokens = 48, .min_tokens = 12});
  EXPECT_GE(longer.token_ids.size(), 12u);
  EXPECT_TRUE(longer.text.starts_with("The capital of France is Paris."));
}

TEST(SmolLM2, ARequestThatCannotBeServedSaysWhy) {
  LLM llm(options());
  try {
    llm.generate({Prompt(std::vector<int32_t>(2000, 5))}, greedy(1));
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_NE(std::string(error.what()).find("2000 tokens"), std::string::npos) << error.what();
  }
  EXPECT_THROW(llm.generate({Prompt("x")}, SamplingParams{.max_tokens = 0}), Error);
  EXPECT_EQ(llm.generate({Prompt("x")}, greedy(3)).front().token_ids.size(), 3u);
}

}  // namespace
}  // namespace minisgl::testing
