#include "kernel/cuda/runtime.h"

#include <cstring>

#include "utils/error.h"
#include "utils/math.h"

namespace minisgl::cuda {

void check(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return;
  cudaGetLastError();  // clears what is not sticky
  if (error == cudaErrorMemoryAllocation) {
    throw_error(ErrorKind::kResource,
                "the GPU's memory is full ({}); lower --memory-ratio or --num-pages", call);
  }
  throw_error(ErrorKind::kInternal, "CUDA: {} ({}) from {}", cudaGetErrorString(error),
              cudaGetErrorName(error), call);
}

void check(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw_error(ErrorKind::kInternal, "cuBLASLt: {} from {}", cublasLtGetStatusString(status), call);
}

DeviceMemory::DeviceMemory(size_t bytes) : bytes_(bytes) {
  const cudaError_t error = cudaMalloc(&data_, bytes > 0 ? bytes : 1);
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    size_t free = 0, total = 0;
    cudaMemGetInfo(&free, &total);
    throw_error(ErrorKind::kResource,
                "{} bytes of GPU memory wanted, {} of {} are free; lower --memory-ratio or "
                "--num-pages",
                bytes, free, total);
  }
  check(error, "cudaMalloc");
}

PinnedMemory::PinnedMemory(size_t bytes) : bytes_(bytes) {
  MINISGL_CUDA(cudaMallocHost(&data_, bytes > 0 ? bytes : 1));
}

Event::Event() { MINISGL_CUDA(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming)); }
Event::~Event() {
  if (event_ != nullptr) cudaEventDestroy(event_);
}
void Event::record(cudaStream_t stream) { MINISGL_CUDA(cudaEventRecord(event_, stream)); }
void Event::wait() { MINISGL_CUDA(cudaEventSynchronize(event_)); }

Stream::Stream() { MINISGL_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
Stream::~Stream() { cudaStreamDestroy(stream_); }

Staging::Staging(size_t bytes) : pinned_(bytes), device_(bytes) {}

size_t Staging::reserve(size_t bytes, cudaStream_t stream) {
  const size_t room = pinned_.bytes() / 2;
  bytes = static_cast<size_t>(align_up(static_cast<int64_t>(bytes), 256));
  MINISGL_CHECK(bytes <= room, "{} bytes through a ring of {}", bytes, pinned_.bytes());
  if (used_ + bytes > room) {  // on to the other half, once the device has left it
    left_[half_].record(stream);
    half_ ^= 1;
    left_[half_].wait();
    used_ = 0;
  }
  const size_t begin = half_ * room + used_;
  used_ += bytes;
  return begin;
}

void Staging::copy(void* to, const void* from, size_t bytes, cudaStream_t stream) {
  std::byte* pinned = pinned_.data() + reserve(bytes, stream);
  std::memcpy(pinned, from, bytes);
  MINISGL_CUDA(cudaMemcpyAsync(to, pinned, bytes, cudaMemcpyHostToDevice, stream));
}

const void* Staging::upload(const void* from, size_t bytes, cudaStream_t stream) {
  const size_t begin = reserve(bytes, stream);
  std::memcpy(pinned_.data() + begin, from, bytes);
  std::byte* to = static_cast<std::byte*>(device_.data()) + begin;
  MINISGL_CUDA(cudaMemcpyAsync(to, pinned_.data() + begin, bytes, cudaMemcpyHostToDevice, stream));
  return to;
}

}  // namespace minisgl::cuda
