// The driver's functions: names of devices, and green contexts, which divide a device.

#include <cuda.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "devices.hpp"
#include "streams.hpp"

using namespace standin;

namespace {

struct GreenContext {
  int device = 0;
};

}  // namespace

extern "C" {

CUresult cuInit(unsigned) { return device_count() == 0 ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS; }
CUresult cuDriverGetVersion(int* version) {
  *version = 13000;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetCount(int* count) {
  *count = device_count();
  return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice* device, int index) {
  *device = index;
  return index < device_count() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
CUresult cuDeviceGetName(char* name, int size, CUdevice device) {
  cudaDeviceProp properties;
  describe(device, properties);
  std::snprintf(name, static_cast<std::size_t>(size), "%s", properties.name);
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  cudaDeviceProp properties;
  describe(device, properties);
  std::memcpy(uuid, &properties.uuid, sizeof *uuid);
  return CUDA_SUCCESS;
}
CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice) {
  *bytes = memory_of_device();
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute which, CUdevice device) {
  // The runtime's attributes have the same numbers.
  *value = attribute(device, static_cast<int>(which));
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxGetState(CUdevice, unsigned* flags, int* is_active) {
  *flags = 0;
  *is_active = 1;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetDevResource(CUdevice device, CUdevResource* all, CUdevResourceType type) {
  *all = {};
  all->type = type;
  all->sm.smCount = static_cast<unsigned>(attribute(device, cudaDevAttrMultiProcessorCount));
  all->sm.minSmPartitionSize = all->sm.smCoscheduledAlignment = 8;
  return CUDA_SUCCESS;
}
CUresult cuDevSmResourceSplitByCount(CUdevResource* parts, unsigned* count,
                                     const CUdevResource* all, CUdevResource* rest, unsigned,
                                     unsigned least) {
  *count = std::min(*count, all->sm.smCount / least);
  for (unsigned part = 0; part < *count; ++part) {
    parts[part] = *all;
    parts[part].sm.smCount = least;
  }
  if (rest != nullptr)
    rest->sm.smCount = all->sm.smCount - *count * least;
  return CUDA_SUCCESS;
}
CUresult cuDevResourceGenerateDesc(CUdevResourceDesc* description, CUdevResource*, unsigned) {
  *description = nullptr;
  return CUDA_SUCCESS;
}
CUresult cuGreenCtxCreate(CUgreenCtx* context, CUdevResourceDesc, CUdevice device, unsigned) {
  *context = reinterpret_cast<CUgreenCtx>(new GreenContext{device});
  return CUDA_SUCCESS;
}
CUresult cuGreenCtxStreamCreate(CUstream* stream, CUgreenCtx context, unsigned, int) {
  *stream = new_stream(reinterpret_cast<GreenContext*>(context)->device);
  return CUDA_SUCCESS;
}

}  // extern "C"
