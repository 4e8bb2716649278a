#pragma once

// CUPTI's buffers as values of our own. Nothing here needs a GPU or CUPTI's library.

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

/// Where the records of a buffer begin, by the sizes in the headers that this was built with. It
/// ends at the first record whose kind or whose end is not known.
struct RecordPlaces {
  std::vector<std::size_t> begins;
  std::size_t end = 0;  // of the last one
};
RecordPlaces record_places(ActivityBytes buffer);
/// Where the record that begins there ends, by those sizes; of a kind that is not known, its begin.
std::size_t end_of_record(ActivityBytes buffer, std::size_t begin);

/// Each name once, and readable: what compilers make of C++'s names is undone.
class RecordNames {
 public:
  std::uint32_t number_of(const std::string& name);
  /// The number of a name at a place in memory; null is "a kernel without a name".
  std::uint32_t number_at(const char* name);
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::vector<std::string> names_;
};

/// Reads the text that a kernel's record points to; CUPTI owns it.
using NameReader = std::function<std::uint32_t(const char* name)>;
/// The name of a call of CUDA's runtime, or else of its driver, by the number that CUPTI has for
/// it.
using CallNamer = std::function<std::string(bool of_runtime, std::uint32_t number)>;

/// Appends the records that begin at `begins` and are of use; what does not fit into the buffer
/// counts as `unread`.
void append_records(ActivityBytes buffer, const std::vector<std::size_t>& begins,
                    RecordNames& names, const NameReader& kernel_name, const CallNamer& call_name,
                    Activity& activity);

}  // namespace pipewright::profiler
