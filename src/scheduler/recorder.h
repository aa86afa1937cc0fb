// What a scheduler was asked for and what it decided, as JSON lines that can be played again.
//
//   {"minisgl_recording":1,…}                        the setup: what the engine was started with
//   {"submit":{"uid":0,"input_ids":[…],…}}           asked for …
//   {"abort":0} {"timeout":0} {"flush":true} {"limit":64}
//   {"turn":[[uid,begin,end],…],"tokens":[[uid,token],…]}   … and one line a turn of the loop:
//                                                    positions planned, tokens received
#pragma once

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>

#include "message/requests.h"
#include "utils/json.h"

namespace minisgl {

// Every line is flushed when it is complete. When the disk refuses, recording stops and says so on
// standard error. Thread: scheduler.
class Recorder {
 public:
  // Keeps the last turn's line only.
  Recorder() = default;
  // Error: kResource when the file cannot be written.
  Recorder(const std::string& path, const Json& setup);

  void submitted(const GenerateRequest& request);
  void aborted(int64_t uid);
  void timed_out(int64_t uid);
  void flushed();
  void limited(int64_t tokens);
  // Within a turn.
  void planned(int64_t uid, int64_t begin, int64_t end);
  void received(int64_t uid, int32_t token);
  void end_turn();

  const std::string& last_turn() const { return last_turn_; }

 private:
  void write(const std::string& line);

  std::string path_;
  std::ofstream file_;
  std::string planned_, received_;  // of the turn that is under way
  std::string last_turn_;
};

// A request without its deadline, which belongs to one moment: that it passed is a line of its own.
Json to_json(const GenerateRequest& request);
// Error: kBadFile for anything but what to_json() gives.
GenerateRequest request_from_json(const Json& json);

}  // namespace minisgl
