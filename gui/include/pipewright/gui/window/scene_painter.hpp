#pragma once

// Paints a figure, so that PDF and PNG have the same content as SVG.

#include <QPainter>

#include "pipewright/draw/scene.hpp"

namespace pipewright::gui {

/// One unit of the scene is one unit of the painter.
void paint_scene(QPainter& painter, const draw::Scene& scene);

}  // namespace pipewright::gui
