#include "cli/run_batch.h"

#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <iterator>
#include <sstream>

#include "llm/json_api.h"
#include "utils/error.h"
#include "utils/files.h"

namespace minisgl {
namespace {

std::vector<JsonRequest> read_requests(const std::string& input, const SamplingParams& defaults) {
  std::istringstream lines(input == "-" ? std::string(std::istreambuf_iterator<char>(std::cin), {})
                                        : read_file(input));
  std::vector<JsonRequest> requests;
  int64_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    try {
      requests.push_back(
          request_from_json(parse_json(line, "request", ErrorKind::kInvalidArgument), defaults));
    } catch (const Error& error) {
      throw_error(error.kind(), "{}, line {}: {}", input == "-" ? "standard input" : input, number,
                  error.what());
    }
  }
  if (requests.empty()) throw_error(ErrorKind::kInvalidArgument, "{}: no requests", input);
  return requests;
}

// The outputs of one request: n of them, or why there are none.
struct Answered {
  std::vector<Output> outputs;
  std::string error;
};

class BatchRun {
 public:
  BatchRun(LLM& llm, const std::vector<JsonRequest>& requests)
      : llm_(llm), requests_(requests), terminal_(::isatty(STDERR_FILENO) != 0) {
    for (const JsonRequest& request : requests) total_ += request.sampling.n;
  }

  std::vector<Answered> run() {
    std::vector<size_t> all(requests_.size());
    for (size_t i = 0; i < all.size(); ++i) all[i] = i;
    std::vector<Answered> answers;
    try {
      answers = generate(all);
    } catch (const Error&) {
      // One of them cannot be served: find out which, and serve the others.
      finished_ = 0;
      tokens_ = 0;
      for (const size_t i : all) {
        try {
          answers.push_back(std::move(generate({i}).front()));
        } catch (const Error& error) {
          answers.push_back({.outputs = {}, .error = error.what()});
        }
      }
    }
    std::fprintf(stderr, "%s%ld of %ld answers, %ld tokens\n", terminal_ ? "\r" : "", finished_,
                 total_, tokens_);
    return answers;
  }

 private:
  std::vector<Answered> generate(const std::vector<size_t>& which) {
    std::vector<Prompt> prompts;
    std::vector<SamplingParams> params;
    for (const size_t i : which) {
      const JsonRequest& request = requests_[i];
      prompts.push_back(request.prompt ? *request.prompt
                                       : Prompt(llm_.encode_chat(request.messages)));
      params.push_back(request.sampling);
    }
    std::vector<Output> outputs = llm_.generate(prompts, params, [this](const Piece& piece) {
      finished_ += piece.finished;
      ++tokens_;
      if (piece.finished && terminal_) {
        std::fprintf(stderr, "\r%ld of %ld answers, %ld tokens", finished_, total_, tokens_);
      }
      return true;
    });
    std::vector<Answered> answers;
    auto next = std::make_move_iterator(outputs.begin());
    for (const SamplingParams& p : params) {
      answers.push_back({.outputs = {next, next + p.n}, .error = {}});
      next += p.n;
    }
    return answers;
  }

  LLM& llm_;
  const std::vector<JsonRequest>& requests_;
  bool terminal_;
  int64_t total_ = 0;
  int64_t finished_ = 0;
  int64_t tokens_ = 0;
};

std::string as_line(const JsonRequest& request, const Answered& answered) {
  Json json = Json::object();
  if (!request.id.is_null()) json["id"] = request.id;
  if (!answered.error.empty()) {
    json["error"] = answered.error;
  } else {
    json["outputs"] = Json::array();
    for (const Output& output : answered.outputs) {
      json["outputs"].push_back(output_to_json(output));
    }
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

void run_jsonl(LLM& llm, const std::string& input, const std::string& output,
               const SamplingParams& defaults) {
  const std::vector<JsonRequest> requests = read_requests(input, defaults);
  const std::vector<Answered> answers = BatchRun(llm, requests).run();
  std::string text;
  for (size_t i = 0; i < requests.size(); ++i) text += as_line(requests[i], answers[i]) + "\n";
  if (output == "-") {
    std::fwrite(text.data(), 1, text.size(), stdout);
  } else {
    write_file(output, text);
  }
}

}  // namespace minisgl
