// Writes values as torch's own pickler does: protocol 2, without memoization.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace pipewright::test {

inline std::string little_endian(std::uint64_t value, int width) {
  std::string bytes;
  for (; width > 0; --width, value >>= 8)
    bytes += static_cast<char>(value & 0xff);
  return bytes;
}
inline std::string pickle_text(const std::string& text) {
  return "X" + little_endian(text.size(), 4) + text;
}
inline std::string pickle_integer(std::int64_t value) {
  if (value >= 0 && value < 256)
    return "K" + little_endian(static_cast<std::uint64_t>(value), 1);
  if (value >= 0 && value < 65536)
    return "M" + little_endian(static_cast<std::uint64_t>(value), 2);
  return "\x8a\x08" + little_endian(static_cast<std::uint64_t>(value), 8);
}
inline std::string pickle_flag(bool value) { return value ? "\x88" : "\x89"; }
inline std::string pickle_none() { return "N"; }
inline std::string pickle_list(const std::vector<std::string>& items) {
  std::string bytes = "](";
  for (const std::string& item : items)
    bytes += item;
  return bytes + "e";
}
inline std::string pickle_integers(const std::vector<int>& values) {
  std::vector<std::string> items;
  for (const int value : values)
    items.push_back(pickle_integer(value));
  return pickle_list(items);
}
inline std::string pickle_pair(const std::string& first, const std::string& second) {
  return "(" + first + second + "t";
}
inline std::string pickle_dict(const std::vector<std::pair<std::string, std::string>>& fields) {
  std::string bytes = "}(";
  for (const auto& [key, value] : fields)
    bytes += pickle_text(key) + value;
  return bytes + "u";
}
inline std::string pickle_file(const std::string& value) { return "\x80\x02" + value + "."; }

}  // namespace pipewright::test
