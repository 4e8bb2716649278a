#include "legend.hpp"

#include "looks.hpp"
#include "text/text_width.hpp"

namespace pipewright::draw {
namespace {

constexpr double key_font = 11;
constexpr double box_width = 14;
constexpr double line_width = 24;
constexpr double after_symbol = 5;
constexpr double between_keys = 16;
constexpr double line_height = 17;

}  // namespace

double Legend::place(double symbol, const std::string& text, const char* fill) {
  const double text_left = symbol > 0 ? symbol + after_symbol : 0;
  const std::string shown = shortened(text, key_font, right_ - left_ - text_left);
  const double width = text_left + text_width(shown, key_font);
  if (x_ + width > right_)
    end_line();
  const double x = x_;
  scene_.words(x + text_left, y_, shown, {.size = key_font, .fill = fill});
  x_ += width + between_keys;
  return x;
}

void Legend::box(const std::string& meaning, const Look& look) {
  const double x = place(box_width, meaning, axis_line);
  scene_.add(Boxes{look, {{x, y_ - 9, box_width, 11}}});
}

void Legend::line(const std::string& meaning, const Look& look,
                  const std::function<void(double x, double y)>& mark) {
  const double x = place(line_width, meaning, axis_line);
  const double middle = y_ - 3.5;
  Lines line{look};
  line.move_to(x, middle);
  line.across_to(x + line_width);
  scene_.add(std::move(line));
  if (mark)
    mark(x + line_width / 2, middle);
}

void Legend::note(const std::string& text) { place(0, text, soft); }

void Legend::end_line() {
  if (x_ == left_)
    return;
  x_ = left_;
  y_ += line_height;
}

}  // namespace pipewright::draw
