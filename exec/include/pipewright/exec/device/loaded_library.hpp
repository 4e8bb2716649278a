#pragma once

// A shared library that is loaded on demand and stays loaded. NVIDIA's libraries are large, and
// most machines have none.

#include <string>

namespace pipewright::exec {

class LoadedLibrary {
 public:
  /// Loads `file`. `name`: for messages, such as "NCCL". Throws InputError if there is no such
  /// file.
  LoadedLibrary(std::string name, const char* file);

  /// Looks up a function. Throws InputError if the library does not have it.
  template <class Function>
  void find(const char* symbol, Function& function) const {
    function = reinterpret_cast<Function>(address_of(symbol));
  }
  /// Looks up a function, which is null if the library does not have it.
  template <class Function>
  void find_or_not(const char* symbol, Function& function) const {
    function = reinterpret_cast<Function>(address_or_null(symbol));
  }

 private:
  void* address_of(const char* symbol) const;
  void* address_or_null(const char* symbol) const;

  std::string name_;
  void* library_;
};

}  // namespace pipewright::exec
