#include "scheduler/trace.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "utils/error.h"

namespace minisgl {
namespace {

constexpr int kEngine = 1, kRequests = 2;    // "processes" of the trace
constexpr int kScheduler = 1, kCompute = 2;  // tracks of the first
constexpr std::string_view kEnd = "\n]\n";

}  // namespace

Trace::Trace(const std::string& path) : path_(path) {
  file_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file_ < 0) {
    throw_error(ErrorKind::kResource, "--trace {}: cannot write it: {}", path,
                std::strerror(errno));
  }
  pending_ = "[";
  for (const auto& [process, name] :
       {std::pair{kEngine, "engine"}, std::pair{kRequests, "requests"}}) {
    event(fmt::format(R"({{"ph":"M","pid":{},"name":"process_name","args":{{"name":"{}"}}}})",
                      process, name));
  }
  name_track(kEngine, kScheduler, "scheduler");
  name_track(kEngine, kCompute, "compute");
  flush();
}

Trace::~Trace() {
  flush();
  if (file_ >= 0) ::close(file_);
}

double Trace::microseconds(Clock::time_point when) const {
  return std::chrono::duration<double, std::micro>(when - start_).count();
}

void Trace::event(std::string_view text) {
  pending_ += is_first_ ? "\n" : ",\n";
  pending_ += text;
  is_first_ = false;
}

void Trace::name_track(int process, int64_t track, std::string_view name) {
  event(fmt::format(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_name","args":{{"name":"{}"}}}})",
                    process, track, name));
}

void Trace::span(int track, std::string_view name, Clock::time_point begin, Clock::time_point end,
                 const std::string& args) {
  event(fmt::format(
      R"({{"ph":"X","pid":{},"tid":{},"name":"{}","ts":{:.3f},"dur":{:.3f},"args":{{{}}}}})",
      kEngine, track, name, microseconds(begin), microseconds(end) - microseconds(begin), args));
}

void Trace::planned(const StepSnapshot& step, Clock::time_point begin, Clock::time_point end) {
  span(kScheduler, "plan", begin, end,
       fmt::format(R"("step":{},"requests":{},"prefill_tokens":{},"decode_tokens":{})", step.number,
                   step.requests, step.prefill_tokens, step.decode_tokens));
}

void Trace::received(uint64_t step, Clock::time_point begin, Clock::time_point wait_end,
                     Clock::time_point end) {
  const std::string args = fmt::format(R"("step":{})", step);
  span(kScheduler, "wait", begin, wait_end, args);
  span(kScheduler, "replies", wait_end, end, args);
}

void Trace::computed(const StepSnapshot& step, Clock::time_point begin, Clock::time_point end) {
  if (begin == Clock::time_point{}) return;
  span(kCompute, step.prefill_tokens > 0 ? "prefill" : "decode", begin, end,
       fmt::format(R"("step":{},"requests":{},"tokens":{})", step.number, step.requests,
                   step.prefill_tokens + step.decode_tokens));
}

void Trace::request_is(int64_t uid, const char* phase) {
  const auto [known, is_new] = phases_.try_emplace(uid, phase);
  if (!is_new && known->second == phase) return;
  const double now = microseconds(Clock::now());
  if (is_new) {
    name_track(kRequests, uid, fmt::format("request {}", uid));
  } else {
    event(fmt::format(R"({{"ph":"E","pid":{},"tid":{},"ts":{:.3f}}})", kRequests, uid, now));
    known->second = phase;
  }
  event(fmt::format(R"({{"ph":"B","pid":{},"tid":{},"name":"{}","ts":{:.3f}}})", kRequests, uid,
                    phase, now));
}

void Trace::request_ended(int64_t uid, std::string_view rule) {
  if (phases_.erase(uid) == 0) return;
  event(fmt::format(R"({{"ph":"E","pid":{},"tid":{},"ts":{:.3f},"args":{{"ended_by":"{}"}}}})",
                    kRequests, uid, microseconds(Clock::now()), rule));
}

// One write puts the new events and the closing bracket over the old one.
void Trace::flush() {
  if (pending_.empty() || file_ < 0) return;
  const size_t size = pending_.size();
  pending_ += kEnd;
  if (::pwrite(file_, pending_.data(), pending_.size(), written_) !=
      static_cast<ssize_t>(pending_.size())) {
    fmt::print(stderr, "minisgl: --trace {}: {}; tracing stops here\n", path_,
               std::strerror(errno));
    ::close(file_);
    file_ = -1;
  }
  written_ += static_cast<int64_t>(size);
  pending_.clear();
}

}  // namespace minisgl
