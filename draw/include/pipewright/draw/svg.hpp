#pragma once

// Writes scenes as SVG files that suit a paper: no scripts, no style sheets, no external fonts.

#include <string>

#include "pipewright/draw/scene.hpp"

namespace pipewright::draw {

/// Returns the whole file. Boxes with the same look become one path, so their tooltips are lost.
std::string to_svg(const Scene& scene);

}  // namespace pipewright::draw
