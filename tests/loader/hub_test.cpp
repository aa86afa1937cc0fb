#include "loader/hub.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <filesystem>

#include "loader/http_client.h"
#include "loader/hub_files.h"
#include "loader/hub_names.h"
#include "loader/model_store.h"
#include "utils/error.h"
#include "utils/files.h"

namespace minisgl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Names = std::vector<std::string>;

template <class F>
void expect_error(ErrorKind kind, const std::string& part, F&& f) {
  try {
    f();
    ADD_FAILURE() << "expected an error with '" << part << "'";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_THAT(error.what(), HasSubstr(part));
  }
}

// A folder of its own for a test, with the environment variables that hubs read unset.
class HubTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name :
         {"HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "XDG_CACHE_HOME", "HF_ENDPOINT",
          "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_TOKEN_PATH", "HF_HUB_DISABLE_IMPLICIT_TOKEN",
          "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_HUB_DOWNLOAD_TIMEOUT", "MODELSCOPE_CACHE",
          "MODELSCOPE_ENDPOINT", "MODELSCOPE_DOMAIN", "MODELSCOPE_API_TOKEN"}) {
      ::unsetenv(name);
    }
    std::string name = testing::TempDir() + "hub_test_XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    ::setenv("HOME", folder_.c_str(), 1);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& file, const std::string& content) {
    const std::filesystem::path path = folder_ + "/" + file;
    std::filesystem::create_directories(path.parent_path());
    write_file(path.string(), content);
  }
  std::string folder_;
};

struct NameCase {
  const char* text;
  const char* id;  // nullptr: not the name of a model on a hub
  const char* gguf = "";
  const char* revision = "";
};

TEST(HubName, IsParsedOrLeftToBeALocalPath) {
  for (const NameCase& c : std::initializer_list<NameCase>{
           {"Qwen/Qwen3-0.6B", "Qwen/Qwen3-0.6B"},
           {"a/b", "a/b"},
           {"org/repo@v1.0", "org/repo", "", "v1.0"},
           {"org/repo@refs/pr/1", "org/repo", "", "refs/pr/1"},
           {"org/repo:Q4_K_M", "org/repo", "Q4_K_M"},
           {"org/repo:Q4_K_M@main", "org/repo", "Q4_K_M", "main"},
           {"org/repo@main:Q4_K_M", "org/repo", "Q4_K_M", "main"},
           {"org/repo:sub/x-Q8_0.gguf", "org/repo", "sub/x-Q8_0.gguf"},
           {"", nullptr},
           {"gpt2", nullptr},
           {"model.gguf", nullptr},
           {"models/tiny.gguf", nullptr},
           {"models/config.json", nullptr},
           {"/org/repo", nullptr},
           {"./org/repo", nullptr},
           {"../org", nullptr},
           {"~/org", nullptr},
           {"a/b/c", nullptr},
           {"org/", nullptr},
           {"org/..", nullptr},
           {"org/re--po", nullptr},
           {"org/re po", nullptr},
           {"org/repo@", nullptr},
           {"org/repo:", nullptr},
           {"org/repo:Q4@a@b", nullptr},
           {"org/repo@../../x", nullptr},
           {"org/repo:../x.gguf", nullptr},
       }) {
    SCOPED_TRACE(c.text);
    const auto name = parse_hub_name(c.text);
    ASSERT_EQ(name.has_value(), c.id != nullptr);
    if (!name) continue;
    EXPECT_EQ(name->id(), c.id);
    EXPECT_EQ(name->gguf, c.gguf);
    EXPECT_EQ(name->revision, c.revision);
  }
}

TEST(SafeRelativePath, NeverLeavesItsFolder) {
  for (const char* good : {"a", "a/b.c", "..a", "a..", "a/...b", "ä/ö", "a\\b"}) {
    EXPECT_TRUE(is_safe_relative_path(good)) << good;
  }
  for (const char* bad : {"", "/", "/a", "a/", "a//b", ".", "..", "a/..", "../a", "a/../b", "./a",
                          "a\nb", "a\x1b[31m", "a\x7f"}) {
    EXPECT_FALSE(is_safe_relative_path(bad)) << bad;
  }
  EXPECT_FALSE(is_safe_relative_path(std::string("a\0b", 3)));
  EXPECT_FALSE(is_safe_relative_path(std::string(256, 'a')));
  EXPECT_FALSE(is_plain_name("../a"));
  EXPECT_FALSE(is_plain_name(".."));
  EXPECT_FALSE(is_plain_name("a/b"));
}

