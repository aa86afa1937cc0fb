#include "loader/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "goldens.h"
#include "loader/safetensors_builder.h"
#include "utils/error.h"

namespace minisgl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::SafetensorsBuilder;

const std::vector<float> kSixFloats = {1, 2, 3, 4, 5, 6};

SafetensorsBuilder small_file() {
  SafetensorsBuilder file;
  file.entry(R"("__metadata__":{"format":"pt"})");
  file.floats("b", {2, 3}, kSixFloats).add("a", "BF16", {2}, "\x80\x3f\x80\x40");
  return file;
}

SafetensorsFile parse(const std::string& content) {
  return SafetensorsFile::parse(std::as_bytes(std::span(content)), "x.safetensors");
}

TEST(SafetensorsTest, FindsTensorsWithShapeTypeAndBytes) {
  const std::string content = small_file().build();
  const SafetensorsFile file = parse(content);
  ASSERT_EQ(file.tensors().size(), 2u);
  EXPECT_EQ(file.tensors()[0].name, "b");
  EXPECT_THAT(file.find("b")->shape, ElementsAre(2, 3));
  EXPECT_EQ(file.find("b")->dtype, DType::kFloat32);
  EXPECT_EQ(file.find("a")->dtype, DType::kBFloat16);
  EXPECT_EQ(file.find("a")->data.size(), 4u);
  EXPECT_EQ(file.find("c"), nullptr);
  EXPECT_EQ(file.metadata().at("format"), "pt");
}

TEST(SafetensorsTest, ReadsTypesThatNoWeightHas) {
  SafetensorsBuilder file;
  file.add("i", "I64", {1}, "12345678").add("u", "U16", {1}, "12");
  const std::string content = file.build();
  EXPECT_EQ(parse(content).find("i")->dtype, DType::kInt64);
  EXPECT_EQ(parse(content).find("u")->dtype, std::nullopt);
  EXPECT_EQ(parse(content).find("u")->stored_dtype, "U16");
}

TEST(SafetensorsTest, EveryTruncationIsAnError) {
  const std::string whole = small_file().build();
  ASSERT_NO_THROW(parse(whole));
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_THROW(parse(whole.substr(0, size)), Error) << size << " bytes";
  }
  EXPECT_THROW(parse(whole + "x"), Error);
}

TEST(SafetensorsTest, EveryBitFlipIsReadOrRefusedButNeverCrashes) {
  const std::string whole = small_file().build();
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    try {
      const SafetensorsFile file = parse(damaged);
      for (const SafetensorsTensor& tensor : file.tensors()) {
        EXPECT_LE(reinterpret_cast<const char*>(tensor.data.data()) + tensor.data.size(),
                  damaged.data() + damaged.size());
      }
    } catch (const Error&) {
    }
  }
}

TEST(SafetensorsTest, ACutOffTensorSaysWhichBytesItNeeds) {
  std::string content = small_file().build();
  content.resize(content.size() - 3);
  try {
    parse(content);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kBadFile);
    EXPECT_THAT(error.what(),
                HasSubstr(fmt::format("x.safetensors: tensor 'a' needs bytes {}..{}, the file has "
                                      "{}",
                                      content.size() - 1, content.size() + 3, content.size())));
  }
}

struct HostileCase {
  const char* name;
  const char* header;  // of a file with 8 bytes of data
  const char* message;
};
void PrintTo(const HostileCase& hostile, std::ostream* out) { *out << hostile.name; }

class SafetensorsHostile : public ::testing::TestWithParam<HostileCase> {};

