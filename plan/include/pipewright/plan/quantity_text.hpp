#pragma once

// Formats times and sizes for people: four digits, in the unit that suits.

#include <string>

#include "pipewright/plan/quantity.hpp"

namespace pipewright::plan {

/// Returns "12.34 ms" or "57.11 s". Zero is "0 ms".
std::string time_text(double seconds);
inline std::string time_text(Seconds time) { return time_text(time.value); }

/// Returns "+1.200 ms" or "-3.000 ms".
std::string time_difference_text(double seconds);

/// Returns "1.250 GB" or "12 B"; 1 GB is 10^9 bytes.
std::string bytes_text(double bytes);
inline std::string bytes_text(Bytes bytes) { return bytes_text(static_cast<double>(bytes.value)); }

struct Unit {
  double size = 1;  // in seconds or bytes
  const char* name = "";
};

/// Returns the unit for a column of times up to `longest` (seconds): "s" or "ms".
Unit column_unit(Seconds longest);

/// Returns the unit for a column of sizes up to `most`: "GB" or "MB".
Unit column_unit(Bytes most);

}  // namespace pipewright::plan
