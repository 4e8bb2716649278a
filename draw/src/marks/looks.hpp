#pragma once

// The colors of all figures and their meanings.

#include <array>
#include <string_view>

#include "pipewright/plan/timeline/timeline.hpp"

namespace pipewright::draw {

constexpr const char* dark = "#1f2630";
constexpr const char* soft = "#68727f";
constexpr const char* axis_line = "#333b45";
constexpr const char* grid_line = "#cfd4da";
constexpr const char* idle_fill = "#eceef1";
constexpr const char* memory_fill = "#d9cfe8";
constexpr const char* memory_line = "#6b4fa0";
constexpr const char* send_fill = "#7a4a1e";
constexpr const char* reduce_fill = "#c2378f";

struct KindLook {
  const char* kind;
  const char* fill;
  const char* meaning;
};
/// The looks in the order of the legend. The last one is for kinds that are not listed.
constexpr std::array<KindLook, 8> kind_looks{{
    {"F", "#3f78c0", "forward"},
    {"B", "#43a05c", "backward"},
    {"I", "#169aa5", "input gradient"},
    {"W", "#a39a2c", "weight gradient"},
    {"R", "#7c93b8", "recompute"},
    {"LOAD", "#b4bac3", "load"},
    {"STEP", "#e5532d", "optimizer step"},
    {"", "#5b6068", "other"},
}};
std::size_t look_index(std::string_view kind);

/// Colors by IdleCause. They are pale, so that work stands out, and were chosen by search so that
/// any two differ in lightness or hue even without one of the three kinds of cones. Warm-up is not
/// blue and cool-down not green, because of the bars next to them.
constexpr std::array idle_tints{
    "#edebba", "#9bc3ec", "#d9b5a2", "#a6f3ff", "#b3bdc4", "#cef0dd", "#c696fc", "#f2dd7c",
};
static_assert(idle_tints.size() == plan::idle_cause_count);

}  // namespace pipewright::draw