TEST(ModelFiles, LeaveOtherFormatsAndPrecisionsOut) {
  const ModelFiles files = choose_model_files(
      {".gitattributes", "README.md", "additional_chat_templates/tools.jinja", "config.json",
       "consolidated.safetensors", "generation_config.json", "model.fp16.safetensors",
       "model.safetensors", "onnx/model.onnx", "original/consolidated.00.pth", "pytorch_model.bin",
       "tokenizer.json", "tokenizer_config.json"},
      "o/r");
  EXPECT_THAT(files.small,
              ElementsAre("additional_chat_templates/tools.jinja", "config.json",
                          "generation_config.json", "tokenizer.json", "tokenizer_config.json"));
  EXPECT_THAT(files.weights, ElementsAre("model.safetensors"));
  EXPECT_EQ(files.index, "");
}

TEST(ModelFiles, OfAShardedModelAreThoseThatTheIndexNames) {
  const Names listing = {"config.json", "consolidated.safetensors",
                         "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
                         "model.safetensors.index.json"};
  const ModelFiles files = choose_model_files(listing, "o/r");
  EXPECT_EQ(files.index, "model.safetensors.index.json");
  EXPECT_THAT(files.small, ElementsAre("config.json", "model.safetensors.index.json"));
  EXPECT_THAT(choose_shards(R"({"weight_map": {"b": "model-00002-of-00002.safetensors",
      "a": "model-00001-of-00002.safetensors", "c": "model-00002-of-00002.safetensors"}})",
                            listing, "o/r"),
              ElementsAre("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"));
  expect_error(ErrorKind::kNotFound, "model-00003-of-00003.safetensors is missing", [&] {
    choose_shards(R"({"weight_map": {"a": "model-00003-of-00003.safetensors"}})", listing, "o/r");
  });
  for (const char* bad : {"", "[]", "{}", R"({"weight_map": []})", R"({"weight_map": {}})",
                          R"({"weight_map": {"a": 1}})"}) {
    expect_error(ErrorKind::kBadFile, "model.safetensors.index.json",
                 [&] { choose_shards(bad, listing, "o/r"); });
  }
}

TEST(ModelFiles, WithoutAnIndexAreAllShards) {
  const ModelFiles files =
      choose_model_files({"config.json", "model-1-of-2.safetensors", "model-2-of-2.safetensors",
                          "sub/model-1-of-2.safetensors"},
                         "o/r");
  EXPECT_THAT(files.weights, ElementsAre("model-1-of-2.safetensors", "model-2-of-2.safetensors"));
}

TEST(ModelFiles, SayWhatIsMissing) {
  expect_error(ErrorKind::kNotFound, "model.safetensors",
               [] { choose_model_files({"config.json"}, "o/r"); });
  expect_error(ErrorKind::kNotFound, "config.json is missing",
               [] { choose_model_files({"model.safetensors"}, "o/r"); });
  expect_error(ErrorKind::kUnsupported, "pytorch_model.bin", [] {
    choose_model_files({"config.json", "pytorch_model.bin"}, "o/r");
  });
}

const Names kGgufListing = {"README.md",
                            "imatrix.gguf",
                            "mmproj-F16.gguf",
                            "x-IQ4_XS.gguf",
                            "x-Q4_K_M.gguf",
                            "x-Q4_K_S.gguf",
                            "x-Q4_0.gguf",
                            "x-Q4_0_4_4.gguf",
                            "x.Q8_0.gguf",
                            "x-UD-Q5_K_XL.gguf",
                            "BF16/x-BF16-00001-of-00002.gguf",
                            "BF16/x-BF16-00002-of-00002.gguf"};

