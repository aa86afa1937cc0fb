// The engine's log: one line an event, with its numbers. Nothing is written at info level inside
// the step loop, except summaries at most once a second (EveryInterval).
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace minisgl {

enum class LogLevel { kTrace, kDebug, kInfo, kWarn, kError, kOff };

// "trace", "debug", "info", "warn", "error", "off"
std::string_view log_level_name(LogLevel level);
std::optional<LogLevel> parse_log_level(std::string_view name);
// MINISGL_LOG_LEVEL, or `fallback` where it is not set. Error: kInvalidArgument.
LogLevel log_level_from_environment(LogLevel fallback);

// A handle: copies write to the same place. Passed where it is needed, never global. Thread-safe.
class Logger {
 public:
  // Writes nothing.
  Logger() = default;

  // Lines "12:34:56.789 info  prefix message" on standard error.
  static Logger to_stderr(LogLevel level);
  // Lines without time go to `sink`, one call at a time: for programs with a log of their own.
  using Sink = std::function<void(LogLevel level, std::string_view line)>;
  static Logger to_sink(LogLevel level, Sink sink);

  // The same log; its lines start with `prefix`, e.g. "rank 1:".
  Logger with_prefix(std::string_view prefix) const;

  bool enabled(LogLevel level) const { return impl_ != nullptr && level >= level_; }
  LogLevel level() const { return level_; }

  template <class... Args>
  void debug(fmt::format_string<Args...> format, Args&&... args) const {
    log(LogLevel::kDebug, format, std::forward<Args>(args)...);
  }
  template <class... Args>
  void info(fmt::format_string<Args...> format, Args&&... args) const {
    log(LogLevel::kInfo, format, std::forward<Args>(args)...);
  }
  template <class... Args>
  void warn(fmt::format_string<Args...> format, Args&&... args) const {
    log(LogLevel::kWarn, format, std::forward<Args>(args)...);
  }
  template <class... Args>
  void error(fmt::format_string<Args...> format, Args&&... args) const {
    log(LogLevel::kError, format, std::forward<Args>(args)...);
  }
  template <class... Args>
  void log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) const {
    if (enabled(level)) write(level, fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  class Impl;
  Logger(std::shared_ptr<Impl> impl, LogLevel level) : impl_(std::move(impl)), level_(level) {}
  void write(LogLevel level, const std::string& message) const;

  std::shared_ptr<Impl> impl_;  // shared: a handle's copies and the threads that hold them
  LogLevel level_ = LogLevel::kOff;
  std::string prefix_;
};

// Says when the next summary is due. One thread.
//   if (summary.due()) log.info("{} running, {} waiting, {:.1f} tok/s", …);
class EveryInterval {
 public:
  using Clock = std::chrono::steady_clock;
  explicit EveryInterval(Clock::duration interval = std::chrono::seconds(1))
      : interval_(interval) {}

  // True at most once an interval; true the first time.
  bool due(Clock::time_point now = Clock::now()) {
    if (next_ && now < *next_) return false;
    next_ = now + interval_;
    return true;
  }

 private:
  Clock::duration interval_;
  std::optional<Clock::time_point> next_;
};

}  // namespace minisgl
