// Runs resolve_model() for tests/clients/test_hub.py, with the environment for options.
//   hub_tool [--source modelscope] [--revision REV] [--delay-ms N] [--timeout-s N] NAME
// Prints the path; an error goes to standard error, and its kind is the exit code.
#include <cstdio>
#include <string>

#include "loader/hub.h"
#include "utils/error.h"
#include "utils/progress.h"

int main(int argc, char** argv) {
  using namespace minisgl;
  try {
    ModelSource source = ModelSource::kHuggingFace;
    std::string name, revision;
    int delay_ms = 10, timeout_s = 5;
    for (int i = 1; i < argc; ++i) {
      const std::string arg = argv[i];
      if (arg.starts_with("--") && i + 1 < argc) {
        const std::string value = argv[++i];
        if (arg == "--source") source = parse_model_source(value);
        if (arg == "--revision") revision = value;
        if (arg == "--delay-ms") delay_ms = std::stoi(value);
        if (arg == "--timeout-s") timeout_s = std::stoi(value);
      } else {
        name = arg;
      }
    }
    ProgressBar bar(stderr);
    HubOptions options = hub_options_from_environment(source);
    options.revision = revision;
    options.timeout_s = timeout_s;
    options.retry = {.max_retries = 3, .delay_ms = delay_ms};
    options.on_progress = [&](const DownloadProgress& p) { bar.update(p.label, p.done, p.total); };
    options.on_message = [&](const std::string& line) { bar.message(line); };
    const std::string path = resolve_model(name, options);
    bar.finish();
    std::printf("%s\n", path.c_str());
    return 0;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s: %s\n", error_kind_name(error.kind()), error.what());
    return exit_code(error.kind());
  }
}
