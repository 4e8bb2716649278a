#pragma once

// File positions in a zip archive that torch.save wrote: entries are stored consecutively, neither
// compressed nor encrypted.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pipewright::plan {

struct ZipEntry {
  std::string name;
  std::int64_t begin = 0;  // bytes [begin, end) of the archive
  std::int64_t end = 0;
};

/// Returns the entries in the order of the central directory, which may be Zip64. Throws InputError
/// that names `file` for any other format, and for entries that exceed the archive or have
/// duplicate names.
std::vector<ZipEntry> zip_entries(std::string_view bytes, const std::string& file);

}  // namespace pipewright::plan
