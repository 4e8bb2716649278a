#include "nccl_host.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>

#include "driver.hpp"
#include "pipewright/exec/device/shared_gpus.hpp"

namespace pipewright::exec {
namespace {

std::string host_name() {
  if (const char* const own = std::getenv("NCCL_HOSTID"))
    return own;
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

/// Returns the UUID of the device, or of the MIG instance that stands for it.
std::string uuid_of(at::Device device) {
  const Driver driver;
  CUdevice gpu = 0;
  CUuuid uuid{};
  PIPEWRIGHT_DRIVER(driver, cuDeviceGet, &gpu, device.index());
  driver.call("cuDeviceGetUuid_v2", static_cast<decltype(&cuDeviceGetUuid)>(nullptr), &uuid, gpu);
  std::array<unsigned char, sizeof uuid.bytes> bytes{};
  std::copy(std::begin(uuid.bytes), std::end(uuid.bytes), bytes.begin());
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

at::Tensor bytes_of(const std::string& text) {
  at::Tensor bytes = at::empty({static_cast<std::int64_t>(text.size())}, at::kByte);
  std::copy(text.begin(), text.end(), bytes.data_ptr<std::uint8_t>());
  return bytes;
}

std::string string_of(const at::Tensor& bytes) {
  const auto* const first = bytes.const_data_ptr<std::uint8_t>();
  return {first, first + bytes.numel()};
}

}  // namespace

void agree_on_hosts(Job& job, Transport& transport, at::Device device) {
  std::vector<int> everybody(static_cast<std::size_t>(job.size()));
  std::iota(everybody.begin(), everybody.end(), 0);
  std::vector<GpuOfRank> gpus;
  for (const Tensors& theirs : transport.all_gather(
           everybody, job.rank(), {bytes_of(host_name()), bytes_of(uuid_of(device))}))
    gpus.push_back({string_of(theirs.at(0)), string_of(theirs.at(1))});
  const std::string host = hosts_for_nccl(gpus).at(static_cast<std::size_t>(job.rank()));
  if (!host.empty())
    ::setenv("NCCL_HOSTID", host.c_str(), /*overwrite=*/0);
}

}  // namespace pipewright::exec
