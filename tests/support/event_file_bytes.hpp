// Makes native timeline files with invalid contents but valid checksums.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "timeline/xxh64.hpp"

namespace pipewright::test {

inline constexpr std::size_t event_file_front = 384;  // header and table of sections
inline constexpr std::size_t event_file_sections = 10;

/// Returns where a section's row of the table begins. Its offset is at byte 8, its size at 16, its
/// checksum at 24.
inline std::size_t event_file_row(std::size_t section) { return 64 + 32 * section; }

template <class Number>
Number number_in(const std::string& bytes, std::size_t offset) {
  Number number;
  std::memcpy(&number, bytes.data() + offset, sizeof number);
  return number;
}

template <class Number>
void put_number(std::string& bytes, std::size_t offset, Number number) {
  std::memcpy(bytes.data() + offset, &number, sizeof number);
}

/// Returns the file with all checksums recomputed for the sections that lie within it.
inline std::string with_right_checksums(std::string bytes) {
  if (bytes.size() < event_file_front)
    return bytes;
  const auto checksum = [&](std::uint64_t offset, std::uint64_t size) {
    return plan::xxh64(std::as_bytes(std::span(bytes)).subspan(offset, size));
  };
  for (std::size_t section = 0; section < event_file_sections; ++section) {
    const std::size_t row = event_file_row(section);
    const auto offset = number_in<std::uint64_t>(bytes, row + 8);
    const auto size = number_in<std::uint64_t>(bytes, row + 16);
    if (offset <= bytes.size() && size <= bytes.size() - offset)
      put_number(bytes, row + 24, checksum(offset, size));
  }
  put_number(bytes, 24, std::uint64_t{0});
  put_number(bytes, 24, checksum(0, event_file_front));
  return bytes;
}

/// Returns the file with another number as element `index` of a section, and valid checksums.
template <class Number>
std::string with_element(std::string bytes, std::size_t section, std::size_t index, Number number) {
  const auto offset = number_in<std::uint64_t>(bytes, event_file_row(section) + 8);
  put_number(bytes, offset + index * sizeof number, number);
  return with_right_checksums(std::move(bytes));
}

}  // namespace pipewright::test
