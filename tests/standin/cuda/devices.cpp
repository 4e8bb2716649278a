#include "devices.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <sstream>
#include <vector>

#include "order.hpp"

namespace standin {
namespace {

constexpr std::size_t memory_bytes = std::size_t{8} << 30;
constexpr int multiprocessors = 132;

std::vector<int> visible_devices() {
  const char* const made = std::getenv("PIPEWRIGHT_STANDIN_DEVICES");
  const int all = made == nullptr ? 2 : std::atoi(made);
  std::vector<int> visible;
  const char* const chosen = std::getenv("CUDA_VISIBLE_DEVICES");
  if (chosen == nullptr) {
    for (int device = 0; device < all; ++device)
      visible.push_back(device);
    return visible;
  }
  std::istringstream text(chosen);
  for (std::string word; std::getline(text, word, ',');) {
    const int device = word.empty() ? -1 : std::atoi(word.c_str());
    if (device < 0 || device >= all)
      break;  // as NVIDIA's runtime does: devices after an invalid one are hidden too
    visible.push_back(device);
  }
  return visible;
}

const std::vector<int>& visible() {
  static const std::vector<int> devices = visible_devices();
  return devices;
}

struct Block {
  std::size_t bytes = 0;
  cudaMemoryType type = cudaMemoryTypeHost;
  int device = 0;
  bool is_ours = true;
};
struct Memory {
  std::mutex mutex;
  std::map<const char*, Block> blocks;
  std::map<int, std::size_t> used;
};
Memory& memory() {
  static Memory* const one = new Memory;
  return *one;
}

void* make(std::size_t bytes, cudaMemoryType type) {
  const std::size_t aligned = std::max<std::size_t>((bytes + 511) / 512 * 512, 512);
  void* const made = std::aligned_alloc(512, aligned);
  if (made == nullptr)
    return nullptr;
  std::memset(made, 0xff, aligned);  // NaN, so that reads of uninitialized memory are noticed
  const std::lock_guard lock(memory().mutex);
  memory().blocks[static_cast<char*>(made)] = {bytes, type, current_device()};
  return made;
}

thread_local int device_of_thread = 0;

}  // namespace

int device_count() { return static_cast<int>(visible().size()); }

int current_device() { return device_of_thread; }

bool set_device(int device) {
  if (device < 0 || device >= device_count())
    return false;
  device_of_thread = device;
  return true;
}

void describe(int device, cudaDeviceProp& properties) {
  properties = {};
  const int physical = visible()[static_cast<std::size_t>(device)];
  std::snprintf(properties.name, sizeof properties.name, "Stand-in GPU");
  std::memcpy(properties.uuid.bytes, "pipewright-gpu0", 16);
  properties.uuid.bytes[14] = static_cast<char>('0' + physical);
  properties.major = 9;
  properties.minor = 0;
  properties.totalGlobalMem = memory_bytes;
  properties.multiProcessorCount = multiprocessors;
  properties.warpSize = 32;
  properties.maxThreadsPerBlock = 1024;
  properties.maxThreadsPerMultiProcessor = 2048;
  properties.sharedMemPerBlock = 48 << 10;
  properties.sharedMemPerMultiprocessor = 228 << 10;
  properties.sharedMemPerBlockOptin = 227 << 10;
  properties.regsPerBlock = 65536;
  properties.regsPerMultiprocessor = 65536;
  properties.maxGridSize[0] = 2147483647;
  properties.maxGridSize[1] = properties.maxGridSize[2] = 65535;
  properties.maxThreadsDim[0] = properties.maxThreadsDim[1] = 1024;
  properties.maxThreadsDim[2] = 64;
  properties.l2CacheSize = 50 << 20;
  properties.pciBusID = physical + 1;
  properties.concurrentKernels = 1;
  properties.asyncEngineCount = 3;
  properties.unifiedAddressing = 1;
}

int attribute(int device, int which) {
  cudaDeviceProp properties;
  describe(device, properties);
  switch (which) {
    case cudaDevAttrMultiProcessorCount:
      return properties.multiProcessorCount;
    case cudaDevAttrComputeCapabilityMajor:
      return properties.major;
    case cudaDevAttrComputeCapabilityMinor:
      return properties.minor;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      return static_cast<int>(properties.sharedMemPerBlockOptin);
    case cudaDevAttrWarpSize:
      return properties.warpSize;
    case cudaDevAttrMaxThreadsPerBlock:
      return properties.maxThreadsPerBlock;
    case cudaDevAttrPciBusId:
      return properties.pciBusID;
    default:
      return 0;
  }
}

void* allocate(int device, std::size_t bytes) {
  {
    const std::lock_guard lock(memory().mutex);
    if (memory().used[device] + bytes > memory_bytes)
      return nullptr;
    memory().used[device] += bytes;
  }
  return make(bytes, cudaMemoryTypeDevice);
}

void* allocate_host(std::size_t bytes) { return make(bytes, cudaMemoryTypeHost); }

bool release(void* place) {
  {
    const std::lock_guard lock(memory().mutex);
    const auto found = memory().blocks.extract(static_cast<const char*>(place));
    if (found.empty())
      return false;
    const Block& block = found.mapped();
    if (block.type == cudaMemoryTypeDevice)
      memory().used[block.device] -= block.bytes;
    forget(place, block.bytes);
  }
  std::free(place);
  return true;
}

void register_host(void* place, std::size_t bytes) {
  const std::lock_guard lock(memory().mutex);
  memory().blocks[static_cast<char*>(place)] = {bytes, cudaMemoryTypeHost, current_device(), false};
}

bool unregister_host(void* place) {
  const std::lock_guard lock(memory().mutex);
  return memory().blocks.erase(static_cast<const char*>(place)) > 0;
}

std::size_t memory_of_device() { return memory_bytes; }

std::size_t free_memory(int device) {
  const std::lock_guard lock(memory().mutex);
  return memory_bytes - memory().used[device];
}

void describe(const void* place, cudaPointerAttributes& attributes) {
  attributes = {};
  const std::lock_guard lock(memory().mutex);
  const auto* const wanted = static_cast<const char*>(place);
  auto next = memory().blocks.upper_bound(wanted);
  if (next == memory().blocks.begin())
    return;
  const auto& [begin, block] = *std::prev(next);
  if (wanted >= begin + block.bytes)
    return;
  attributes.type = block.type;
  attributes.device = block.device;
  attributes.devicePointer = const_cast<void*>(place);
  attributes.hostPointer = block.type == cudaMemoryTypeHost ? const_cast<void*>(place) : nullptr;
}

}  // namespace standin
