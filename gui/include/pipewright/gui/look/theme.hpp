#pragma once

// Colours, sizes and patterns of the window, for light and dark: one place, so that all views
// agree.

#include <QColor>
#include <QFont>
#include <QPalette>
#include <QString>
#include <array>
#include <optional>

#include "pipewright/gui/look/event_classes.hpp"
#include "pipewright/plan/timeline/timeline.hpp"

namespace pipewright::gui {

/// What parts two kinds where colours do not.
enum class Hatch { None, Rising, Falling, Dots, Lines, Cross };

/// How a class of events looks.
struct ClassLook {
  std::optional<plan::InstructionKind> kind;  // nothing: all others
  const char* meaning;                        // "forward"
  QColor fill;  // Okabe and Ito's colours, which an eye without one kind of cones parts as well
  Hatch hatch = Hatch::None;
};

/// Sizes in pixels at scale 1.
inline constexpr int gap = 8;  // between things; twice that between groups
inline constexpr int small_size = 11;
inline constexpr int text_size = 12;
inline constexpr int heading_size = 14;
inline constexpr int figure_size = 20;  // a number to be read from afar

struct Theme {
  bool dark = false;
  QColor window, panel, line, text, soft_text, accent, warning;
  QColor plot;  // the ground of rows beyond the iteration
  QColor idle;  // where a rank computes nothing, for no known cause
  QColor grid;
  QColor selection;
  QColor send, receive, reduce;
  std::array<ClassLook, class_count> kinds;
  std::array<QColor, class_count> causes;  // tints of idle time, by IdleCause
  std::array<QColor, class_count> heat;    // much quicker than predicted … much slower
  std::array<QColor, class_count> owners;  // of memory
};

const Theme& light_theme();
const Theme& dark_theme();

/// The class of an instruction by its kind; the last class for all that have no look of their own.
std::uint8_t kind_class(plan::InstructionKind kind);

QPalette palette_of(const Theme& theme);
/// The style sheet of all widgets.
QString style_of(const Theme& theme);

QFont font_of(int pixels, bool bold = false);

}  // namespace pipewright::gui
