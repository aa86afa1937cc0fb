#include "scheduler/check_sampling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "message/samples.h"
#include "utils/error.h"

namespace minisgl::testing {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kVocab = 1000;

struct Wrong {
  SamplingParams params;
  std::vector<const char*> says;  // the parameter, its range, what was found
};

class OutOfRange : public ::testing::TestWithParam<Wrong> {};

TEST_P(OutOfRange, IsRefusedWithTheNameTheRangeAndTheValue) {
  try {
    check_sampling(GetParam().params, kVocab);
    FAIL() << "accepted; expected: " << GetParam().says.front();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    for (const char* text : GetParam().says) EXPECT_THAT(error.what(), HasSubstr(text));
  }
}

const double kNaN = std::nan("");

INSTANTIATE_TEST_SUITE_P(
    Parameters, OutOfRange,
    ::testing::Values(
        Wrong{{.temperature = -0.1}, {"temperature", "0 to 100", "-0.1"}},
        Wrong{{.temperature = kNaN}, {"temperature", "nan"}},
        Wrong{{.top_p = 0.0}, {"top_p", "above 0 up to 1", "0"}},
        Wrong{{.min_p = 1.5}, {"min_p", "0 to 1", "1.5"}},
        Wrong{{.repetition_penalty = 0.0}, {"repetition_penalty", "above 0 up to 10", "0"}},
        Wrong{{.repetition_penalty = kNaN}, {"repetition_penalty", "nan"}},
        Wrong{{.frequency_penalty = 2.5}, {"frequency_penalty", "-2 to 2", "2.5"}},
        Wrong{{.presence_penalty = -3}, {"presence_penalty", "-2 to 2", "-3"}},
        Wrong{{.logit_bias = {{5, 1}, {1000, -100}}}, {"logit_bias", "0 to 999", "1000"}},
        Wrong{{.logit_bias = {{-1, 0}}}, {"logit_bias", "0 to 999", "-1"}},
        Wrong{{.logit_bias = {{5, 101}}}, {"logit_bias", "-100 to 100", "101"}},
        Wrong{{.logit_bias = {{5, kNaN}}}, {"logit_bias", "nan"}},
        Wrong{{.max_tokens = 0}, {"max_tokens", "at least 1", "0"}},
        Wrong{{.max_tokens = 8, .min_tokens = 9}, {"min_tokens", "max_tokens (8)", "9"}},
        Wrong{{.min_tokens = -1}, {"min_tokens", "from 0", "-1"}},
        Wrong{{.stop_token_ids = {3, 1000}}, {"stop_token_ids", "0 to 999", "1000"}},
        Wrong{{.logprobs = 21}, {"logprobs", "0 to 20", "21"}},
        Wrong{{.logprobs = -1}, {"logprobs", "0 to 20", "-1"}},
        Wrong{{.prompt_logprobs = 1 << 30}, {"prompt_logprobs", "0 to 20"}}));

TEST(CheckSampling, TakesTheEndsOfEveryRange) {
  check_sampling({}, kVocab);
  check_sampling({.temperature = 100,
                  .top_p = 1,
                  .min_p = 1,
                  .repetition_penalty = 10,
                  .frequency_penalty = -2,
                  .presence_penalty = 2,
                  .logit_bias = {{0, -100}, {999, 100}},
                  .max_tokens = 1,
                  .min_tokens = 1,
                  .stop_token_ids = {0, 999},
                  .logprobs = 20,
                  .prompt_logprobs = 0},
                 kVocab);
  // No more are most likely than there are.
  check_sampling({.logprobs = 8}, 8);
  EXPECT_THROW(check_sampling({.logprobs = 9}, 8), Error);
}

TEST(SamplesOf, GivesEachSampleASeedOfItsOwnThatFollowsFromTheRequests) {
  GenerateRequest request;
  request.input_ids = {1, 2};
  request.sampling_params = {.seed = 5, .n = 3, .prompt_logprobs = 0};
  const auto samples = samples_of(request);
  const auto again = samples_of(request);
  ASSERT_EQ(samples.size(), 3u);
  EXPECT_EQ(samples[0].sampling_params.seed, 5u);
  EXPECT_NE(samples[1].sampling_params.seed, 5u);
  EXPECT_NE(samples[1].sampling_params.seed, samples[2].sampling_params.seed);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(samples[i].sampling_params.seed, again[i].sampling_params.seed);
    EXPECT_EQ(samples[i].sampling_params.n, 1);
    EXPECT_EQ(samples[i].sampling_params.prompt_logprobs.has_value(), i == 0);
    EXPECT_EQ(samples[i].input_ids, request.input_ids);
  }
  for (const int64_t n : {0, -1, 129}) {
    request.sampling_params.n = n;
    EXPECT_THROW(samples_of(request), Error) << n;
  }
}

}  // namespace
}  // namespace minisgl::testing
