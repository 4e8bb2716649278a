#pragma once

// Converts CUPTI's buffers to records. Needs neither a GPU nor CUPTI's library.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "pipewright/profiler/activity/gpu_record.hpp"

namespace pipewright::profiler {

using ActivityBytes = std::span<const std::uint8_t>;

/// The offsets of a buffer's records, by the sizes in the headers of the build. They end at the
/// first record of unknown kind or size.
struct RecordPlaces {
  std::vector<std::size_t> begins;
  std::size_t end = 0;  // of the last record
};
RecordPlaces record_places(ActivityBytes buffer);
/// Returns where the record at `begin` ends, by those sizes; `begin` for an unknown kind.
std::size_t end_of_record(ActivityBytes buffer, std::size_t begin);

/// Demangled names, each stored once.
class RecordNames {
 public:
  std::uint32_t number_of(const std::string& name);
  /// Returns the number of a name by its address; null counts as "a kernel without a name".
  std::uint32_t number_at(const char* name);
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::vector<std::string> names_;
};

/// Reads the name to which a kernel's record points; CUPTI owns it.
using NameReader = std::function<std::uint32_t(const char* name)>;
/// Returns the name of a call of CUDA's runtime or driver, by CUPTI's number for it.
using CallNamer = std::function<std::string(bool of_runtime, std::uint32_t number)>;

/// Appends the useful records that begin at `begins`; bytes that do not fit into the buffer count
/// as `unread`.
void append_records(ActivityBytes buffer, const std::vector<std::size_t>& begins,
                    RecordNames& names, const NameReader& kernel_name, const CallNamer& call_name,
                    Activity& activity);

}  // namespace pipewright::profiler
