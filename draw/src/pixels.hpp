#pragma once

// Formats coordinates in pixels.

#include <fmt/format.h>

#include <string>

namespace pipewright::draw {

/// Formats a coordinate to a hundredth of a pixel, as short as possible.
inline std::string pixels(double value) {
  std::string text = fmt::format("{:.2f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.')
    text.pop_back();
  return text == "-0" ? "0" : text;
}

}  // namespace pipewright::draw
