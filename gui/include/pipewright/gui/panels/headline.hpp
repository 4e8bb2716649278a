#pragma once

// The headline as text: what is shown, its figures, and their difference from the reference. The
// bar above the timeline paints it.

#include <QString>
#include <vector>

#include "pipewright/gui/document/workspace.hpp"

namespace pipewright::gui {

struct Headline {
  enum class Tone { Neutral, Better, Worse };
  struct Figure {
    QString caption;  // "Iteration"
    QString value;    // "12.34 ms"
    QString beside;   // smaller text next to the value: "18.2 %"
    QString note;     // "-1.20 ms (-8.9 %)", "predicted 12.10 ms (+2.0 %)"
    Tone tone = Tone::Neutral;
    QString help;
  };
  QString title;
  QString subtitle;       // "1f1b · 4 ranks × 16 microbatches"
  QString subtitle_help;  // assumptions
  std::vector<Figure> figures;
  /// Why the plan is not possible; empty if it is.
  QString refusal;
  bool for_memory = false;  // not enough memory: a change may help
};

Headline headline_of(const Workspace& workspace);

/// Returns "-1.20 ms (-8.9 %)"; empty if the change is too small to notice.
QString change_words(double before, double after, QString (*words)(double));

}  // namespace pipewright::gui
