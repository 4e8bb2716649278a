#include "launches.hpp"

#include <cuda_runtime_api.h>
#include <cxxabi.h>
#include <dlfcn.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <string>

#include "result.hpp"
#include "streams.hpp"

namespace standin {
namespace {

std::map<const void*, const char*>& names() {
  static auto* const kernels = new std::map<const void*, const char*>;
  return *kernels;
}

/// Reports the launch of a kernel, which the stand-in cannot compute, instead of leaving wrong
/// values.
cudaError_t launch(const void* kernel, cudaStream_t stream) {
  const auto found = names().find(kernel);
  const char* const name = found == names().end() ? "of an unknown name" : found->second;
  int status = 0;
  char* const readable = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  report("not computed: the kernel " + std::string(status == 0 ? readable : name).substr(0, 300));
  std::free(readable);
  stream_of(stream).give({.told = named(PipewrightStandinWork::Kernel, "cudaLaunchKernel", name)});
  return done();
}

struct CallConfiguration {
  dim3 grid, block;
  size_t shared = 0;
  cudaStream_t stream{};
};
thread_local CallConfiguration configuration;

}  // namespace

void load_operators() {
  static std::mutex mutex;
  static bool is_loaded = false;
  const std::lock_guard lock(mutex);
  if (is_loaded || dlopen("libtorch_cuda.so", RTLD_LAZY | RTLD_NOLOAD) == nullptr)
    return;
  is_loaded = true;
  Dl_info own{};
  dladdr(reinterpret_cast<const void*>(&load_operators), &own);
  const std::string file = own.dli_fname;
  const std::string operators =
      file.substr(0, file.rfind('/')) + "/libpipewright_standin_operators.so";
  if (dlopen(operators.c_str(), RTLD_NOW) == nullptr)
    report(std::string("the stand-in's operators: ") + dlerror());
}

}  // namespace standin

using namespace standin;

extern "C" {

void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int) {}
void __cudaRegisterFunction(void**, const char* host, char*, const char* name, int, uint3*, uint3*,
                            dim3*, dim3*, int*) {
  names()[host] = name;  // libraries register when they are loaded, one after the other
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(host));
  return done();
}
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, CUstream_st* stream) {
  configuration = {grid, block, shared, stream};
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
  *grid = configuration.grid;
  *block = configuration.block;
  *shared = configuration.shared;
  *static_cast<cudaStream_t*>(stream) = configuration.stream;
  return done();
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3, dim3, void**, size_t,
                               cudaStream_t stream) {
  return launch(kernel, stream);
}
cudaError_t cudaLaunchKernel(const void* kernel, dim3, dim3, void**, size_t, cudaStream_t stream) {
  return launch(kernel, stream);
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* kernel, void**) {
  return launch(kernel, config->stream);
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  *attributes = {};
  attributes->maxThreadsPerBlock = 1024;
  attributes->binaryVersion = 90;
  return done();
}
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) { return done(); }
char __cudaInitModule(void**) { return 1; }
cudaError_t cudaLaunchCooperativeKernel(const void* kernel, dim3, dim3, void**, size_t,
                                        cudaStream_t stream) {
  return launch(kernel, stream);
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*, int, size_t) {
  *blocks = 2;
  return done();
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void*, int,
                                                                   size_t, unsigned) {
  *blocks = 2;
  return done();
}

}  // extern "C"
