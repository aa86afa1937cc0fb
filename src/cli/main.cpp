// minisgl: one program, a subcommand a job.
#include <cstdio>
#include <new>

#include "cli/commands.h"
#include "cli/options.h"
#include "minisgl/version.h"
#include "utils/error.h"

int main(int argc, char** argv) {
  CLI::App app("Runs large language models on this machine.", "minisgl");
  app.set_version_flag("--version", minisgl::kVersion);
  app.require_subcommand(1);
  app.set_help_all_flag("--help-all", "Help of every command");
  app.fallthrough();  // --config may stand behind the command; commands inherit this
  minisgl::add_run_command(app);
  minisgl::add_chat_command(app);
  minisgl::add_pull_command(app);
  minisgl::add_inspect_command(app);
  minisgl::add_tokenize_command(app);
  minisgl::add_config_file(app);
  try {
    app.parse(minisgl::reversed_arguments(argc, argv));
    return 0;
  } catch (const CLI::ParseError& error) {
    // --help and --version arrive here too, with exit code 0.
    if (app.get_subcommands().empty() && !app.remaining().empty()) {
      std::fprintf(stderr, "minisgl: '%s' is neither a command nor a flag\n",
                   app.remaining().front().c_str());
    }
    const int code = app.exit(error);
    return code == 0 ? 0 : minisgl::exit_code(minisgl::ErrorKind::kInvalidArgument);
  } catch (const minisgl::Error& error) {
    std::fprintf(stderr, "minisgl: %s\n", error.what());
    return minisgl::exit_code(error.kind());
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr,
                 "minisgl: out of memory; use a smaller model, --max-seq-len or "
                 "--num-pages\n");
    return minisgl::exit_code(minisgl::ErrorKind::kResource);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "minisgl: unexpected: %s\n", error.what());
    return minisgl::exit_code(minisgl::ErrorKind::kInternal);
  }
}
