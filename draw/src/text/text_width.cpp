#include "text_width.hpp"

#include <array>

namespace pipewright::draw {
namespace {

/// Advance widths in Helvetica from the space to the tilde, in thousandths of the font size.
constexpr std::array<int, 95> advances{
    278,  278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278,  // space to /
    556,  556, 556, 556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556,  // 0 to ?
    1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778,  // @ to O
    667,  778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556,  // P to _
    333,  556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556,  // ` to o
    556,  556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584};      // p to ~
constexpr int wide = 1000;           // any other character: none is wider
constexpr double bold_factor = 1.1;  // bold letters are up to a tenth wider

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

}  // namespace

double text_width(std::string_view text, double font_size, bool bold) {
  int sum = 0;
  for (const char c : text) {
    if (c >= ' ' && c <= '~')
      sum += advances[static_cast<std::size_t>(c - ' ')];
    else if (!continues_character(c))
      sum += wide;
  }
  return sum * 1e-3 * font_size * (bold ? bold_factor : 1);
}

std::string shortened(const std::string& text, double font_size, double width, bool bold) {
  if (text_width(text, font_size, bold) <= width)
    return text;
  const std::string ellipsis = "…";
  std::string_view kept = text;
  // The first byte of a character accounts for its whole width, so the loop never ends within a
  // character.
  while (!kept.empty() &&
         text_width(kept, font_size, bold) + text_width(ellipsis, font_size, bold) > width)
    kept.remove_suffix(1);
  return std::string(kept) + ellipsis;
}

}  // namespace pipewright::draw