TEST(Gguf, IsChosenByQuantisationAsAWholeWord) {
  EXPECT_THAT(choose_gguf(kGgufListing, "Q4_K_M", "o/r"), ElementsAre("x-Q4_K_M.gguf"));
  EXPECT_THAT(choose_gguf(kGgufListing, "q4_k_m", "o/r"), ElementsAre("x-Q4_K_M.gguf"));
  EXPECT_THAT(choose_gguf(kGgufListing, "Q4_0", "o/r"), ElementsAre("x-Q4_0.gguf"));
  EXPECT_THAT(choose_gguf(kGgufListing, "Q8_0", "o/r"), ElementsAre("x.Q8_0.gguf"));
  EXPECT_THAT(choose_gguf(kGgufListing, "IQ4_XS", "o/r"), ElementsAre("x-IQ4_XS.gguf"));
  EXPECT_THAT(choose_gguf(kGgufListing, "UD-Q5_K_XL", "o/r"), ElementsAre("x-UD-Q5_K_XL.gguf"));
  EXPECT_THAT(choose_gguf(kGgufListing, "x-Q4_K_S.gguf", "o/r"), ElementsAre("x-Q4_K_S.gguf"));
  EXPECT_THAT(choose_gguf({"a.gguf", "mmproj-a.gguf"}, "", "o/r"), ElementsAre("a.gguf"));
}

TEST(Gguf, InPartsComesWhole) {
  EXPECT_THAT(choose_gguf(kGgufListing, "BF16", "o/r"),
              ElementsAre("BF16/x-BF16-00001-of-00002.gguf", "BF16/x-BF16-00002-of-00002.gguf"));
  expect_error(ErrorKind::kNotFound, "part 1 of 3", [] {
    choose_gguf({"x-Q8_0-00002-of-00003.gguf", "x-Q8_0-00003-of-00003.gguf"}, "Q8_0", "o/r");
  });
  expect_error(ErrorKind::kNotFound, "2 of its 3 parts", [] {
    choose_gguf({"x-Q8_0-00001-of-00003.gguf", "x-Q8_0-00002-of-00003.gguf"}, "Q8_0", "o/r");
  });
}

TEST(Gguf, ThatDoesNotFitListsWhatThereIs) {
  expect_error(ErrorKind::kNotFound, "x-Q4_K_S.gguf",
               [] { choose_gguf(kGgufListing, "Q4_K", "o/r"); });
  expect_error(ErrorKind::kNotFound, "no GGUF file matches 'IQ1_S'",
               [] { choose_gguf(kGgufListing, "IQ1_S", "o/r"); });
  expect_error(ErrorKind::kNotFound, "several GGUF files match",
               [] { choose_gguf(kGgufListing, "", "o/r"); });
  expect_error(ErrorKind::kNotFound, "several GGUF files match 'Q4_0'", [] {
    choose_gguf({"a-Q4_0.gguf", "b-Q4_0.gguf"}, "Q4_0", "o/r");
  });
  expect_error(ErrorKind::kNotFound, "there is no GGUF file",
               [] { choose_gguf({"model.safetensors"}, "Q4_0", "o/r"); });
  EXPECT_TRUE(has_only_gguf({"a.gguf"}));
  EXPECT_FALSE(has_only_gguf({"a.gguf", "model.safetensors"}));
  EXPECT_FALSE(has_only_gguf({"mmproj-a.gguf"}));
}

TEST(Url, OriginIsSchemeHostAndPort) {
  EXPECT_EQ(url_origin("https://Example.org/a?b"), "https://example.org:443");
  EXPECT_EQ(url_origin("http://user:pw@h:8080/"), "http://h:8080");
  EXPECT_EQ(url_origin("ftp://h/"), "");
  EXPECT_EQ(url_origin("file:///etc/passwd"), "");
  EXPECT_EQ(url_origin("nonsense"), "");
  EXPECT_EQ(url_resolve("https://h/a/b", "/c?d=1"), "https://h/c?d=1");
  EXPECT_EQ(url_resolve("https://h/a/b", "https://g/x"), "https://g/x");
}

TEST(Url, IsShownWithoutItsSecrets) {
  EXPECT_EQ(url_for_display("https://u:p@h/a?X-Amz-Signature=s"), "https://h/a");
  EXPECT_EQ(url_encode("a b/ü%", true), "a%20b/%C3%BC%25");
  EXPECT_EQ(url_encode("refs/pr/1"), "refs%2Fpr%2F1");
  EXPECT_EQ(printable(" a\x1b[31mb\r\n"), "a [31mb");
}

