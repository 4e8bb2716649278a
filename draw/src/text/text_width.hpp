#pragma once

// Widths of texts. An SVG cannot ask the font, so the widths are tabulated here; they are needed to
// place something next to a text, or to fit a text between two others.

#include <string>
#include <string_view>

namespace pipewright::draw {

/// Returns the width in pixels, in Helvetica or a font with the same metrics.
double text_width(std::string_view text, double font_size, bool bold = false);

/// Returns the text, or as much of its beginning as fits together with an ellipsis.
std::string shortened(const std::string& text, double font_size, double width, bool bold = false);

}  // namespace pipewright::draw
