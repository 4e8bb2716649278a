#pragma once

// Paints the parts of the timeline that change with every frame, over and around the image of the
// rows.

#include <QPainter>

#include "pipewright/gui/timeline/timeline_model.hpp"

namespace pipewright::gui {

/// Paints the critical path, the selection with its arrows, and the item under the mouse.
void paint_marks(QPainter& painter, const TimelineModel& model);
/// Paints the headers, the ruler, the minimap with the visible section, and the legend.
void paint_margins(QPainter& painter, const TimelineModel& model, const QImage& map);

}  // namespace pipewright::gui
