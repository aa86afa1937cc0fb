// minisgl pull: downloads a model into the cache.
#include <cstdio>
#include <memory>
#include <string>

#include "cli/commands.h"
#include "cli/loading.h"

namespace minisgl {

void add_pull_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("pull", "Download a model into the hub's cache");
  struct Options {
    std::string model;
    std::string source = "huggingface";
  };
  auto options = std::make_shared<Options>();
  command->add_option("model", options->model, "ORG/REPO[:QUANTISATION][@REVISION]")->required();
  command->add_option("--model-source", options->source, "Hub that names refer to")
      ->envname("MINISGL_MODEL_SOURCE")
      ->check(CLI::IsMember({"huggingface", "modelscope"}))
      ->capture_default_str();
  command->callback([options] {
    std::printf("%s\n", resolve_with_progress(options->model, options->source).c_str());
  });
}

}  // namespace minisgl
