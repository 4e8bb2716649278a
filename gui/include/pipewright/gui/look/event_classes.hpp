#pragma once

// Events are painted by their class, which has one meaning at a time: a kind of action, or how far
// off the prediction it was. There are so many of them.

#include <cstddef>

namespace pipewright::gui {

inline constexpr std::size_t class_count = 8;

}  // namespace pipewright::gui