TEST_P(SafetensorsHostile, IsRefusedWithAReason) {
  const std::string content = SafetensorsBuilder::with_header(GetParam().header, "12345678");
  try {
    parse(content);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kBadFile);
    EXPECT_THAT(error.what(), HasSubstr("x.safetensors"));
    EXPECT_THAT(error.what(), HasSubstr(GetParam().message));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Headers, SafetensorsHostile,
    ::testing::ValuesIn(std::vector<HostileCase>{
        {"NotJson", "{", "not valid JSON"},
        {"NotAnObject", "[]", "no JSON object"},
        {"NotUtf8", "{\"\xff\":1}", "not valid JSON"},
        {"EntryIsNoObject", R"({"a":1})", "no JSON object"},
        {"EmptyName", R"({"":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "empty name"},
        {"DuplicateName",
         R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},
             "a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
         "'a' stands there twice"},
        {"DuplicateField",
         R"({"a":{"dtype":"F32","dtype":"I32","shape":[2],"data_offsets":[0,8]}})",
         "'dtype' stands there twice"},
        {"NoDtype", R"({"a":{"shape":[2],"data_offsets":[0,8]}})", "no 'dtype'"},
        {"NoShape", R"({"a":{"dtype":"F32","data_offsets":[0,8]}})", "no 'shape'"},
        {"NoOffsets", R"({"a":{"dtype":"F32","shape":[2]}})", "no 'data_offsets'"},
        {"UnknownDtype", R"({"a":{"dtype":"F99","shape":[2],"data_offsets":[0,8]}})",
         "unknown dtype \"F99\""},
        {"DtypeIsANumber", R"({"a":{"dtype":7,"shape":[2],"data_offsets":[0,8]}})",
         "unknown dtype 7"},
        {"ShapeIsAString", R"({"a":{"dtype":"F32","shape":"2","data_offsets":[0,8]}})",
         "no list of at most 8 numbers"},
        {"NineDimensions",
         R"({"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,2],"data_offsets":[0,8]}})",
         "no list of at most 8 numbers"},
        {"NegativeDimension", R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})",
         "a dimension of tensor 'a' is -2"},
        {"HalfADimension", R"({"a":{"dtype":"F32","shape":[2.5],"data_offsets":[0,8]}})",
         "a dimension of tensor 'a' is 2.5"},
        {"HugeDimension",
         R"({"a":{"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,8]}})",
         "is 18446744073709551615"},
        {"OverflowingShape",
         R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]}})",
         "overflows"},
        {"ThreeOffsets", R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4,8]}})",
         "no two numbers"},
        {"NegativeOffset", R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[-8,0]}})",
         "a data offset of tensor 'a' is -8"},
        {"BackwardOffsets", R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})",
         "expected 8 bytes"},
        {"WrongSize", R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})",
         "expected 12 bytes"},
        {"PastTheEnd", R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})", "needs bytes"},
        {"FarPastTheEnd",
         R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[9223372036854775807,9223372036854775807]}})",
         "needs bytes"},
        {"Overlap",
         R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},
             "b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
         "inside the tensor before it"},
        {"Gap", R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", "after a gap"},
        {"BytesLeft", R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
         "the tensors end at byte"},
        {"MetadataIsAList", R"({"__metadata__":[]})", "__metadata__ is no JSON object"},
        {"MetadataOfNumbers", R"({"__metadata__":{"a":1}})", "is no string"},
    }),
    [](const auto& info) { return std::string(info.param.name); });

TEST(SafetensorsTest, AHugeHeaderIsRefused) {
  std::string content = small_file().build();
  for (const uint64_t size : {uint64_t{1} << 40, ~uint64_t{0}, uint64_t{1} << 26}) {
    std::memcpy(content.data(), &size, sizeof size);
    EXPECT_THROW(parse(content), Error) << size;
  }
}

TEST(SafetensorsTest, ADeepHeaderIsRefused) {
  const std::string content = SafetensorsBuilder::with_header(std::string(100000, '['), "");
  EXPECT_THROW(parse(content), Error);
}

TEST(SafetensorsTest, EmptyTensorsAreFine) {
  SafetensorsBuilder file;
  file.add("empty", "F32", {0, 4}, "").floats("b", {6}, kSixFloats);
  const std::string content = file.build();
  EXPECT_EQ(parse(content).find("empty")->data.size(), 0u);
}

TEST(SafetensorsTest, MovingKeepsTheMapping) {
  const std::string path = testing::test_data_dir() + "/gguf/blocks/Q8_0.safetensors";
  SafetensorsFile opened = SafetensorsFile::open(path);
  const std::byte first = opened.find("raw")->data[0];
  const SafetensorsFile file = std::move(opened);
  EXPECT_EQ(file.path(), path);
  file.release(file.find("raw")->data);
  EXPECT_EQ(file.find("raw")->data[0], first);
}

}  // namespace
}  // namespace minisgl
