#pragma once

// Keys in lines: each begins where the one before ends, and a line that is full goes on below.

#include <functional>
#include <string>
#include <string_view>

#include "svg_writer.hpp"

namespace pipewright::plan::drawing {

class Legend {
 public:
  /// `y` is where the letters of the first line stand.
  Legend(SvgWriter& svg, double left, double right, double y)
      : svg_(svg), left_(left), right_(right), x_(left), y_(y) {}

  /// A box with these attributes.
  void box(const std::string& meaning, std::string_view attributes);
  /// A line with these attributes; `mark` may draw at its middle.
  void line(const std::string& meaning, std::string_view attributes,
            const std::function<void(double x, double y)>& mark = {});
  void note(const std::string& text);
  /// The next key begins a line, unless it does so anyway.
  void end_line();

  double last_line() const { return y_; }

 private:
  /// Finds room for a symbol of this width with its text and writes the text; returns the left
  /// edge of the symbol.
  double place(double symbol, const std::string& text, const char* fill);

  SvgWriter& svg_;
  double left_;
  double right_;
  double x_;
  double y_;
};

}  // namespace pipewright::plan::drawing
