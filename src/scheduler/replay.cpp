#include "scheduler/replay.h"

#include "scheduler/recorder.h"
#include "utils/error.h"

namespace minisgl {
namespace {

// False: the end, also in the middle of a line.
bool next_line(std::istream& recording, std::string& line) {
  return std::getline(recording, line) && !recording.eof();
}

int64_t number_of(const Json& value, int64_t line) {
  if (!value.is_number_integer()) {
    throw_error(ErrorKind::kBadFile, "recording, line {}: expected a number, found {}", line,
                value.dump());
  }
  return value.get<int64_t>();
}

// Does what a line that is no turn asks for.
void apply(const Json& event, int64_t line, Scheduler& scheduler, std::vector<Reply>& replies) {
  if (event.contains("submit")) {
    scheduler.submit(request_from_json(event.at("submit")), replies);
  } else if (event.contains("abort")) {
    scheduler.abort(number_of(event.at("abort"), line), replies);
  } else if (event.contains("timeout")) {
    scheduler.time_out(number_of(event.at("timeout"), line), replies);
  } else if (event.contains("flush")) {
    scheduler.flush_cache();
  } else if (event.contains("limit")) {
    scheduler.limit_tokens(number_of(event.at("limit"), line));
  } else {
    throw_error(ErrorKind::kBadFile, "recording, line {}: neither a request nor a turn", line);
  }
}

}  // namespace

Json read_recording_setup(std::istream& recording) {
  std::string text;
  if (!next_line(recording, text)) throw_error(ErrorKind::kBadFile, "recording: it is empty");
  Json setup = parse_json(text, "recording, line 1");
  if (!setup.is_object() || setup.value("minisgl_recording", Json()) != 1) {
    throw_error(ErrorKind::kBadFile,
                "recording, line 1: expected {{\"minisgl_recording\":1,…}}; was it written by "
                "--record?");
  }
  return setup;
}

ReplayResult replay(std::istream& recording, Scheduler& scheduler) {
  ReplayResult result;
  Recorder recorder;
  scheduler.record_to(&recorder);
  std::vector<Reply> replies;
  std::string text;
  for (int64_t line = 2; next_line(recording, text); ++line) {
    const Json event = parse_json(text, fmt::format("recording, line {}", line));
    if (!event.is_object()) {
      throw_error(ErrorKind::kBadFile, "recording, line {}: expected an object", line);
    }
    if (!event.contains("turn")) {
      apply(event, line, scheduler, replies);
      continue;
    }
    replies.clear();
    scheduler.step(replies);
    ++result.num_turns;
    if (recorder.last_turn() != text) {
      result.difference = {line, text, recorder.last_turn()};
      break;
    }
    result.num_tokens += static_cast<int64_t>(event.at("tokens").size());
  }
  scheduler.record_to(nullptr);
  return result;
}

}  // namespace minisgl
