#pragma once

// Colors, sizes and patterns of the window, for the light and the dark theme, in one place so that
// all views agree.

#include <QColor>
#include <QFont>
#include <QPalette>
#include <QString>
#include <array>
#include <optional>

#include "pipewright/gui/look/event_classes.hpp"
#include "pipewright/plan/timeline/timeline.hpp"

namespace pipewright::gui {

/// A pattern that distinguishes two kinds without relying on color.
enum class Hatch { None, Rising, Falling, Dots, Lines, Cross };

/// The appearance of the events of one instruction kind.
struct ClassLook {
  std::optional<plan::InstructionKind> kind;  // empty: all kinds without a look of their own
  const char* meaning;                        // text of the legend, such as "forward"
  QColor fill;  // Okabe and Ito's colors, which remain distinct with color blindness
  Hatch hatch = Hatch::None;
};

/// Sizes in pixels at scale 1: a margin, and font sizes.
inline constexpr int gap = 8;  // between widgets; twice that between groups
inline constexpr int small_size = 11;
inline constexpr int text_size = 12;
inline constexpr int heading_size = 14;
inline constexpr int figure_size = 20;  // numbers that are readable from a distance

struct Theme {
  bool dark = false;
  QColor window, panel, line, text, soft_text, accent, warning;
  QColor plot;  // background of the timeline: of communication rows, and outside the iteration
  QColor idle;  // background of compute rows: idle time of unknown cause
  QColor grid;
  QColor selection;
  QColor send, receive, reduce;
  std::array<ClassLook, class_count> kinds;  // by `kind_class`
  std::array<QColor, class_count> causes;    // tints of idle time, by IdleCause
  std::array<QColor, class_count> heat;      // much faster than predicted … much slower
  std::array<QColor, class_count> owners;    // memory by what holds it (sim::Owner)
};

const Theme& light_theme();
const Theme& dark_theme();

/// Returns the index of an instruction kind in `Theme::kinds`; the last index for kinds without a
/// look of their own.
std::uint8_t kind_class(plan::InstructionKind kind);

QPalette palette_of(const Theme& theme);
/// Returns the style sheet of all widgets.
QString style_of(const Theme& theme);

QFont font_of(int pixels, bool bold = false);

}  // namespace pipewright::gui
