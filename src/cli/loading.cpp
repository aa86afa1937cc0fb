#include "cli/loading.h"

#include <unistd.h>

#include <cstdio>

#include "utils/error.h"
#include "utils/progress.h"

namespace minisgl {

std::string resolve_with_progress(const std::string& model, const std::string& model_source) {
  if (model.empty()) {
    throw_error(ErrorKind::kInvalidArgument,
                "no model given; name a folder, a .gguf file or a hub repository with --model");
  }
  ProgressBar bar(stderr);
  HubOptions options = hub_options_from_environment(parse_model_source(model_source));
  options.on_progress = [&bar](const DownloadProgress& progress) {
    bar.update(progress.label, progress.done, progress.total);
  };
  options.on_message = [&bar](const std::string& line) { bar.message(line); };
  return resolve_model(model, options);
}

std::unique_ptr<LLM> load_llm(LLMOptions options) {
  options.model = resolve_with_progress(options.model, options.model_source);
  const bool terminal = ::isatty(STDERR_FILENO) != 0;
  return std::make_unique<LLM>(options, [terminal](int64_t done, int64_t total) {
    if (!terminal) return;
    std::fprintf(stderr, done < total ? "\rloading: layer %ld of %ld" : "\r\033[K", done, total);
    std::fflush(stderr);
  });
}

}  // namespace minisgl
