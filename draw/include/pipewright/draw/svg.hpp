#pragma once

// Scenes as SVG, fit for a paper: no scripts, no style sheets, no external fonts.

#include <string>

#include "pipewright/draw/scene.hpp"

namespace pipewright::draw {

/// The whole file. Boxes of one look are one path, so there is no place for their tooltips.
std::string to_svg(const Scene& scene);

}  // namespace pipewright::draw
