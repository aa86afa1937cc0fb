// Where the time goes: a file for chrome://tracing or ui.perfetto.dev, with a track for the
// scheduler, one for the computation and one for each request.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "message/requests.h"
#include "scheduler/snapshot.h"

namespace minisgl {

// The file is a JSON array that is complete after every flush(): whenever the program ends, and
// however, it can be read. When the disk refuses, tracing stops and says so on standard error.
// Thread: scheduler.
class Trace {
 public:
  // Error: kResource when the file cannot be written.
  explicit Trace(const std::string& path);
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  // On the scheduler's track.
  void planned(const StepSnapshot& step, Clock::time_point begin, Clock::time_point end);
  void received(uint64_t step, Clock::time_point begin, Clock::time_point wait_end,
                Clock::time_point end);
  // On the computation's track; nothing where the runner does not say when.
  void computed(const StepSnapshot& step, Clock::time_point begin, Clock::time_point end);
  // On the request's track: it is `phase` ("waiting", "prefill", "decode") from now on. Nothing if
  // it was already.
  void request_is(int64_t uid, const char* phase);
  void request_ended(int64_t uid, std::string_view rule);

  void flush();

 private:
  double microseconds(Clock::time_point when) const;
  void name_track(int process, int64_t track, std::string_view name);
  void span(int track, std::string_view name, Clock::time_point begin, Clock::time_point end,
            const std::string& args);
  void event(std::string_view text);

  std::string path_;
  int file_ = -1;
  int64_t written_ = 0;  // bytes before the closing bracket
  bool is_first_ = true;
  std::string pending_;
  Clock::time_point start_ = Clock::now();
  std::unordered_map<int64_t, const char*> phases_;  // of requests that have not ended
};

}  // namespace minisgl
