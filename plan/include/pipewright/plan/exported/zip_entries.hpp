#pragma once

// Where the files in a zip archive lie that torch.save has written: stored one behind the other,
// neither compressed nor encrypted.

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

/// In the order of the directory at its end, which may be one of Zip64. Throws InputError that
/// names `file` for anything else, and for entries that lie outside of it or have the name of
/// another.
std::vector<ZipEntry> zip_entries(std::string_view bytes, const std::string& file);

}  // namespace pipewright::plan
