#pragma once

// Keys in lines: each begins where the one before ends, and a line that is full goes on below.

#include <functional>
#include <string>
#include <string_view>

#include "pipewright/draw/scene.hpp"

namespace pipewright::draw {

class Legend {
 public:
  /// `y` is where the letters of the first line stand.
  Legend(Scene& scene, double left, double right, double y)
      : scene_(scene), left_(left), right_(right), x_(left), y_(y) {}

  /// A box that looks so.
  void box(const std::string& meaning, const Look& look);
  /// A line that looks so; `mark` may draw at its middle.
  void line(const std::string& meaning, const Look& look,
            const std::function<void(double x, double y)>& mark = {});
  void note(const std::string& text);
  /// The next key begins a line, unless it does so anyway.
  void end_line();

  double last_line() const { return y_; }

 private:
  /// Finds room for a symbol of this width with its text and writes the text; returns the left
  /// edge of the symbol.
  double place(double symbol, const std::string& text, const char* fill);

  Scene& scene_;
  double left_;
  double right_;
  double x_;
  double y_;
};

}  // namespace pipewright::draw
