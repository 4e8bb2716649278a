#pragma once

// The headline in words: what is shown, its figures, and how far they are from what they are held
// against. The bar above the timeline paints them.

#include <QString>
#include <vector>

#include "pipewright/gui/document/workspace.hpp"

namespace pipewright::gui {

struct Headline {
  enum class Tone { Neutral, Better, Worse };
  struct Figure {
    QString caption;  // "Iteration"
    QString value;    // "12.34 ms"
    QString beside;   // smaller, of the value: "18.2 %"
    QString note;     // "-1.20 ms (-8.9 %)", "predicted 12.10 ms (+2.0 %)"
    Tone tone = Tone::Neutral;
    QString help;
  };
  QString title;
  QString subtitle;       // "1f1b · 4 ranks × 16 microbatches"
  QString subtitle_help;  // what was taken for granted
  std::vector<Figure> figures;
  /// Why the plan is not possible; empty where it is.
  QString refusal;
  bool for_memory = false;  // a change may help
};

Headline headline_of(const Workspace& workspace);

/// "-1.20 ms (-8.9 %)"; empty where nothing a person would notice has changed.
QString change_words(double before, double after, QString (*words)(double));

}  // namespace pipewright::gui