TEST_F(HubTest, OptionsComeFromTheEnvironment) {
  HubOptions options = hub_options_from_environment();
  EXPECT_EQ(options.cache_dir, folder_ + "/.cache/huggingface/hub");
  EXPECT_EQ(options.endpoint, "https://huggingface.co");
  EXPECT_EQ(options.token, "");
  EXPECT_FALSE(options.offline);
  EXPECT_EQ(hub_options_from_environment(ModelSource::kModelScope).cache_dir,
            folder_ + "/.cache/modelscope");

  ::setenv("XDG_CACHE_HOME", "/xdg", 1);
  EXPECT_EQ(hub_options_from_environment().cache_dir, "/xdg/huggingface/hub");
  ::setenv("HF_HOME", "~/hf", 1);
  EXPECT_EQ(hub_options_from_environment().cache_dir, folder_ + "/hf/hub");
  write("hf/token", "hf_file\n");
  EXPECT_EQ(hub_options_from_environment().token, "hf_file");
  ::setenv("HF_TOKEN", " hf_env ", 1);
  ::setenv("HF_HUB_CACHE", "/cache", 1);
  ::setenv("HF_ENDPOINT", "https://mirror.example/", 1);
  ::setenv("HF_HUB_OFFLINE", "Yes", 1);
  options = hub_options_from_environment();
  EXPECT_EQ(options.token, "hf_env");
  EXPECT_EQ(options.cache_dir, "/cache");
  EXPECT_EQ(options.endpoint, "https://mirror.example");
  EXPECT_TRUE(options.offline);

  ::setenv("HF_ENDPOINT", "file:///etc", 1);
  expect_error(ErrorKind::kInvalidArgument, "HF_ENDPOINT", [] { hub_options_from_environment(); });
  expect_error(ErrorKind::kInvalidArgument, "modelscope", [] { parse_model_source("hub"); });
}

TEST_F(HubTest, LocalPathsAreReturnedAsTheyAre) {
  write("model/config.json", "{}");
  EXPECT_EQ(resolve_model(folder_ + "/model", {}), folder_ + "/model");
  EXPECT_EQ(resolve_model("~/model", {}), folder_ + "/model");
  EXPECT_EQ(resolve_model("~/model/config.json", {}), folder_ + "/model/config.json");
  expect_error(ErrorKind::kNotFound, folder_ + "/none.gguf",
               [&] { resolve_model("~/none.gguf", {}); });
  expect_error(ErrorKind::kNotFound, "ORG/REPO", [] { resolve_model("", {}); });
}

TEST_F(HubTest, HostileTokensAndRevisionsAreRefusedBeforeAnyRequest) {
  expect_error(ErrorKind::kInvalidArgument, "token", [&] {
    resolve_model("o/r", {.cache_dir = folder_, .token = "a\r\nX-Injected: b", .offline = true});
  });
  expect_error(ErrorKind::kInvalidArgument, "revision", [&] {
    resolve_model("o/r", {.cache_dir = folder_, .revision = "../../x", .offline = true});
  });
  expect_error(ErrorKind::kInvalidArgument, "contradict", [&] {
    resolve_model("o/r@a", {.cache_dir = folder_, .revision = "b", .offline = true});
  });
}

TEST_F(HubTest, OfflineTheCacheIsReadAndSaysWhatItLacks) {
  const HubOptions options{.cache_dir = folder_, .offline = true};
  expect_error(ErrorKind::kNotFound, "o/r@main is not in the cache " + folder_,
               [&] { resolve_model("o/r", options); });
  write("models--o--r/refs/main", "c0ffee");
  write("models--o--r/snapshots/c0ffee/config.json", "{}");
  expect_error(ErrorKind::kNotFound, "model.safetensors", [&] { resolve_model("o/r", options); });
  const std::string index = R"({"weight_map": {"a": "model-1-of-2.safetensors",
                                               "b": "model-2-of-2.safetensors"}})";
  write("models--o--r/snapshots/c0ffee/model.safetensors.index.json", index);
  write("models--o--r/snapshots/c0ffee/model-1-of-2.safetensors", "x");
  expect_error(ErrorKind::kNotFound, "model-2-of-2.safetensors is missing",
               [&] { resolve_model("o/r", options); });
  write("models--o--r/snapshots/c0ffee/model-2-of-2.safetensors", "x");
  EXPECT_EQ(resolve_model("o/r", options), folder_ + "/models--o--r/snapshots/c0ffee");

  write("models--o--r/refs/main", "../../../elsewhere");
  expect_error(ErrorKind::kNotFound, "is not in the cache", [&] { resolve_model("o/r", options); });
}

