#pragma once

// Maps times to screen positions, as a value: zooming and panning return a new one.

#include <algorithm>

namespace pipewright::gui {

/// Converts seconds to pixels of a plot that begins at pixel 0.
struct TimeScale {
  double first = 0;      // seconds, at the left edge
  double per_pixel = 1;  // seconds

  double x(double seconds) const { return (seconds - first) / per_pixel; }
  double time(double x) const { return first + x * per_pixel; }

  friend bool operator==(const TimeScale&, const TimeScale&) = default;
};

/// Returns the scale that shows `first` to `last` in `pixels` pixels.
inline TimeScale fitted(double first, double last, double pixels) {
  return {first, std::max(last - first, 1e-12) / std::max(pixels, 1.0)};
}

/// Zooms around pixel `x`, whose time stays in place. Shows at most the whole length (plus 10 %)
/// and at least a picosecond per pixel.
inline TimeScale zoomed(TimeScale scale, double factor, double x, double length, double pixels) {
  const double at = scale.time(x);
  const double widest = length * 1.1 / std::max(pixels, 1.0);
  scale.per_pixel = std::clamp(scale.per_pixel / factor, std::min(1e-12, widest), widest);
  scale.first = at - x * scale.per_pixel;
  return scale;
}

/// Returns the scale with an instant in the middle.
inline TimeScale centered(TimeScale scale, double time, double pixels) {
  scale.first = time - pixels / 2 * scale.per_pixel;
  return scale;
}

/// Moves the scale by `by` pixels, keeping some of [0, length] in sight.
inline TimeScale panned(TimeScale scale, double by, double length, double pixels) {
  const double seen = scale.per_pixel * pixels;
  scale.first = std::clamp(scale.first + by * scale.per_pixel, -seen * 0.5,
                           std::max(length - seen * 0.5, -seen * 0.5));
  return scale;
}

}  // namespace pipewright::gui
