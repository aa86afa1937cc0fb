// How two threads exchange messages: by moving them.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "utils/error.h"

namespace minisgl {

// Bounded queue, first in first out. push() waits while full, pop() while empty, close() ends both:
// what was pushed before is still popped. Thread-safe.
template <class T>
class Channel {
 public:
  // capacity >= 1
  explicit Channel(size_t capacity) : capacity_(capacity) {
    MINISGL_CHECK(capacity >= 1, "a channel needs room for one message");
  }
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // False if the channel is or gets closed: `message` is then dropped.
  bool push(T message) {
    std::unique_lock lock(mutex_);
    not_full_.wait(lock, [&] { return closed_ || queue_.size() < capacity_; });
    if (closed_) return false;
    queue_.push_back(std::move(message));
    lock.unlock();
    not_empty_.notify_one();
    return true;
  }

  // Never waits. False if full or closed: `message` is then left as it was.
  bool try_push(T& message) {
    {
      const std::lock_guard lock(mutex_);
      if (closed_ || queue_.size() >= capacity_) return false;
      queue_.push_back(std::move(message));
    }
    not_empty_.notify_one();
    return true;
  }

  // Empty once the channel is closed and all messages are taken.
  std::optional<T> pop() {
    std::unique_lock lock(mutex_);
    not_empty_.wait(lock, [&] { return closed_ || !queue_.empty(); });
    return take(lock);
  }

  // Never waits. Empty if there is no message now.
  std::optional<T> try_pop() {
    std::unique_lock lock(mutex_);
    return take(lock);
  }

  void close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    not_full_.notify_all();
    not_empty_.notify_all();
  }

  bool closed() const {
    const std::lock_guard lock(mutex_);
    return closed_;
  }
  size_t size() const {
    const std::lock_guard lock(mutex_);
    return queue_.size();
  }

 private:
  std::optional<T> take(std::unique_lock<std::mutex>& lock) {
    if (queue_.empty()) return std::nullopt;
    std::optional<T> message(std::move(queue_.front()));
    queue_.pop_front();
    lock.unlock();
    not_full_.notify_one();
    return message;
  }

  const size_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable not_full_;
  std::condition_variable not_empty_;
  std::deque<T> queue_;
  bool closed_ = false;
};

}  // namespace minisgl
