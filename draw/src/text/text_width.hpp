#pragma once

// How wide a text will be. An SVG cannot ask the font, so its widths stand here: what is placed
// beside a text, or must fit between two others, needs them.

#include <string>
#include <string_view>

namespace pipewright::draw {

/// The width in pixels, in Helvetica or one of the fonts made to its measure.
double text_width(std::string_view text, double font_size, bool bold = false);

/// The text, or as much of its beginning as fits with an ellipsis behind it.
std::string shortened(const std::string& text, double font_size, double width, bool bold = false);

}  // namespace pipewright::draw
