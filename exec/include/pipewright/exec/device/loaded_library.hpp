#pragma once

// A shared library that is loaded when it is wanted, and stays for the life of the process: those
// of NVIDIA are large, and most machines have none.

#include <string>

namespace pipewright::exec {

class LoadedLibrary {
 public:
  /// `name`: in errors, such as "NCCL". Throws InputError where there is no `file`.
  LoadedLibrary(std::string name, const char* file);

  /// Throws InputError where the library does not have it.
  template <class Function>
  void find(const char* symbol, Function& function) const {
    function = reinterpret_cast<Function>(address_of(symbol));
  }
  /// Null there.
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
