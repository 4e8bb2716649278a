#pragma once

// A legend whose keys are placed one after the other, with line breaks.

#include <functional>
#include <string>
#include <string_view>

#include "pipewright/draw/scene.hpp"

namespace pipewright::draw {

class Legend {
 public:
  /// `y` is the baseline of the first line.
  Legend(Scene& scene, double left, double right, double y)
      : scene_(scene), left_(left), right_(right), x_(left), y_(y) {}

  /// Adds a key with a box of this look.
  void box(const std::string& meaning, const Look& look);
  /// Adds a key with a line of this look; `mark` may draw a marker at its center.
  void line(const std::string& meaning, const Look& look,
            const std::function<void(double x, double y)>& mark = {});
  void note(const std::string& text);
  /// Starts a new line, unless the current one is empty.
  void end_line();

  double last_line() const { return y_; }

 private:
  /// Finds room for a symbol of this width and its text, writes the text, and returns the left edge
  /// of the symbol.
  double place(double symbol, const std::string& text, const char* fill);

  Scene& scene_;
  double left_;
  double right_;
  double x_;
  double y_;
};

}  // namespace pipewright::draw
