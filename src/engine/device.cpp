#include "engine/device.h"

#include <charconv>
#include <optional>

#include "attention/cuda_backends.h"
#include "kernel/cuda_plugin.h"
#include "utils/error.h"
#include "utils/system.h"

namespace minisgl {
namespace {

// N of "cuda:N" (0 for "cuda"); nothing for other names.
std::optional<int> gpu_index(std::string_view name) {
  if (name == "cuda") return 0;
  constexpr std::string_view kPrefix = "cuda:";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  int index = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
  if (error != std::errc() || end != name.data() + name.size() || index < 0) return std::nullopt;
  return index;
}

OpenedDevice open_gpu(int index) {
  OpenedDevice device;
  device.kernels = make_cuda_kernels(index);
  const CudaDeviceInfo info = cuda_device_info(index);
  device.name = device_name(Device::cuda(index));
  device.attention.device = Device::cuda(index);
  device.attention.compute_capability = info.compute_capability;
  device.attention.plugin = cuda_attention_backends();
  device.usable_bytes = info.free_bytes;
  return device;
}

}  // namespace

OpenedDevice open_device(const std::string& name, ThreadPool& threads, const std::string& isa) {
  if (name == "auto" && cuda_device_count() > 0) return open_gpu(0);
  if (const std::optional<int> index = gpu_index(name)) return open_gpu(*index);
  if (name != "auto" && name != "cpu") {
    throw_error(ErrorKind::kInvalidArgument, "--device {}: expected auto, cpu, cuda or cuda:N",
                name);
  }
  OpenedDevice device;
  device.name = "cpu";
  device.kernels = make_cpu_kernels(threads, isa);
  device.usable_bytes = usable_memory_bytes();
  return device;
}

int64_t used_bytes(const OpenedDevice& device, int64_t checkpoint_bytes) {
  if (device.kernels->device().is_cpu()) return checkpoint_bytes;
  return device.usable_bytes - cuda_device_info(device.kernels->device().index).free_bytes;
}

}  // namespace minisgl
