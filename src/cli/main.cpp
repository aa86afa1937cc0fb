// minisgl: one program, a subcommand a job.
#include <cstdio>
#include <iostream>
#include <new>
#include <string>
#include <string_view>

#include "cli/commands.h"
#include "cli/options.h"
#include "minisgl/version.h"
#include "utils/error.h"

namespace {

// What is wrong with the command line or the config file, and where to read on.
std::string explain(const CLI::App* app, const CLI::Error& error) {
  std::string problem = error.what();
  if (const std::string_view prefix = "INI was not able to parse "; problem.starts_with(prefix)) {
    problem = "config file: there is no option '" + problem.substr(prefix.size()) + "'";
  }
  if (app->get_subcommands().empty() && !app->remaining().empty()) {
    problem = "'" + app->remaining().front() + "' is neither a command nor a flag";
  }
  std::string command = "minisgl";
  for (const CLI::App* chosen : app->get_subcommands()) command += " " + chosen->get_name();
  return "minisgl: " + problem + "\nSee " + command + " --help.\n";
}

// An answer that was lost (disk full, standard output closed) must not look like a success.
void check_output_written() {
  std::cout.flush();
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0 || !std::cout) {
    minisgl::throw_error(minisgl::ErrorKind::kResource,
                         "the answer could not be written to standard output; is it closed, or "
                         "the disk full?");
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Runs large language models on this machine.", "minisgl");
  app.failure_message(explain);
  app.set_version_flag("--version", minisgl::kVersion);
  app.require_subcommand(1);
  app.set_help_all_flag("--help-all", "Help of every command");
  app.fallthrough();  // --config may stand behind the command; commands inherit this
  minisgl::add_run_command(app);
  minisgl::add_chat_command(app);
  minisgl::add_pull_command(app);
  minisgl::add_inspect_command(app);
  minisgl::add_tokenize_command(app);
  minisgl::add_bench_command(app);
  minisgl::add_verify_command(app);
  minisgl::add_replay_command(app);
  minisgl::add_config_file(app);
  try {
    app.parse(minisgl::reversed_arguments(argc, argv));
    check_output_written();
    return 0;
  } catch (const CLI::ParseError& error) {
    // --help and --version arrive here too, with exit code 0.
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
