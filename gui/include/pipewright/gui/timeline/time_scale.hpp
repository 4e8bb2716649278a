#pragma once

// Where times stand on the screen, as a value: zooming and panning give a new one.

#include <algorithm>

namespace pipewright::gui {

/// Seconds to pixels, of a plot that begins at pixel 0.
struct TimeScale {
  double first = 0;      // seconds, at the left edge
  double per_pixel = 1;  // seconds

  double x(double seconds) const { return (seconds - first) / per_pixel; }
  double time(double x) const { return first + x * per_pixel; }

  friend bool operator==(const TimeScale&, const TimeScale&) = default;
};

/// The scale that shows `first` to `last` in so many pixels.
inline TimeScale fitted(double first, double last, double pixels) {
  return {first, std::max(last - first, 1e-12) / std::max(pixels, 1.0)};
}

/// What is at pixel `x` stays there. At most the whole length is seen, at least a picosecond per
/// pixel.
inline TimeScale zoomed(TimeScale scale, double factor, double x, double length, double pixels) {
  const double at = scale.time(x);
  const double widest = length * 1.1 / std::max(pixels, 1.0);
  scale.per_pixel = std::clamp(scale.per_pixel / factor, std::min(1e-12, widest), widest);
  scale.first = at - x * scale.per_pixel;
  return scale;
}

/// The scale with an instant in the middle.
inline TimeScale centred(TimeScale scale, double time, double pixels) {
  scale.first = time - pixels / 2 * scale.per_pixel;
  return scale;
}

/// Moved by so many pixels, with some of [0, length] left in sight.
inline TimeScale panned(TimeScale scale, double by, double length, double pixels) {
  const double seen = scale.per_pixel * pixels;
  scale.first = std::clamp(scale.first + by * scale.per_pixel, -seen * 0.5,
                           std::max(length - seen * 0.5, -seen * 0.5));
  return scale;
}

}  // namespace pipewright::gui
