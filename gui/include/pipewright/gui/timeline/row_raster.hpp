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

/// The events of a track, and what stands around them.
struct PaintedTrack {
  const BusySums& sums;
  ClassColours colours{};
  const BusySums* ground = nullptr;  // shows between the events; null: `blank` does
  ClassColours ground_colours{};
  QRgb blank = 0;
  QRgb outside = 0;  // beyond [0, length]
  double length = 0;
  double wide = 1e9;  // pixels: an event that has as many is told
};

class RowRaster {
 public:
  /// `image` must have its pixels alone (QImage::detach); bands of it that have no pixel in common
  /// may be painted at the same time, each by a RowRaster of its own. Returns the wide events.
  const std::vector<WideEvent>& paint(QImage& image, const Band& band, TimeScale scale,
                                      const PaintedTrack& track);

 private:
  struct Line;
  void paint_event(const Line& line, std::size_t pixel, std::uint64_t event);
  void copy_to(QImage& image, const Band& band) const;

  std::vector<QRgb> line_;
  std::vector<std::uint8_t> hatch_;
  bool any_hatch_ = false;
  std::vector<WideEvent> wide_;
  bool seen_any_ = false;
  std::uint64_t seen_ = 0;  // the last event that filled a pixel
};

}  // namespace pipewright::gui
