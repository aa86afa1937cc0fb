// Any text is a config.json or an Error, and so is any generation_config.json.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "loader/generation_config.h"
#include "loader/hf_config.h"
#include "utils/error.h"
#include "utils/json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const minisgl::Json json = minisgl::parse_json(text, "fuzz");
    try {
      (void)minisgl::parse_generation_config(json, "fuzz");
    } catch (const minisgl::Error&) {
    }
    (void)minisgl::hf_config_has_dtype(json);
    const minisgl::ModelConfig config = minisgl::parse_hf_config(json, "fuzz");
    for (int64_t layer = 0; layer < config.num_layers; ++layer) {
      (void)config.layer_window(layer);
      (void)config.layer_is_moe(layer);
    }
  } catch (const minisgl::Error&) {
  }
  return 0;
}
