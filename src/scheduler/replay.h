// Plays a recording again and finds the first thing that comes out differently.
#pragma once

#include <cstdint>
#include <istream>
#include <optional>
#include <string>

#include "scheduler/scheduler.h"

namespace minisgl {

struct ReplayResult {
  int64_t num_turns = 0;
  int64_t num_tokens = 0;
  struct Difference {
    int64_t line = 0;  // of the recording, the setup is line 1
    std::string recorded, replayed;
  };
  std::optional<Difference> difference;  // nothing after it was played
};

// The recording's first line. Error: kBadFile.
Json read_recording_setup(std::istream& recording);
// What follows it; `scheduler` is new and set up as the recorded one was. A last line that was cut
// off, as by a crash, ends the recording. Error: kBadFile for lines that are none of a recording.
ReplayResult replay(std::istream& recording, Scheduler& scheduler);

}  // namespace minisgl
