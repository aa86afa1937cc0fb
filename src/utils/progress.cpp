#include "utils/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

namespace minisgl {
namespace {

constexpr auto kRedraw = std::chrono::milliseconds(100);
constexpr auto kLineEvery = std::chrono::seconds(10);
constexpr int kBarCells = 20;

int terminal_width(std::FILE* out) {
  winsize size{};
  if (::ioctl(::fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

std::string format_duration(double seconds) {
  const auto s = static_cast<int64_t>(std::min(seconds, 359999.0));
  if (s >= 3600) return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
  return fmt::format("{}:{:02}", s / 60, s % 60);
}

}  // namespace

std::string format_bytes(uint64_t bytes) {
  if (bytes < 1000) return fmt::format("{} B", bytes);
  constexpr const char* kUnits[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
  double value = static_cast<double>(bytes) / 1000;
  size_t unit = 0;
  while (value >= 999.5 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f} {}", value, decimals, kUnits[unit]);
}

std::string progress_line(const std::string& label, uint64_t done, uint64_t total, double rate,
                          int width) {
  std::string line = label;
  if (total > 0) {
    const double fraction = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
    const int cells = static_cast<int>(fraction * kBarCells);
    line += fmt::format(" {:3}% [{}{}] {} of {}", static_cast<int>(fraction * 100),
                        std::string(static_cast<size_t>(cells), '#'),
                        std::string(static_cast<size_t>(kBarCells - cells), ' '),
                        format_bytes(done), format_bytes(total));
  } else {
    line += fmt::format(" {}", format_bytes(done));
  }
  if (rate > 0) {
    line += fmt::format(", {}/s", format_bytes(static_cast<uint64_t>(rate)));
    if (total > done) {
      line += fmt::format(", {} left", format_duration(static_cast<double>(total - done) / rate));
    }
  }
  if (width > 0 && line.size() > static_cast<size_t>(width))
    line.resize(static_cast<size_t>(width));
  return line;
}

ProgressBar::ProgressBar(std::FILE* out) : out_(out), terminal_(::isatty(::fileno(out)) == 1) {}

ProgressBar::~ProgressBar() { finish(); }

void ProgressBar::update(const std::string& label, uint64_t done, uint64_t total) {
  label_ = label;
  done_ = done;
  total_ = total;
  stale_ = true;
  const Clock::time_point now = Clock::now();
  if (!started_) {
    started_ = true;
    start_ = now;
    done_at_start_ = done;
    draw();
  } else if (now - last_draw_ >= (terminal_ ? Clock::duration(kRedraw) : kLineEvery)) {
    draw();
  }
}

void ProgressBar::message(const std::string& line) {
  if (terminal_ && started_) std::fputs("\r\033[K", out_);
  std::fprintf(out_, "%s\n", line.c_str());
  std::fflush(out_);
  if (terminal_ && started_) draw();
}

void ProgressBar::finish() {
  if (!started_) return;
  if (stale_ || terminal_) draw();
  if (terminal_) std::fputc('\n', out_);
  std::fflush(out_);
  started_ = false;
}

double ProgressBar::rate() const {
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  if (seconds < 0.5 || done_ <= done_at_start_) return 0;
  return static_cast<double>(done_ - done_at_start_) / seconds;
}

void ProgressBar::draw() {
  last_draw_ = Clock::now();
  stale_ = false;
  if (terminal_) {
    // One column is left free: a full last column wraps on some terminals.
    const std::string line = progress_line(label_, done_, total_, rate(), terminal_width(out_) - 1);
    std::fprintf(out_, "\r\033[K%s", line.c_str());
  } else {
    std::fprintf(out_, "%s\n", progress_line(label_, done_, total_, rate(), 0).c_str());
  }
  std::fflush(out_);
}

}  // namespace minisgl
