#include "utils/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "utils/error.h"

namespace minisgl {
namespace {

using testing::ElementsAre;

class LogTest : public testing::Test {
 protected:
  Logger logger(LogLevel level) {
    return Logger::to_sink(level, [this](LogLevel at, std::string_view line) {
      lines_.push_back(std::string(log_level_name(at)) + "|" + std::string(line));
    });
  }
  std::vector<std::string> lines_;
};

TEST_F(LogTest, WritesLinesAtItsLevelAndAbove) {
  const Logger log = logger(LogLevel::kInfo);
  log.debug("hidden {}", 1);
  log.info("loaded {} tensors", 3);
  log.warn("{} braces stay: {}", "{}", "%s");
  log.error("bad");
  EXPECT_THAT(lines_, ElementsAre("info|loaded 3 tensors", "warn|{} braces stay: %s", "error|bad"));
}

TEST_F(LogTest, PrefixStandsBeforeEveryLineOfThatHandleOnly) {
  const Logger log = logger(LogLevel::kInfo);
  const Logger rank = log.with_prefix("rank 1:");
  rank.info("up");
  log.info("all up");
  EXPECT_THAT(lines_, ElementsAre("info|rank 1: up", "info|all up"));
}

TEST_F(LogTest, OffAndTheEmptyLoggerWriteNothing) {
  logger(LogLevel::kOff).error("no");
  Logger().error("no");
  EXPECT_FALSE(Logger().enabled(LogLevel::kError));
  EXPECT_THAT(lines_, ElementsAre());
}

TEST(LogToStderr, LineHasTimeLevelAndMessage) {
  testing::internal::CaptureStderr();
  Logger::to_stderr(LogLevel::kInfo).info("pool of {} pages", 64);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::MatchesRegex("[0-9][0-9]:[0-9][0-9]:[0-9][0-9]\\.[0-9][0-9][0-9] info  pool "
                                    "of 64 pages\n"));
}

TEST(LogLevelFromEnvironment, ReadsTheNameOrFallsBackOrRefuses) {
  ::setenv("MINISGL_LOG_LEVEL", "debug", 1);
  EXPECT_EQ(log_level_from_environment(LogLevel::kWarn), LogLevel::kDebug);
  ::setenv("MINISGL_LOG_LEVEL", "loud", 1);
  try {
    log_level_from_environment(LogLevel::kWarn);
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(error.what(), testing::HasSubstr("'loud', expected one of trace, debug"));
  }
  ::unsetenv("MINISGL_LOG_LEVEL");
  EXPECT_EQ(log_level_from_environment(LogLevel::kWarn), LogLevel::kWarn);
}

TEST(LogLevelNames, RoundTrip) {
  for (const char* name : {"trace", "debug", "info", "warn", "error", "off"}) {
    ASSERT_TRUE(parse_log_level(name)) << name;
    EXPECT_EQ(log_level_name(*parse_log_level(name)), name);
  }
  EXPECT_EQ(parse_log_level("INFO"), std::nullopt);
}

TEST(EveryInterval, IsDueAtMostOnceAnInterval) {
  using std::chrono::milliseconds;
  EveryInterval summary(std::chrono::seconds(1));
  const EveryInterval::Clock::time_point start{};
  EXPECT_TRUE(summary.due(start));
  EXPECT_FALSE(summary.due(start + milliseconds(999)));
  EXPECT_TRUE(summary.due(start + milliseconds(1000)));
  EXPECT_FALSE(summary.due(start + milliseconds(1999)));
  EXPECT_TRUE(summary.due(start + milliseconds(5000)));
}

}  // namespace
}  // namespace minisgl
