// A progress bar for a terminal, plain lines for a log file.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

namespace minisgl {

// "0 B", "1.5 kB", "2.46 GB": powers of 1000, three significant digits.
std::string format_bytes(uint64_t bytes);

// One line of at most `width` columns (bytes of `label` count as columns):
//   label  45% [#########           ] 1.2 GB of 2.7 GB, 85 MB/s, 0:18 left
// total 0 means unknown: no percentage, bar or time left. rate: bytes per second, 0 unknown.
std::string progress_line(const std::string& label, uint64_t done, uint64_t total, double rate,
                          int width);

// Shows one running transfer. On a terminal the line is redrawn ten times a second; elsewhere a
// line is written at the start, at the end, and every ten seconds between. Thread: one at a time.
class ProgressBar {
 public:
  explicit ProgressBar(std::FILE* out);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // `done` may fall when a transfer starts over.
  void update(const std::string& label, uint64_t done, uint64_t total);
  // Writes a whole line without tearing the bar.
  void message(const std::string& line);
  // Draws the last state and ends the line; also done by the destructor.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  void draw();
  double rate() const;

  std::FILE* out_;
  bool terminal_;
  bool started_ = false;
  bool stale_ = false;  // there is an update that was not drawn
  std::string label_;
  uint64_t done_ = 0, total_ = 0, done_at_start_ = 0;
  Clock::time_point start_, last_draw_;
};

}  // namespace minisgl
