#pragma once

#include <cuda.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include "pipewright/plan/error.hpp"

namespace pipewright::exec {

/// The driver's functions, which come with the driver and not with CUDA's libraries.
class Driver {
 public:
  Driver() : library_(dlopen("libcuda.so.1", RTLD_NOW)) {
    if (library_ == nullptr)
      throw plan::InputError(dlerror());
  }

  template <class... Parameters, class... Arguments>
  void call(const char* name, CUresult (*)(Parameters...), Arguments... arguments) const {
    using Function = CUresult (*)(Parameters...);
    const auto function = reinterpret_cast<Function>(dlsym(library_, name));
    if (function == nullptr)
      throw plan::InputError(
          fmt::format("this driver has no {}: it is older than CUDA 12.4", name));
    if (const CUresult result = function(arguments...); result != CUDA_SUCCESS)
      throw plan::InputError(
          fmt::format("{} failed with CUDA error {}", name, static_cast<int>(result)));
  }

 private:
  void* library_;  // never closed: CUDA uses it too
};

// The pointer to the declared function only gives its type.
#define PIPEWRIGHT_DRIVER(driver, function, ...) \
  (driver).call(#function, static_cast<decltype(&function)>(nullptr), __VA_ARGS__)

}  // namespace pipewright::exec