TEST_F(HubTest, OfflineAFolderOfAnOlderModelScopeClientIsUsed) {
  const HubOptions options{
      .source = ModelSource::kModelScope, .cache_dir = folder_, .offline = true};
  expect_error(ErrorKind::kNotFound, "ModelScope cache",
               [&] { resolve_model("Qwen/Qwen3-0.6B", options); });
  write("hub/models/Qwen/Qwen3-0___6B/config.json", "{}");
  write("hub/models/Qwen/Qwen3-0___6B/model.safetensors", "x");
  EXPECT_EQ(resolve_model("Qwen/Qwen3-0.6B", options), folder_ + "/hub/models/Qwen/Qwen3-0___6B");
}

HttpResponse answer(int status) {
  HttpResponse response;
  response.status = status;
  response.url = "http://h/";
  return response;
}

TEST(Retries, CountFailuresInARowWithoutANewByte) {
  const RetryOptions retry{.max_retries = 2, .delay_ms = 0};
  int calls = 0;
  const auto fails_first = [&](int failures, int status) {
    calls = 0;
    return [&calls, failures, status] { return answer(calls++ < failures ? status : 200); };
  };
  EXPECT_EQ(with_retries(fails_first(2, 503), "m", retry, {}).status, 200);
  expect_error(ErrorKind::kNetwork, "http://h/ answered 503 (tried 3 times)",
               [&] { with_retries(fails_first(3, 503), "m", retry, {}); });
  EXPECT_EQ(with_retries(fails_first(1, 404), "m", retry, {}).status, 404);
  EXPECT_EQ(with_retries(fails_first(50, 503), "m", retry, {}, [] { return true; }).status, 200);

  calls = 0;
  const auto refused = [&]() -> HttpResponse {
    ++calls;
    throw TransportError{"certificate", false};
  };
  expect_error(ErrorKind::kNetwork, "m: certificate",
               [&] { with_retries(refused, "m", retry, {}); });
  EXPECT_EQ(calls, 1);
}

TEST(Retries, EndWhenTheCallerCancels) {
  const RetryOptions patient{.max_retries = 5, .delay_ms = 60'000};
  expect_error(ErrorKind::kCancelled, "cancelled", [&] {
    with_retries([] { return answer(503); }, "m", patient, [] { return true; });
  });
}

TEST_F(HubTest, ACancelledRequestIsNoNetworkError) {
  // Nobody listens there, and the retries would take minutes.
  const HubOptions options{.endpoint = "http://127.0.0.1:1",
                           .cache_dir = folder_,
                           .retry = {.max_retries = 5, .delay_ms = 60'000},
                           .cancelled = [] { return true; }};
  expect_error(ErrorKind::kCancelled, "cancelled", [&] { resolve_model("o/r", options); });
}

TEST(RunInParallel, CallsEachOnceAndThrowsTheFirstError) {
  std::vector<std::atomic<int>> calls(100);
  run_in_parallel(calls.size(), 4, [&](size_t i) { ++calls[i]; });
  for (const auto& count : calls) EXPECT_EQ(count, 1);
  EXPECT_THROW(run_in_parallel(100, 4,
                               [](size_t i) {
                                 if (i == 7) throw std::runtime_error("7");
                               }),
               std::runtime_error);
  run_in_parallel(0, 4, [](size_t) { FAIL(); });
}

TEST(DiskSpace, IsCheckedBeforeADownloadStarts) {
  check_disk_space(testing::TempDir(), 1, "o/r");
  expect_error(ErrorKind::kResource, "EB more on disk",
               [] { check_disk_space(testing::TempDir(), uint64_t{1} << 62, "o/r"); });
}

}  // namespace
}  // namespace minisgl
