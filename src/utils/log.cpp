#include "utils/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <array>
#include <cstdlib>
#include <mutex>

#include "utils/error.h"

namespace minisgl {
namespace {

constexpr std::array<std::string_view, 6> kNames = {"trace", "debug", "info",
                                                    "warn",  "error", "off"};

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kTrace:
      return spdlog::level::trace;
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarn:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kOff:
      break;
  }
  return spdlog::level::off;
}

LogLevel from_spdlog(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::trace:
      return LogLevel::kTrace;
    case spdlog::level::debug:
      return LogLevel::kDebug;
    case spdlog::level::info:
      return LogLevel::kInfo;
    case spdlog::level::warn:
      return LogLevel::kWarn;
    default:
      return LogLevel::kError;
  }
}

class CallbackSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit CallbackSink(Logger::Sink sink) : sink_(std::move(sink)) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    sink_(from_spdlog(message.level), {message.payload.data(), message.payload.size()});
  }
  void flush_() override {}

  Logger::Sink sink_;
};

}  // namespace

std::string_view log_level_name(LogLevel level) { return kNames[static_cast<size_t>(level)]; }

std::optional<LogLevel> parse_log_level(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<LogLevel>(i);
  }
  return std::nullopt;
}

LogLevel log_level_from_environment(LogLevel fallback) {
  const char* name = std::getenv("MINISGL_LOG_LEVEL");
  if (name == nullptr || *name == '\0') return fallback;
  if (const auto level = parse_log_level(name)) return *level;
  throw_error(ErrorKind::kInvalidArgument,
              "MINISGL_LOG_LEVEL is '{}', expected one of trace, debug, info, warn, error, off",
              name);
}

class Logger::Impl {
 public:
  explicit Impl(spdlog::sink_ptr sink) : logger("minisgl", std::move(sink)) {
    logger.set_level(spdlog::level::trace);  // Logger::enabled() has decided already
  }
  spdlog::logger logger;
};

Logger Logger::to_stderr(LogLevel level) {
  auto impl = std::make_shared<Impl>(std::make_shared<spdlog::sinks::stderr_sink_mt>());
  impl->logger.set_pattern("%H:%M:%S.%e %-5l %v");
  impl->logger.flush_on(spdlog::level::trace);
  return Logger(std::move(impl), level);
}

Logger Logger::to_sink(LogLevel level, Sink sink) {
  return Logger(std::make_shared<Impl>(std::make_shared<CallbackSink>(std::move(sink))), level);
}

Logger Logger::with_prefix(std::string_view prefix) const {
  Logger other = *this;
  other.prefix_ += fmt::format("{} ", prefix);
  return other;
}

void Logger::write(LogLevel level, const std::string& message) const {
  impl_->logger.log(to_spdlog(level), "{}{}", prefix_, message);
}

}  // namespace minisgl
