// Sees the installed headers and nothing else of the project; needs every library to link.
#include <minisgl/error.h>
#include <minisgl/llm.h>
#include <minisgl/version.h>

#include <cstdio>
#include <vector>

// The README's example, which must compile.
std::vector<minisgl::Output> complete(minisgl::LLM& llm) {
  auto outputs = llm.generate({"The capital of France is"}, {.max_tokens = 16});
  return outputs;
}

int main() {
  try {
    const minisgl::LLM llm({.model = "/no/such/model.gguf"});
    std::puts("a model that does not exist was opened");
    return 1;
  } catch (const minisgl::Error& error) {
    if (error.kind() != minisgl::ErrorKind::kNotFound) {
      std::printf("expected kNotFound: %s\n", error.what());
      return 1;
    }
    std::printf("minisgl %s: %s\n", minisgl::kVersion, error.what());
  }
  return 0;
}
