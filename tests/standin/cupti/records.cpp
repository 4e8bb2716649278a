#include "records.hpp"

#include <unistd.h>

namespace pipewright::standin {
namespace {

template <class Record>
Record placed(const PipewrightStandinWork& work, const Place& place, std::uint32_t correlation) {
  Record record{};
  record.kind = kind_of(work);
  record.deviceId = static_cast<std::uint32_t>(work.device);
  record.contextId = place.context;
  record.streamId = place.stream;
  record.correlationId = correlation;
  record.start = work.start_ns;
  record.end = work.end_ns;
  return record;
}

bool is_between_devices(const PipewrightStandinWork& work) {
  return std::strstr(work.call, "Peer") != nullptr;
}

/// Converts a cudaMemcpyKind to CUPTI's numbers.
std::uint8_t copy_kind(std::int32_t kind) {
  constexpr std::uint8_t kinds[] = {
      CUPTI_ACTIVITY_MEMCPY_KIND_HTOH, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD,
      CUPTI_ACTIVITY_MEMCPY_KIND_DTOH, CUPTI_ACTIVITY_MEMCPY_KIND_DTOD};
  return kind >= 0 && kind < 4 ? kinds[kind] : std::uint8_t{CUPTI_ACTIVITY_MEMCPY_KIND_UNKNOWN};
}

}  // namespace

CUpti_ActivityKind kind_of(const PipewrightStandinWork& work) {
  switch (work.kind) {
    case PipewrightStandinWork::Kernel:
      return CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    case PipewrightStandinWork::Copy:
      return is_between_devices(work) ? CUPTI_ACTIVITY_KIND_MEMCPY2 : CUPTI_ACTIVITY_KIND_MEMCPY;
    case PipewrightStandinWork::Set:
      return CUPTI_ACTIVITY_KIND_MEMSET;
    case PipewrightStandinWork::HostFunction:
      break;
  }
  return CUPTI_ACTIVITY_KIND_INVALID;
}

Bytes work_record(const PipewrightStandinWork& work, const Place& place, std::uint32_t correlation,
                  std::size_t longer) {
  if (is_between_devices(work)) {
    auto copy = placed<CUpti_ActivityMemcpyPtoP4>(work, place, correlation);
    copy.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_PTOP;
    copy.bytes = work.bytes;
    return bytes_of(copy, longer);
  }
  if (work.kind == PipewrightStandinWork::Copy) {
    auto copy = placed<CUpti_ActivityMemcpy6>(work, place, correlation);
    copy.copyKind = copy_kind(work.copy_kind);
    copy.bytes = work.bytes;
    return bytes_of(copy, longer);
  }
  if (work.kind == PipewrightStandinWork::Set) {
    auto set = placed<CUpti_ActivityMemset4>(work, place, correlation);
    set.bytes = work.bytes;
    return bytes_of(set, longer);
  }
  auto kernel = placed<CUpti_ActivityKernel10>(work, place, correlation);
  kernel.name = work.name;
  return bytes_of(kernel, longer);
}

Bytes call_record(const PipewrightStandinWork& work, const CallId& call, std::uint32_t correlation,
                  std::size_t longer) {
  CUpti_ActivityAPI record{};
  record.kind = call.domain == CUPTI_CB_DOMAIN_RUNTIME_API ? CUPTI_ACTIVITY_KIND_RUNTIME
                                                           : CUPTI_ACTIVITY_KIND_DRIVER;
  record.cbid = call.number;
  record.start = work.called_ns;
  record.end = work.returned_ns;
  record.processId = static_cast<std::uint32_t>(getpid());
  record.threadId = work.thread;
  record.correlationId = correlation;
  return bytes_of(record, longer);
}

Bytes label_record(CUpti_ExternalCorrelationKind kind, std::uint64_t label,
                   std::uint32_t correlation, std::size_t longer) {
  CUpti_ActivityExternalCorrelation record{};
  record.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
  record.externalKind = kind;
  record.externalId = label;
  record.correlationId = correlation;
  return bytes_of(record, longer);
}

Bytes newer_record() {
  Bytes bytes(40, 0xCD);
  const std::uint32_t kind = 10'000;
  std::memcpy(bytes.data(), &kind, sizeof kind);
  return bytes;
}

std::optional<std::size_t> size_of(CUpti_ActivityKind kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return sizeof(CUpti_ActivityKernel10);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return sizeof(CUpti_ActivityMemcpy6);
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      return sizeof(CUpti_ActivityMemcpyPtoP4);
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return sizeof(CUpti_ActivityMemset4);
    case CUPTI_ACTIVITY_KIND_DRIVER:
    case CUPTI_ACTIVITY_KIND_RUNTIME:
      return sizeof(CUpti_ActivityAPI);
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
      return sizeof(CUpti_ActivityExternalCorrelation);
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
      return sizeof(CUpti_ActivityGraphTrace2);
    default:
      return {};
  }
}

}  // namespace pipewright::standin
