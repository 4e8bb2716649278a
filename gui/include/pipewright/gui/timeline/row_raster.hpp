#pragma once

// Writes one track directly into the lines of an image. Events narrower than a few pixels are mixed
// by time, so that a bubble stays light at every zoom level.

#include <QImage>
#include <array>
#include <vector>

#include "pipewright/gui/look/theme.hpp"
#include "pipewright/gui/timeline/busy_sums.hpp"
#include "pipewright/gui/timeline/time_scale.hpp"

namespace pipewright::gui {

struct ClassColors {
  std::array<QRgb, class_count> fill{};
  std::array<Hatch, class_count> hatch{};
};
ClassColors colors_of(const std::array<ClassLook, class_count>& looks);
ClassColors colors_of(const std::array<QColor, class_count>& colors);
ClassColors colors_of(const QColor& color);

/// Mixes two colors; `part` is the weight of the second one, 0 to 1.
QRgb mixed(QRgb from, QRgb to, double part);

/// An event wide enough for a name and a hatch.
struct WideEvent {
  std::uint64_t event = 0;  // of its track
  double x = 0;             // within the image, clipped to it
  double width = 0;         // pixels of the image
};

/// The image area of a track. Times are mapped to pixels of the image, so `scale` already includes
/// the screen's scale factor.
struct Band {
  int left = 0;  // pixels of the image
  int width = 0;
  int top = 0;
  int height = 0;
};

/// The events of a track and their surroundings.
struct PaintedTrack {
  const BusySums& sums;
  ClassColors colors{};
  const BusySums* ground = nullptr;  // shown between the events; null: `blank` is
  ClassColors ground_colors{};
  QRgb blank = 0;
  QRgb outside = 0;  // beyond [0, length]
  double length = 0;
  double wide = 1e9;  // pixels: events of at least this width are reported
};

class RowRaster {
 public:
  /// Paints the track and returns its wide events. `image` must not share its pixels
  /// (QImage::detach). Bands of it without common pixels may be painted concurrently, each by its
  /// own RowRaster.
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
