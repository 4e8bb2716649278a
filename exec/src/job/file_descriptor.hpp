#pragma once

// A file, pipe or socket that is closed with its owner.

#include <unistd.h>

#include <utility>

namespace pipewright::exec {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int number) : number_(number) {}
  FileDescriptor(FileDescriptor&& other) noexcept : number_(other.release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~FileDescriptor() {
    if (number_ >= 0)
      close(number_);
  }

  explicit operator bool() const { return number_ >= 0; }
  int get() const { return number_; }
  /// Transfers ownership to the caller, who closes the file.
  int release() { return std::exchange(number_, -1); }

 private:
  int number_ = -1;
};

}  // namespace pipewright::exec
