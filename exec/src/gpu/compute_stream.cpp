#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <c10/cuda/CUDAStream.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "driver.hpp"
#include "pipewright/exec/device/gpu.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::exec {
namespace {

/// Returns a stream for each of `parts` equal parts of a GPU's multiprocessors: green contexts
/// (CUDA driver API, "Green Contexts").
std::vector<Stream> divide(at::Device device, int parts) {
  // Green contexts share the memory of LibTorch's own context, which must exist before.
  at::zeros({1}, at::TensorOptions(device));
  const Driver driver;
  CUdevice gpu = 0;
  PIPEWRIGHT_DRIVER(driver, cuDeviceGet, &gpu, device.index());
  CUdevResource all{};
  PIPEWRIGHT_DRIVER(driver, cuDeviceGetDevResource, gpu, &all, CU_DEV_RESOURCE_TYPE_SM);
  // Sizes are rounded up to this multiple. Rounding down here makes sure that the last part fits.
  const unsigned granule = std::max(all.sm.smCoscheduledAlignment, 1U);
  const unsigned each = all.sm.smCount / static_cast<unsigned>(parts) / granule * granule;
  if (each < std::max(all.sm.minSmPartitionSize, 1U))
    throw plan::InputError(
        fmt::format("{} ranks cannot share a GPU of {} multiprocessors: a part needs at least {}, "
                    "in multiples of {}",
                    parts, all.sm.smCount, all.sm.minSmPartitionSize, granule));
  std::vector<CUdevResource> groups(static_cast<std::size_t>(parts));
  auto made = static_cast<unsigned>(parts);
  PIPEWRIGHT_DRIVER(driver, cuDevSmResourceSplitByCount, groups.data(), &made, &all, nullptr, 0U,
                    each);
  if (made < static_cast<unsigned>(parts))
    throw plan::InputError(
        fmt::format("a GPU of {} multiprocessors can be divided into {} parts of {}, not {}",
                    all.sm.smCount, made, each, parts));
  std::vector<Stream> streams;
  for (CUdevResource& group : groups) {
    CUdevResourceDesc description{};
    PIPEWRIGHT_DRIVER(driver, cuDevResourceGenerateDesc, &description, &group, 1U);
    CUgreenCtx context{};
    PIPEWRIGHT_DRIVER(driver, cuGreenCtxCreate, &context, description, gpu,
                      static_cast<unsigned>(CU_GREEN_CTX_DEFAULT_STREAM));
    CUstream stream{};
    PIPEWRIGHT_DRIVER(driver, cuGreenCtxStreamCreate, &stream, context,
                      static_cast<unsigned>(CU_STREAM_NON_BLOCKING), 0);
    streams.emplace_back(c10::cuda::getStreamFromExternal(stream, device.index()).unwrap());
  }
  return streams;
}

}  // namespace

Stream compute_stream(const RankDevice& where) {
  if (where.device.is_cpu() || where.parts <= 1)
    return Stream::of(where.device, /*urgent=*/false);
  // Contexts and streams live as long as the process, because LibTorch's allocator keeps memory for
  // each stream that it has seen.
  static std::mutex mutex;
  static std::map<std::pair<int, int>, std::vector<Stream>> divided;  // by GPU and parts
  const std::lock_guard lock(mutex);
  auto& streams = divided[{where.device.index(), where.parts}];
  if (streams.empty())
    streams = divide(where.device, where.parts);
  return streams.at(static_cast<std::size_t>(where.part));
}

}  // namespace pipewright::exec
