#pragma once

// Number of event classes. Events are painted by class, which has one meaning at a time: a kind of
// action, or the difference from the prediction.

#include <cstddef>

namespace pipewright::gui {

inline constexpr std::size_t class_count = 8;

}  // namespace pipewright::gui
