// A thread's working memory: grows, is never cleared, and starts at a cache line.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <new>

template <typename T>
class Scratch {
 public:
  Scratch() = default;
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { std::free(data_); }

  // Returns room for size numbers; what it held before is lost.
  T* room(int64_t size) {
    if (size > size_) {
      std::free(data_);
      const int64_t bytes = (size * int64_t(sizeof(T)) + 63) / 64 * 64;
      data_ = static_cast<T*>(std::aligned_alloc(64, bytes));
      if (!data_) throw std::bad_alloc();
      size_ = size;
    }
    return data_;
  }

  T* data() { return data_; }

 private:
  T* data_ = nullptr;
  int64_t size_ = 0;
};
