#pragma once

// CUPTI's records as bytes, of what a device was given.

#include <cupti.h>

#include <cstddef>
#include <cstring>
#include <optional>

#include "buffers.hpp"
#include "calls.hpp"
#include "standin.hpp"

namespace pipewright::standin {

/// A record, and what a newer CUPTI has behind it.
template <class Record>
Bytes bytes_of(const Record& record, std::size_t longer) {
  Bytes bytes(sizeof(Record) + longer, 0xAB);
  std::memcpy(bytes.data(), &record, sizeof(Record));
  return bytes;
}

/// Where a piece of work ran, as CUPTI numbers it.
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
/// Of a kind that no header has.
Bytes newer_record();

/// How long a record is that our headers have; nothing: they have none of this kind.
std::optional<std::size_t> size_of(CUpti_ActivityKind kind);

}  // namespace pipewright::standin
