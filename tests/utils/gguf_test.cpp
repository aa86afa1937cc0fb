#include "utils/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <limits>

#include "goldens.h"
#include "utils/error.h"
#include "utils/files.h"
#include "utils/gguf_builder.h"

namespace minisgl {
namespace {

using ::testing::ElementsAre;
using testing::GgufBuilder;
using ::testing::HasSubstr;

std::span<const std::byte> bytes_of_text(const std::string& text) {
  return std::as_bytes(std::span(text));
}

// A folder of its own that goes away with the test.
class GgufFolder : public ::testing::Test {
 protected:
  GgufFolder() : dir_(::testing::TempDir() + "gguf_" + std::to_string(::getpid())) {
    std::filesystem::create_directories(dir_);
  }
  ~GgufFolder() override { std::filesystem::remove_all(dir_); }
  std::string put(const std::string& name, const GgufBuilder& content) const {
    write_file(dir_ + "/" + name, content.build());
    return dir_ + "/" + name;
  }
  std::string dir_;
};

const std::vector<float> kSixFloats = {1, 2, 3, 4, 5, 6};

GgufBuilder small_file() {
  GgufBuilder file;
  file.string("general.architecture", "llama").u32("llama.block_count", 2);
  file.array("tokens", GgufType::kString, 3,
             GgufBuilder::text("a") + GgufBuilder::text("") + GgufBuilder::text("c\xff"));
  file.floats("weight", {3, 2}, kSixFloats).floats("bias", {2}, std::span(kSixFloats).first(2));
  return file;
}

ErrorKind kind_of(const std::function<void()>& action, std::string& message) {
  try {
    action();
  } catch (const Error& error) {
    message = error.what();
    return error.kind();
  }
  ADD_FAILURE() << "no error";
  return ErrorKind::kInternal;
}

TEST(GgufTest, ReadsEveryScalarTypeOfMetadata) {
  GgufBuilder file;
  file.key("u8", GgufType::kUInt8, GgufBuilder::raw<uint8_t>(200));
  file.key("i8", GgufType::kInt8, GgufBuilder::raw<int8_t>(-100));
  file.key("u16", GgufType::kUInt16, GgufBuilder::raw<uint16_t>(60000));
  file.key("i16", GgufType::kInt16, GgufBuilder::raw<int16_t>(-30000));
  file.key("u32", GgufType::kUInt32, GgufBuilder::raw<uint32_t>(4000000000u));
  file.key("i32", GgufType::kInt32, GgufBuilder::raw<int32_t>(-2000000000));
  file.key("u64", GgufType::kUInt64, GgufBuilder::raw<uint64_t>(1ull << 62));
  file.key("i64", GgufType::kInt64, GgufBuilder::raw<int64_t>(-(1ll << 62)));
  file.key("f32", GgufType::kFloat32, GgufBuilder::raw(0.5f));
  file.key("f64", GgufType::kFloat64, GgufBuilder::raw(0.1));
  file.key("yes", GgufType::kBool, GgufBuilder::raw<uint8_t>(1));
  file.key("no", GgufType::kBool, GgufBuilder::raw<uint8_t>(0));
  file.string("text", "h\xc3\xa9");
  const std::string content = file.build();
  const GgufFile gguf = GgufFile::parse(bytes_of_text(content), "x.gguf");
  EXPECT_EQ(gguf.integer("u8"), 200);
  EXPECT_EQ(gguf.integer("i8"), -100);
  EXPECT_EQ(gguf.integer("u16"), 60000);
  EXPECT_EQ(gguf.integer("i16"), -30000);
  EXPECT_EQ(gguf.integer("u32"), 4000000000);
  EXPECT_EQ(gguf.integer("i32"), -2000000000);
  EXPECT_EQ(gguf.integer("u64"), 1ll << 62);
  EXPECT_EQ(gguf.integer("i64"), -(1ll << 62));
  EXPECT_EQ(gguf.number("f32"), 0.5);
  EXPECT_EQ(gguf.number("f64"), 0.1);
  EXPECT_EQ(gguf.number("i8"), -100.0);
  EXPECT_EQ(gguf.boolean("yes"), true);
  EXPECT_EQ(gguf.boolean("no"), false);
  EXPECT_EQ(gguf.string("text"), "h\xc3\xa9");
  EXPECT_EQ(gguf.metadata().size(), 13u);
  EXPECT_EQ(gguf.metadata()[2].first, "u16");
}

TEST(GgufTest, ReadsArraysAndNestedArrays) {
  GgufBuilder file;
  const auto raw32 = [](int32_t v) { return GgufBuilder::raw(v); };
  const std::string inner =
      GgufBuilder::raw(uint32_t{5}) + GgufBuilder::raw(uint64_t{2}) + raw32(7) + raw32(-8);
  file.array("ints", GgufType::kInt32, 3, raw32(1) + raw32(-2) + raw32(3));
  file.array("floats", GgufType::kFloat32, 2, GgufBuilder::raw(0.5f) + GgufBuilder::raw(2.0f));
  file.array("flags", GgufType::kBool, 2, std::string("\1\0", 2));
  file.array("nested", GgufType::kArray, 2, inner + inner);
  file.array("empty", GgufType::kInt32, 0, "");
  const std::string content = file.build();
  const GgufFile gguf = GgufFile::parse(bytes_of_text(content), "x.gguf");
  EXPECT_THAT(*gguf.integers("ints"), ElementsAre(1, -2, 3));
  EXPECT_THAT(*gguf.numbers("floats"), ElementsAre(0.5, 2.0));
  EXPECT_THAT(*gguf.numbers("ints"), ElementsAre(1.0, -2.0, 3.0));
  EXPECT_THAT(*gguf.booleans("flags"), ElementsAre(true, false));
  EXPECT_TRUE(gguf.strings("empty")->empty());
  const auto& nested = std::get<GgufArray>(gguf.find("nested")->data);
  ASSERT_EQ(nested.arrays.size(), 2u);
  EXPECT_EQ(std::get<int64_t>(std::get<GgufArray>(nested.arrays[1].data).at(1).data), -8);
}

TEST(GgufTest, FindsTensorsWithTheirBytes) {
  const std::string content = small_file().build();
  const GgufFile gguf = GgufFile::parse(bytes_of_text(content), "x.gguf");
  EXPECT_THAT(*gguf.strings("tokens"), ElementsAre("a", "", "c\xff"));
  ASSERT_EQ(gguf.tensors().size(), 2u);
  const GgufTensor* bias = gguf.find_tensor("bias");
  ASSERT_NE(bias, nullptr);
  EXPECT_EQ(bias->num_dims, 1);
  EXPECT_EQ(bias->dims[0], 2);
  EXPECT_EQ(bias->data.size(), 8u);
  float second = 0;
  std::memcpy(&second, bias->data.data() + 4, 4);
  EXPECT_EQ(second, 2.0f);
  EXPECT_EQ(gguf.find_tensor("nothing"), nullptr);
  EXPECT_EQ(gguf.find("nothing"), nullptr);
  EXPECT_EQ(gguf.integer("nothing"), std::nullopt);
}

TEST(GgufTest, AKeyOfAnotherTypeIsAnErrorThatNamesBoth) {
  const std::string content = small_file().build();
  const GgufFile gguf = GgufFile::parse(bytes_of_text(content), "x.gguf");
  std::string message;
  EXPECT_EQ(kind_of([&] { gguf.integer("general.architecture"); }, message), ErrorKind::kBadFile);
  EXPECT_THAT(message, HasSubstr("x.gguf: metadata key 'general.architecture' is of type string"));
  EXPECT_THROW(gguf.string("llama.block_count"), Error);
  EXPECT_THROW(gguf.boolean("llama.block_count"), Error);
  EXPECT_THROW(gguf.integers("tokens"), Error);
  EXPECT_THROW(gguf.strings("llama.block_count"), Error);
}

TEST(GgufTest, EveryTruncationIsAnError) {
  const std::string whole = small_file().build();
  ASSERT_NO_THROW(GgufFile::parse(bytes_of_text(whole), "x.gguf"));
  for (size_t size = 0; size < whole.size(); ++size) {
    const std::string part = whole.substr(0, size);
    EXPECT_THROW(GgufFile::parse(bytes_of_text(part), "x.gguf"), Error) << size << " bytes";
  }
}

TEST(GgufTest, EveryBitFlipIsReadOrRefusedButNeverCrashes) {
  const std::string whole = small_file().build();
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    try {
      const GgufFile gguf = GgufFile::parse(bytes_of_text(damaged), "x.gguf");
      for (const GgufTensor& tensor : gguf.tensors()) {
        EXPECT_GE(tensor.data.data(), bytes_of_text(damaged).data());
        EXPECT_LE(tensor.data.data() + tensor.data.size(),
                  bytes_of_text(damaged).data() + damaged.size());
      }
    } catch (const Error&) {
    }
  }
}

TEST(GgufTest, ACutOffTensorSaysWhichBytesItNeeds) {
  std::string content = small_file().build();
  content.resize(content.size() - 3);
  std::string message;
  EXPECT_EQ(kind_of([&] { GgufFile::parse(bytes_of_text(content), "cut.gguf"); }, message),
            ErrorKind::kBadFile);
  EXPECT_THAT(message,
              HasSubstr(fmt::format("cut.gguf: tensor 'bias' needs bytes {}..{}, the file "
                                    "has {}",
                                    content.size() - 5, content.size() + 3, content.size())));
}

struct HostileCase {
  const char* name;
  std::function<void(GgufBuilder&)> damage;
  const char* message;
  ErrorKind kind = ErrorKind::kBadFile;
};
void PrintTo(const HostileCase& hostile, std::ostream* out) { *out << hostile.name; }

class GgufHostile : public ::testing::TestWithParam<HostileCase> {};

TEST_P(GgufHostile, IsRefusedWithAReason) {
  GgufBuilder file = small_file();
  GetParam().damage(file);
  const std::string content = file.build();
  std::string message;
  EXPECT_EQ(kind_of([&] { GgufFile::parse(bytes_of_text(content), "x.gguf"); }, message),
            GetParam().kind);
  EXPECT_THAT(message, HasSubstr(GetParam().message));
  EXPECT_THAT(message, HasSubstr("x.gguf"));
}

constexpr uint64_t kHuge = std::numeric_limits<uint64_t>::max();

INSTANTIATE_TEST_SUITE_P(
    Headers, GgufHostile,
    ::testing::ValuesIn(std::vector<HostileCase>{
        {"OtherMagic", [](GgufBuilder& f) { f.magic = "GGML"; }, "not a GGUF file"},
        {"Version0", [](GgufBuilder& f) { f.version = 0; }, "version 0", ErrorKind::kUnsupported},
        {"Version1", [](GgufBuilder& f) { f.version = 1; }, "version 1", ErrorKind::kUnsupported},
        {"Version4", [](GgufBuilder& f) { f.version = 4; }, "version 4", ErrorKind::kUnsupported},
        {"BigEndian", [](GgufBuilder& f) { f.version = 0x03000000; }, "big-endian",
         ErrorKind::kUnsupported},
        {"TooManyTensors", [](GgufBuilder& f) { f.extra_tensors = 1ll << 60; }, "tensors, more"},
        {"NegativeTensors", [](GgufBuilder& f) { f.extra_tensors = -3; }, "tensors, more"},
        {"TooManyKeys", [](GgufBuilder& f) { f.extra_keys = 1ll << 60; }, "metadata keys, more"},
        {"EmptyKey", [](GgufBuilder& f) { f.u32("", 1); }, "has 0 bytes"},
        {"DuplicateKey", [](GgufBuilder& f) { f.u32("llama.block_count", 3); }, "twice"},
        {"UnknownValueType",
         [](GgufBuilder& f) { f.key("k", static_cast<GgufType>(13), "abcdefgh"); },
         "unknown value type 13"},
        {"HugeString",
         [](GgufBuilder& f) { f.key("k", GgufType::kString, GgufBuilder::raw(kHuge)); },
         "metadata key 'k' needs 18446744073709551615 bytes"},
        {"HugeArray", [](GgufBuilder& f) { f.array("k", GgufType::kUInt8, kHuge, ""); },
         "metadata key 'k'"},
        {"OverflowingArray",
         [](GgufBuilder& f) { f.array("k", GgufType::kUInt64, 1ull << 61, ""); },
         "metadata key 'k'"},
        {"HugeStringArray", [](GgufBuilder& f) { f.array("k", GgufType::kString, 1ull << 40, ""); },
         "metadata key 'k'"},
        {"DeepArrays",
         [](GgufBuilder& f) {
           std::string nested;
           for (int i = 0; i < 1000; ++i) {
             nested += GgufBuilder::raw(uint32_t{9}) + GgufBuilder::raw(uint64_t{1});
           }
           f.key("k", GgufType::kArray, nested);
         },
         "deeper than"},
        {"BoolOfTwo", [](GgufBuilder& f) { f.key("k", GgufType::kBool, "\2"); }, "expected 0 or 1"},
        {"BoolArrayOfTwo", [](GgufBuilder& f) { f.array("k", GgufType::kBool, 1, "\2"); },
         "expected 0 or 1"},
        {"AlignmentZero", [](GgufBuilder& f) { f.u32("general.alignment", 0); }, "power of two"},
        {"AlignmentThree", [](GgufBuilder& f) { f.u32("general.alignment", 3); }, "power of two"},
        {"AlignmentOne", [](GgufBuilder& f) { f.u32("general.alignment", 1); }, "power of two"},
        {"AlignmentInt32",
         [](GgufBuilder& f) {
           f.key("general.alignment", GgufType::kInt32, GgufBuilder::raw(int32_t{32}));
         },
         "of type int32, expected uint32"},
        {"AlignmentString", [](GgufBuilder& f) { f.string("general.alignment", "32"); },
         "of type string"},
        {"ZeroDimension", [](GgufBuilder& f) { f.tensors[0].dims[1] = 0; }, "expected at least 1"},
        {"NegativeDimension", [](GgufBuilder& f) { f.tensors[0].dims[0] = kHuge; },
         "expected at least 1"},
        {"OverflowingShape",
         [](GgufBuilder& f) {
           f.tensors[0].dims = {1ull << 32, 1ull << 32, 1ull << 32};
         },
         "overflows"},
        {"OverflowingBytes", [](GgufBuilder& f) { f.tensors[0].dims = {1ull << 62}; }, "overflows"},
        {"NoDimensions", [](GgufBuilder& f) { f.tensors[0].dims.clear(); }, "0 dimensions"},
        {"FiveDimensions",
         [](GgufBuilder& f) {
           f.tensors[0].dims = {1, 1, 1, 1, 1};
         },
         "5 dimensions"},
        {"UnknownTensorType", [](GgufBuilder& f) { f.tensors[0].type = 4; }, "unknown type 4"},
        {"HugeTensorType", [](GgufBuilder& f) { f.tensors[0].type = 0xffffffff; },
         "unknown type 4294967295"},
        {"RowIsNoWholeBlock", [](GgufBuilder& f) { f.tensors[0].type = 8; }, "multiple of 32"},
        {"EmptyTensorName", [](GgufBuilder& f) { f.tensors[0].name = ""; }, "has 0 bytes"},
        {"LongTensorName", [](GgufBuilder& f) { f.tensors[0].name = std::string(300, 'x'); },
         "has 300 bytes"},
        {"DuplicateTensor", [](GgufBuilder& f) { f.tensors[0].name = "bias"; }, "'bias' stands"},
        {"FarOffset", [](GgufBuilder& f) { f.tensors[1].offset = 1ull << 40; },
         "tensor 'bias' needs bytes"},
        {"OverflowingOffset", [](GgufBuilder& f) { f.tensors[1].offset = kHuge - 31; },
         "overflows"},
        {"UnalignedOffset", [](GgufBuilder& f) { f.tensors[1].offset = 4; }, "multiple of 32"},
        {"Overlap", [](GgufBuilder& f) { f.tensors[1].offset = 0; }, "overlaps tensor"},
        {"AShardInMemory",
         [](GgufBuilder&
                f) { f.key("split.count", GgufType::kUInt16, GgufBuilder::raw(uint16_t{3})); },
         "one shard of several", ErrorKind::kUnsupported},
    }),
    [](const auto& info) { return std::string(info.param.name); });

TEST(GgufTest, AMessageNeverHoldsControlCharactersOfAName) {
  GgufBuilder file = small_file();
  file.tensors[0].name = std::string("a\x1b[2J\n") + std::string(200, 'x');
  file.tensors[0].type = 99;
  const std::string content = file.build();
  std::string message;
  kind_of([&] { GgufFile::parse(bytes_of_text(content), "x.gguf"); }, message);
  EXPECT_THAT(message, HasSubstr("'a\\x1b[2J\\x0axxx"));
  EXPECT_LT(message.size(), 250u);
}

TEST(GgufTest, Version2ReadsAsVersion3) {
  GgufBuilder file = small_file();
  file.version = 2;
  const std::string content = file.build();
  EXPECT_EQ(GgufFile::parse(bytes_of_text(content), "x").version(), 2u);
}

TEST(GgufTest, AnotherAlignmentMovesTheData) {
  GgufBuilder file;
  file.alignment = 64;
  file.u32("general.alignment", 64).floats("a", {2}, std::span(kSixFloats).first(2));
  file.floats("b", {1}, std::span(kSixFloats).last(1));
  const std::string content = file.build();
  const GgufFile gguf = GgufFile::parse(bytes_of_text(content), "x");
  float value = 0;
  std::memcpy(&value, gguf.find_tensor("b")->data.data(), 4);
  EXPECT_EQ(value, 6.0f);
}

GgufBuilder shard(uint16_t number, uint16_t count, int32_t num_tensors) {
  GgufBuilder file;
  file.key("split.no", GgufType::kUInt16, GgufBuilder::raw(number));
  file.key("split.count", GgufType::kUInt16, GgufBuilder::raw(count));
  file.key("split.tensors.count", GgufType::kInt32, GgufBuilder::raw(num_tensors));
  file.floats("t" + std::to_string(number), {2}, std::span(kSixFloats).subspan(number, 2));
  return file;
}

TEST_F(GgufFolder, OpensAllShardsFromTheFirst) {
  const std::string first = put("m-00001-of-00002.gguf", shard(0, 2, 2));
  const std::string second = put("m-00002-of-00002.gguf", shard(1, 2, 2));
  GgufFile opened = GgufFile::open(first);
  const GgufFile gguf = std::move(opened);
  EXPECT_EQ(gguf.num_shards(), 2u);
  ASSERT_EQ(gguf.tensors().size(), 2u);
  EXPECT_EQ(gguf.shard_path(gguf.find_tensor("t1")->shard), second);
  float value = 0;
  std::memcpy(&value, gguf.find_tensor("t1")->data.data(), 4);
  EXPECT_EQ(value, 2.0f);
  std::string message;
  EXPECT_EQ(kind_of([&] { GgufFile::open(second); }, message), ErrorKind::kInvalidArgument);
  EXPECT_THAT(message, HasSubstr("00001-of-00002.gguf"));
}

TEST_F(GgufFolder, RefusesShardsThatDoNotBelongTogether) {
  const std::string first = put("m-00001-of-00002.gguf", shard(0, 2, 2));
  std::string message;
  EXPECT_EQ(kind_of([&] { GgufFile::open(first); }, message), ErrorKind::kNotFound);
  EXPECT_THAT(message, HasSubstr("m-00002-of-00002.gguf: shard 2 of 2"));

  put("m-00002-of-00002.gguf", shard(0, 2, 2));
  EXPECT_EQ(kind_of([&] { GgufFile::open(first); }, message), ErrorKind::kBadFile);
  EXPECT_THAT(message, HasSubstr("twice"));

  GgufBuilder misnumbered = shard(0, 2, 2);
  misnumbered.tensors[0].name = "other";
  put("m-00002-of-00002.gguf", misnumbered);
  EXPECT_EQ(kind_of([&] { GgufFile::open(first); }, message), ErrorKind::kBadFile);
  EXPECT_THAT(message, HasSubstr("split.no is 0, expected 1"));

  put("m-00002-of-00002.gguf", shard(1, 3, 2));
  EXPECT_EQ(kind_of([&] { GgufFile::open(first); }, message), ErrorKind::kBadFile);
  EXPECT_THAT(message, HasSubstr("split.count is 3"));

  put("m-00001-of-00002.gguf", shard(0, 2, 5));
  put("m-00002-of-00002.gguf", shard(1, 2, 5));
  EXPECT_EQ(kind_of([&] { GgufFile::open(first); }, message), ErrorKind::kBadFile);
  EXPECT_THAT(message, HasSubstr("hold 2 tensors, split.tensors.count says 5"));
}

TEST_F(GgufFolder, AMissingOrEmptyFileIsAnError) {
  std::string message;
  EXPECT_EQ(kind_of([&] { GgufFile::open(dir_ + "/no.gguf"); }, message), ErrorKind::kNotFound);
  write_file(dir_ + "/empty.gguf", "");
  EXPECT_EQ(kind_of([&] { GgufFile::open(dir_ + "/empty.gguf"); }, message), ErrorKind::kBadFile);
}

TEST(GgufTest, ReadsEveryReferenceModel) {
  if (!testing::goldens_dir()) GTEST_SKIP() << "the full reference data is not here";
  int opened = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(*testing::goldens_dir() + "/gguf/models")) {
    for (const auto& file : std::filesystem::directory_iterator(entry)) {
      const std::string path = file.path();
      if (!path.ends_with(".gguf") || path.find("00002-of") != path.npos ||
          path.find("00003-of") != path.npos) {
        continue;
      }
      const GgufFile gguf = GgufFile::open(path);
      EXPECT_EQ(gguf.strings("tokenizer.ggml.tokens")->size(), 512u) << path;
      EXPECT_NE(gguf.find_tensor("output_norm.weight"), nullptr) << path;
      ++opened;
    }
  }
  EXPECT_GE(opened, 21);
}

}  // namespace
}  // namespace minisgl
