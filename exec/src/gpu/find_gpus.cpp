#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <c10/cuda/CUDAFunctions.h>
#include <dlfcn.h>

#include <array>
#include <cstdlib>

#include "driver.hpp"
#include "pipewright/exec/device/gpu.hpp"
#include "pipewright/exec/first_line.hpp"

namespace pipewright::exec {
namespace {

/// Sets variables that the libraries read when CUDA starts. A variable that the user has set keeps
/// its value.
void set_up_environment(bool as_launched) {
  // Streams beyond the number of connections share one, and then a stream that waits blocks the
  // other: a receive that waits for its data would block the send that the data depends on.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", /*overwrite=*/0);
  // A kernel that is loaded at its first launch may wait for all running work. That includes a
  // posted NCCL receive, whose sender may wait for that very launch.
  if (!as_launched)
    setenv("CUDA_MODULE_LOADING", "EAGER", /*overwrite=*/0);
  // Without workspaces of a fixed size, cuBLAS adds in a different order from call to call.
  setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
}

std::vector<std::string> names_of(int count) {
  const Driver driver;
  std::vector<std::string> names;
  for (int index = 0; index < count; ++index) {
    CUdevice gpu = 0;
    std::array<char, 256> name{};
    PIPEWRIGHT_DRIVER(driver, cuDeviceGet, &gpu, index);
    PIPEWRIGHT_DRIVER(driver, cuDeviceGetName, name.data(), static_cast<int>(name.size()), gpu);
    names.emplace_back(name.data());
  }
  return names;
}

}  // namespace

Gpus find_gpus(bool as_launched) {
  set_up_environment(as_launched);
  if (dlopen("libtorch_cuda.so", RTLD_LAZY | RTLD_GLOBAL) == nullptr)
    return {{}, dlerror()};
  if (!at::globalContext().hasCUDA() && c10::cuda::device_count() > 0)
    return {{}, "LibTorch was used before its CUDA libraries were loaded"};
  try {
    const c10::DeviceIndex count = c10::cuda::device_count_ensure_non_zero();
    return {names_of(count), ""};
  } catch (const std::exception& error) {
    const std::string reason = first_line(error.what());
    return {{}, reason.substr(0, reason.find(". "))};  // without the advice that follows
  }
}

}  // namespace pipewright::exec
