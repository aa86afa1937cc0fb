#include "kernel/cuda_plugin.h"

#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <vector>

#include "kernel/cuda/plugin_symbols.h"
#include "minisgl/version.h"
#include "utils/error.h"

namespace minisgl {
namespace {

constexpr const char* kFileName = "libminisgl_cuda.so";

std::vector<std::string> candidates() {
  if (const char* named = std::getenv("MINISGL_CUDA_PLUGIN"); named != nullptr && *named != '\0') {
    return {named};
  }
  std::vector<std::string> files;
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) {
    const std::filesystem::path folder = program.parent_path();
    for (const std::filesystem::path& place :
         {folder / kFileName, folder / ".." / "lib" / kFileName, folder / ".." / kFileName}) {
      if (std::filesystem::exists(place, error)) files.push_back(place.string());
    }
  }
  files.emplace_back(kFileName);  // ldconfig's folders, LD_LIBRARY_PATH
  return files;
}

void* symbol_of(void* library, const char* name) {
  void* symbol = dlsym(library, name);
  if (symbol == nullptr) {
    throw_error(ErrorKind::kUnsupported,
                "{} does not have '{}': it belongs to another version of minisgl; build both from "
                "one source (make cuda)",
                kFileName, name);
  }
  return symbol;
}

// A file that is not there is passed over; one that cannot be loaded is reported.
void* open_library() {
  std::string reason;
  for (const std::string& file : candidates()) {
    if (void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) {
      const auto version =
          reinterpret_cast<CudaPluginVersion*>(symbol_of(library, kCudaPluginVersion));
      if (std::strcmp(version(), kVersion) != 0) {
        throw_error(ErrorKind::kUnsupported, "{} is of version {}, this program of {}", file,
                    version(), kVersion);
      }
      return library;
    }
    const char* message = dlerror();
    if (reason.empty() && message != nullptr) reason = message;
  }
  throw_error(ErrorKind::kUnsupported,
              "the CUDA plugin cannot be loaded: {}; build it with `make cuda` (cmake "
              "-DMINISGL_CUDA=ON), name it in MINISGL_CUDA_PLUGIN, or run with --device cpu",
              reason);
}

}  // namespace

void* cuda_plugin_symbol(const char* name) {
  // dlopen of what is loaded gives the same handle again and costs a lookup; it is never closed.
  return symbol_of(open_library(), name);
}

std::unique_ptr<Kernels> make_cuda_kernels(int device) {
  const auto make =
      reinterpret_cast<CudaPluginMakeKernels*>(cuda_plugin_symbol(kCudaPluginMakeKernels));
  return std::unique_ptr<Kernels>(make(device));
}

CudaDeviceInfo cuda_device_info(int device) {
  const auto get =
      reinterpret_cast<CudaPluginDeviceInfo*>(cuda_plugin_symbol(kCudaPluginDeviceInfo));
  CudaPluginDevice found{};
  get(device, &found);
  return {found.name, found.compute_capability, found.total_bytes, found.free_bytes};
}

int cuda_device_count() noexcept {
  try {
    const auto count =
        reinterpret_cast<CudaPluginDeviceCount*>(cuda_plugin_symbol(kCudaPluginDeviceCount));
    return count();
  } catch (const std::exception&) {
    return 0;  // no plugin: no GPU for us
  }
}

}  // namespace minisgl
