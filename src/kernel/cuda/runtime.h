// The CUDA runtime's handles as move-only owners, and its errors as ours.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace minisgl::cuda {

// Throws unless the call succeeded: kResource when memory ran out, kInternal otherwise, with the
// call, the driver's words and what to do. `call` is a literal.
void check(cudaError_t error, const char* call);
void check(cublasStatus_t status, const char* call);
#define MINISGL_CUDA(call) ::minisgl::cuda::check((call), #call)

// Device memory. Errors: kResource with the size asked for and what is free.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  explicit DeviceMemory(size_t bytes);
  DeviceMemory(DeviceMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~DeviceMemory() { cudaFree(data_); }

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  void* release() { return std::exchange(data_, nullptr); }

 private:
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

// Page-locked host memory, which the copy engines read without the CPU.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  explicit PinnedMemory(size_t bytes);
  PinnedMemory(PinnedMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  PinnedMemory& operator=(PinnedMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~PinnedMemory() { cudaFreeHost(data_); }

  std::byte* data() const { return static_cast<std::byte*>(data_); }
  size_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

// A point in a stream that the host can wait for. wait() returns at once before the first record().
class Event {
 public:
  Event();
  Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  Event& operator=(Event&&) = delete;
  ~Event();

  void record(cudaStream_t stream);
  void wait();

 private:
  cudaEvent_t event_ = nullptr;
};

class Stream {
 public:
  Stream();
  Stream(Stream&&) = delete;
  ~Stream();
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

// Small host arrays on their way to the device: a page-locked ring in halves, so that the caller's
// memory is free again when a call returns, and nothing waits unless the device is a whole half
// behind. One thread.
class Staging {
 public:
  explicit Staging(size_t bytes);

  // Whether an array of this size goes through the ring.
  bool takes(size_t bytes) const { return bytes + 256 <= pinned_.bytes() / 2; }
  // Enqueues a copy to `to` on the device.
  void copy(void* to, const void* from, size_t bytes, cudaStream_t stream);
  // Enqueues a copy to the ring's device side and returns the place; good for kernels enqueued
  // before as much again as half the ring has gone through.
  const void* upload(const void* from, size_t bytes, cudaStream_t stream);

 private:
  size_t reserve(size_t bytes, cudaStream_t stream);

  PinnedMemory pinned_;
  DeviceMemory device_;
  Event left_[2];    // recorded when the ring moves on from a half
  size_t half_ = 0;  // the one that is being filled …
  size_t used_ = 0;  // … and how much of it is
};

}  // namespace minisgl::cuda
