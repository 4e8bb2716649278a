#pragma once

// The devices that the stand-in has, and their memory, which is the host's. There are
// PIPEWRIGHT_STANDIN_DEVICES of them, two where that is not set, and CUDA_VISIBLE_DEVICES chooses.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string>

namespace standin {

int device_count();
int current_device();
bool set_device(int device);
void describe(int device, cudaDeviceProp& properties);
int attribute(int device, int which);

/// Null where it would not fit.
void* allocate(int device, std::size_t bytes);
void* allocate_host(std::size_t bytes);
/// Whether there was such memory.
bool release(void* memory);
void register_host(void* memory, std::size_t bytes);
bool unregister_host(void* memory);
std::size_t memory_of_device();
std::size_t free_memory(int device);
void describe(const void* memory, cudaPointerAttributes& attributes);

}  // namespace standin
