// Sees the installed headers and nothing else of the project.
#include <minisgl/error.h>
#include <minisgl/sampling_params.h>
#include <minisgl/version.h>

#include <cstdio>

int main() {
  const minisgl::SamplingParams params;
  const minisgl::Error error(minisgl::ErrorKind::kNotFound, "no model");
  std::printf("minisgl %s, greedy: %d, %s\n", minisgl::kVersion, params.is_greedy(), error.what());
  return 0;
}
