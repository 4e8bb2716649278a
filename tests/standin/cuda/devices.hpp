#pragma once

// The stand-in's devices and their memory, which is host memory. There are
// PIPEWRIGHT_STANDIN_DEVICES of them (default: two), and CUDA_VISIBLE_DEVICES selects among them.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string>

namespace standin {

int device_count();
int current_device();
bool set_device(int device);
void describe(int device, cudaDeviceProp& properties);
int attribute(int device, int which);

/// Returns null if the memory would not fit.
void* allocate(int device, std::size_t bytes);
void* allocate_host(std::size_t bytes);
/// Returns true if there was such memory.
bool release(void* memory);
void register_host(void* memory, std::size_t bytes);
bool unregister_host(void* memory);
std::size_t memory_of_device();
std::size_t free_memory(int device);
void describe(const void* memory, cudaPointerAttributes& attributes);

}  // namespace standin
