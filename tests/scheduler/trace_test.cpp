#include "scheduler/trace.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <map>

#include "engine/null_runner.h"
#include "scheduler/scheduler.h"
#include "utils/files.h"

namespace minisgl::testing {
namespace {

constexpr StepRunner::Limits kLimits = {.num_pages = 64,
                                        .page_size = 1,
                                        .max_seq_len = 64,
                                        .max_running_requests = 2,
                                        .max_prefill_tokens = 8,
                                        .vocab_size = 1000};

std::string trace_path(const char* name) { return ::testing::TempDir() + "/" + name; }

// Three requests for two rows and chunked prompts, for so many steps; -1: to the end.
void run_traced(const std::string& path, int num_steps) {
  SchedulerConfig config;
  config.trace_file = path;
  NullRunner runner(kLimits);
  Scheduler scheduler(runner, config);
  std::vector<Reply> replies;
  for (int32_t uid = 0; uid < 3; ++uid) {
    GenerateRequest request;
    request.uid = uid;
    request.input_ids = std::vector<int32_t>(12, uid);
    request.sampling_params.max_tokens = 6;
    scheduler.submit(std::move(request), replies);
  }
  for (int step = 0; step != num_steps && scheduler.step(replies); ++step) {
  }
  if (num_steps >= 0) ::raise(SIGKILL);  // nothing is written after this
}

struct Track {
  int open = 0;  // begun phases that have not ended
  std::vector<std::string> phases;
};

// The requests' tracks; every phase begins when the one before has ended.
std::map<int64_t, Track> request_tracks(const Json& trace) {
  std::map<int64_t, Track> tracks;
  for (const Json& event : trace) {
    if (event.at("pid") != 2 || event.at("ph") == "M") continue;
    Track& track = tracks[event.at("tid").get<int64_t>()];
    if (event.at("ph") == "B") {
      EXPECT_EQ(track.open++, 0);
      track.phases.push_back(event.at("name").get<std::string>());
    } else {
      EXPECT_EQ(event.at("ph"), "E");
      EXPECT_EQ(track.open--, 1);
    }
  }
  return tracks;
}

int64_t count(const Json& trace, int track, const std::string& name) {
  return std::count_if(trace.begin(), trace.end(), [&](const Json& event) {
    return event.at("ph") == "X" && event.at("tid") == track && event.at("name") == name;
  });
}

TEST(Trace, HasATrackForTheSchedulerTheComputationAndEachRequest) {
  const std::string path = trace_path("whole_trace.json");
  run_traced(path, -1);
  const Json trace = read_json_file(path);
  const auto tracks = request_tracks(trace);
  ASSERT_EQ(tracks.size(), 3u);
  for (const auto& [uid, track] : tracks) {
    EXPECT_EQ(track.open, 0);
    EXPECT_EQ(track.phases, (std::vector<std::string>{"waiting", "prefill", "decode"}));
  }
  const int64_t steps = count(trace, 1, "plan");
  EXPECT_GT(steps, 8);
  EXPECT_EQ(count(trace, 1, "replies"), steps);
  EXPECT_EQ(count(trace, 2, "prefill") + count(trace, 2, "decode"), steps);
  EXPECT_GT(count(trace, 2, "prefill"), 0);
}

TEST(Trace, CanBeReadWhenTheProgramWasKilled) {
  const std::string path = trace_path("killed_trace.json");
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) run_traced(path, 4);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  const Json trace = read_json_file(path);
  EXPECT_EQ(request_tracks(trace).size(), 3u);
  EXPECT_EQ(count(trace, 1, "plan"), 4);
}

TEST(Trace, RefusesAFileThatCannotBeWritten) {
  SchedulerConfig config;
  config.trace_file = "/nowhere/trace.json";
  NullRunner runner(kLimits);
  try {
    const Scheduler scheduler(runner, config);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kResource);
  }
}

}  // namespace
}  // namespace minisgl::testing
