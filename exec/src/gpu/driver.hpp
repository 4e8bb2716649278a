#pragma once

// Calls to NVIDIA's driver, for functions that CUDA's runtime does not offer.

#include <cuda.h>
#include <fmt/format.h>

#include "pipewright/exec/device/loaded_library.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::exec {

/// The driver's functions, loaded from the driver, which is installed apart from CUDA's libraries.
class Driver {
 public:
  Driver() : library_("NVIDIA's driver", "libcuda.so.1") {}

  /// Returns null if this driver lacks the function.
  template <class Function>
  Function find(const char* name) const {
    Function function = nullptr;
    library_.find_or_not(name, function);
    return function;
  }

  template <class... Parameters, class... Arguments>
  void call(const char* name, CUresult (*)(Parameters...), Arguments... arguments) const {
    const auto function = find<CUresult (*)(Parameters...)>(name);
    if (function == nullptr)
      throw plan::InputError(fmt::format(
          "this driver does not have {}, because it is older than CUDA 12.4. Update the driver",
          name));
    require(function(arguments...), name);
  }

  static void require(CUresult result, const char* name) {
    if (result != CUDA_SUCCESS)
      throw plan::InputError(
          fmt::format("{} failed with CUDA error {}", name, static_cast<int>(result)));
  }

 private:
  LoadedLibrary library_;
};

// The pointer to the declared function only supplies its type.
#define PIPEWRIGHT_DRIVER(driver, function, ...) \
  (driver).call(#function, static_cast<decltype(&function)>(nullptr), __VA_ARGS__)

}  // namespace pipewright::exec
