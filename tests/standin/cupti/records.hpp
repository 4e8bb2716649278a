#pragma once

// Makes CUPTI's records, as bytes, from the work of a device.

#include <cupti.h>

#include <cstddef>
#include <cstring>
#include <optional>

#include "buffers.hpp"
#include "calls.hpp"
#include "standin.hpp"

namespace pipewright::standin {

/// Returns a record followed by the `longer` bytes that a newer CUPTI appends.
template <class Record>
Bytes bytes_of(const Record& record, std::size_t longer) {
  Bytes bytes(sizeof(Record) + longer, 0xAB);
  std::memcpy(bytes.data(), &record, sizeof(Record));
  return bytes;
}

/// The context and stream of a piece of work, in CUPTI's numbers.
struct Place {
  std::uint32_t context = 0;
  std::uint32_t stream = 0;
};

CUpti_ActivityKind kind_of(const PipewrightStandinWork& work);
Bytes work_record(const PipewrightStandinWork& work, const Place& place, std::uint32_t correlation,
                  std::size_t longer);
Bytes call_record(const PipewrightStandinWork& work, const CallId& call, std::uint32_t correlation,
                  std::size_t longer);
Bytes label_record(CUpti_ExternalCorrelationKind kind, std::uint64_t label,
                   std::uint32_t correlation, std::size_t longer);
/// Returns a record of a kind that no header has.
Bytes newer_record();

/// Returns the size of a record; nothing if our headers do not have its kind.
std::optional<std::size_t> size_of(CUpti_ActivityKind kind);

}  // namespace pipewright::standin
