#pragma once

// One track written straight into the lines of an image: what is narrower than a few pixels is
// mixed by time, so that a bubble stays light at every zoom.

#include <QImage>
#include <array>
#include <vector>

#include "pipewright/gui/look/theme.hpp"
#include "pipewright/gui/timeline/busy_sums.hpp"
#include "pipewright/gui/timeline/time_scale.hpp"

namespace pipewright::gui {

struct ClassColours {
  std::array<QRgb, class_count> fill{};
  std::array<Hatch, class_count> hatch{};
};
ClassColours colours_of(const std::array<ClassLook, class_count>& looks);
ClassColours colours_of(const std::array<QColor, class_count>& colours);
ClassColours colours_of(const QColor& colour);

/// How far towards another colour, 0 to 1.
QRgb mixed(QRgb from, QRgb to, double part);

/// An event that is wide enough to say more of: a name, a hatch.
struct WideEvent {
  std::uint64_t event = 0;  // of its track
  double x = 0;             // within the image, clipped to it
  double width = 0;         // pixels of the image
};

/// Where a band is painted. Times are mapped to pixels of the image, so a scale factor of the
/// screen is in `scale` already.
struct Band {
  int left = 0;  // pixels of the image
  int width = 0;
  int top = 0;
  int height = 0;
};

class RowRaster {
 public:
  /// `image` must be nobody else's (QImage::detach); bands of it that have no pixel in common may
  /// be painted at the same time, each by a RowRaster of its own. Paints `sums` over what `ground`
  /// has, or over `blank` where it is null; beyond [0, length] in `outside`. Returns events at
  /// least `wide` pixels wide.
  const std::vector<WideEvent>& paint(QImage& image, const Band& band, TimeScale scale,
                                      const BusySums& sums, const ClassColours& colours,
                                      const BusySums* ground, const ClassColours& ground_colours,
                                      QRgb blank, QRgb outside, double length, double wide);

 private:
  std::vector<QRgb> line_;
  std::vector<std::uint8_t> hatch_;
  std::vector<WideEvent> wide_;
};

}  // namespace pipewright::gui
