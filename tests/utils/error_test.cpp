#include "utils/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace minisgl {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(ThrowError, CarriesItsKindAndTheFormattedMessage) {
  try {
    throw_error(ErrorKind::kBadFile, "{}: ends at byte {}", "a.gguf", 12);
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kBadFile);
    EXPECT_STREQ(error.what(), "a.gguf: ends at byte 12");
  }
}

TEST(Check, PassesWhenTheConditionHoldsAndEvaluatesItOnce) {
  int calls = 0;
  MINISGL_CHECK(++calls == 1, "called {} times", calls);
  EXPECT_EQ(calls, 1);
}

TEST(Check, NamesConditionPlaceAndMessage) {
  try {
    const int pages = 3;
    MINISGL_CHECK(pages == 4, "{} pages are free", pages);
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInternal);
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("error_test.cpp:"), HasSubstr("pages == 4 does not hold"),
                      HasSubstr("3 pages are free"), HasSubstr("please report this")));
  }
}

TEST(Check, NeedsNoMessage) { EXPECT_THROW(MINISGL_CHECK(1 > 2), Error); }

struct KindCase {
  ErrorKind kind;
  const char* name;
  int exit_code;
  int http_status;
};

class Kinds : public testing::TestWithParam<KindCase> {};

TEST_P(Kinds, HaveANameAnExitCodeAndAnHttpStatus) {
  EXPECT_STREQ(error_kind_name(GetParam().kind), GetParam().name);
  EXPECT_EQ(exit_code(GetParam().kind), GetParam().exit_code);
  EXPECT_EQ(http_status(GetParam().kind), GetParam().http_status);
}

INSTANTIATE_TEST_SUITE_P(All, Kinds,
                         testing::ValuesIn<KindCase>({
                             {ErrorKind::kInvalidArgument, "invalid argument", 2, 400},
                             {ErrorKind::kNotFound, "not found", 3, 404},
                             {ErrorKind::kBadFile, "bad file", 4, 500},
                             {ErrorKind::kUnsupported, "unsupported", 5, 400},
                             {ErrorKind::kResource, "resource", 6, 503},
                             {ErrorKind::kNetwork, "network", 7, 503},
                             {ErrorKind::kCancelled, "cancelled", 8, 499},
                             {ErrorKind::kInternal, "internal", 70, 500},
                         }));

}  // namespace
}  // namespace minisgl
