#pragma once

// A zip archive as torch writes it: its files are stored uncompressed one after the other.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace pipewright::test {

inline void append_number(std::string& bytes, std::uint64_t number, int width) {
  for (; width > 0; --width, number >>= 8)
    bytes += static_cast<char>(number & 0xff);
}

/// Returns entries one after the other, followed by their directory.
inline std::string zip_of(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string bytes, directory;
  for (const auto& [name, content] : entries) {
    const std::size_t begin = bytes.size();
    std::string head;  // from the flags on, the same in both headers
    append_number(head, 0, 12);
    append_number(head, content.size(), 4);
    append_number(head, content.size(), 4);
    append_number(head, name.size(), 2);
    append_number(head, 0, 2);
    append_number(bytes, 0x04034b50, 4);
    append_number(bytes, 0, 2);
    bytes += head + name + content;
    append_number(directory, 0x02014b50, 4);
    append_number(directory, 0, 4);
    directory += head;
    append_number(directory, 0, 10);
    append_number(directory, begin, 4);
    directory += name;
  }
  const std::size_t begin = bytes.size();
  bytes += directory;
  append_number(bytes, 0x06054b50, 4);
  append_number(bytes, 0, 4);
  append_number(bytes, entries.size(), 2);
  append_number(bytes, entries.size(), 2);
  append_number(bytes, directory.size(), 4);
  append_number(bytes, begin, 4);
  append_number(bytes, 0, 2);
  return bytes;
}

}  // namespace pipewright::test
