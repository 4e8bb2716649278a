#include "pipewright/gui/timeline/row_raster.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace pipewright::gui {
namespace {

constexpr double narrowest_hatched = 14;
constexpr int lowest_hatched = 10;  // pixels; in lower bands a pattern is only noise
constexpr double narrowest_edged = 4;
constexpr int period = 8;  // of hatches, in pixels

/// Moves from pixel to pixel over one list of events.
class Sweep {
 public:
  Sweep(const BusySums* sums, double first) : sums_(sums) {
    if (sums_ != nullptr)
      begun_ = sums_->begun_before(first);
  }

  struct Pixel {
    bool whole = false;  // one event fills it
    std::uint64_t event = 0;
    bool mixed = false;  // several events, or a part of one
    ClassTimes times{};
  };

  void next(double from, double to, Pixel& pixel) {
    pixel.whole = pixel.mixed = false;
    if (sums_ == nullptr)
      return;
    const std::uint64_t before = begun_;
    begun_ = sums_->begun_before(to, begun_ + step_);
    step_ = begun_ - before;
    if (step_ == 0) {
      if (before == 0 || sums_->end(before - 1) <= from)
        return;
      if (sums_->end(before - 1) >= to) {
        pixel.whole = true;
        pixel.event = before - 1;
        return;
      }
    }
    pixel.mixed = true;
    if (until_of_ != before || until_at_ != from)
      until_ = sums_->until(from, before);
    const ClassTimes until = sums_->until(to, begun_);
    for (std::size_t c = 0; c < class_count; ++c)
      pixel.times[c] = until[c] - until_[c];
    until_ = until;
    until_of_ = begun_;
    until_at_ = to;
  }

 private:
  const BusySums* sums_;
  std::uint64_t begun_ = 0;
  std::uint64_t step_ = 0;  // events of the previous pixel; the next has about as many
  // Sums up to the last pixel edge.
  ClassTimes until_{};
  std::uint64_t until_of_ = 0;
  double until_at_ = -std::numeric_limits<double>::infinity();
};

/// A weighted sum of red, green and blue.
struct Mix {
  float red = 0, green = 0, blue = 0;
  void add(QRgb color, float part) {
    red += part * static_cast<float>(qRed(color));
    green += part * static_cast<float>(qGreen(color));
    blue += part * static_cast<float>(qBlue(color));
  }
  QRgb color() const {
    const auto level = [](float value) {
      return std::clamp(static_cast<int>(value + 0.5F), 0, 255);
    };
    return qRgb(level(red), level(green), level(blue));
  }
};

QRgb color_of(const ClassTimes& times, const ClassColors& colors, QRgb rest, double whole) {
  Mix mix;
  float busy = 0;
  for (std::size_t c = 0; c < class_count; ++c) {
    if (times[c] <= 0)
      continue;
    const auto part = static_cast<float>(times[c] / whole);
    mix.add(colors.fill[c], part);
    busy += part;
  }
  mix.add(rest, std::max(0.0F, 1 - busy));
  return mix.color();
}

/// Returns the color of a pixel that no single event fills and that is `whole` seconds long.
QRgb mixed_pixel(const Sweep::Pixel& pixel, const Sweep::Pixel& below, const PaintedTrack& track,
                 double whole) {
  QRgb rest = track.blank;
  if (below.whole)
    rest = track.ground_colors.fill[track.ground->class_of(below.event)];
  if (!pixel.mixed)
    return below.mixed ? color_of(below.times, track.ground_colors, track.blank, whole) : rest;
  if (below.mixed) {
    // The ground is visible only between the events, so its share applies to what they leave.
    double left = whole;
    for (const double part : pixel.times)
      left -= part;
    rest = color_of(below.times, track.ground_colors, track.blank, left > 0 ? left : whole);
  }
  return color_of(pixel.times, track.colors, rest, whole);
}

/// Returns true if the pattern has a mark at a pixel.
bool marks(Hatch hatch, int x, int y) {
  switch (hatch) {
    case Hatch::None:
      return false;
    case Hatch::Rising:
      return (x + y) % period == 0;
    case Hatch::Falling:
      return (x - y + 1024 * period) % period == 0;
    case Hatch::Dots:
      return x % 4 == 0 && y % 4 == 0;
    case Hatch::Lines:
      return y % 4 == 0;
    case Hatch::Cross:
      return (x + y) % period == 0 || (x - y + 1024 * period) % period == 0;
  }
  return false;
}

}  // namespace

QRgb mixed(QRgb from, QRgb to, double part) {
  Mix mix;
  mix.add(from, static_cast<float>(1 - part));
  mix.add(to, static_cast<float>(part));
  return mix.color();
}

ClassColors colors_of(const std::array<ClassLook, class_count>& looks) {
  ClassColors colors;
  for (std::size_t c = 0; c < class_count; ++c) {
    colors.fill[c] = looks[c].fill.rgb();
    colors.hatch[c] = looks[c].hatch;
  }
  return colors;
}

ClassColors colors_of(const std::array<QColor, class_count>& of) {
  ClassColors colors;
  for (std::size_t c = 0; c < class_count; ++c)
    colors.fill[c] = of[c].rgb();
  return colors;
}

ClassColors colors_of(const QColor& color) {
  ClassColors colors;
  colors.fill.fill(color.rgb());
  return colors;
}

/// Data common to all pixels of a line.
struct RowRaster::Line {
  const Band& band;
  const TimeScale& scale;
  const PaintedTrack& track;
};

const std::vector<WideEvent>& RowRaster::paint(QImage& image, const Band& band, TimeScale scale,
                                               const PaintedTrack& track) {
  const auto width = static_cast<std::size_t>(std::max(0, band.width));
  line_.assign(width, track.outside);
  hatch_.assign(width, 0);
  any_hatch_ = seen_any_ = false;
  wide_.clear();
  const double begin_x = std::clamp(std::floor(scale.x(0)), 0.0, static_cast<double>(width));
  const double end_x =
      std::clamp(std::ceil(scale.x(track.length)), 0.0, static_cast<double>(width));

  Sweep work(&track.sums, scale.time(begin_x)), idle(track.ground, scale.time(begin_x));
  Sweep::Pixel pixel, below;
  const Line line{band, scale, track};
  for (auto p = static_cast<std::size_t>(begin_x); p < static_cast<std::size_t>(end_x); ++p) {
    const double from = scale.time(static_cast<double>(p)),
                 to = scale.time(static_cast<double>(p) + 1);
    work.next(from, to, pixel);
    idle.next(from, to, below);
    if (pixel.whole)
      paint_event(line, p, pixel.event);
    else
      line_[p] = mixed_pixel(pixel, below, track, scale.per_pixel);
  }
  copy_to(image, band);
  return wide_;
}

/// Paints a pixel that one event fills.
void RowRaster::paint_event(const Line& line, std::size_t pixel, std::uint64_t event) {
  const BusySums& sums = line.track.sums;
  const ClassColors& colors = line.track.colors;
  const std::uint8_t c = sums.class_of(event);
  line_[pixel] = colors.fill[c];
  const double pixels = (sums.end(event) - sums.start(event)) / line.scale.per_pixel;
  if (pixels >= narrowest_hatched && line.band.height >= lowest_hatched &&
      colors.hatch[c] != Hatch::None) {
    hatch_[pixel] = static_cast<std::uint8_t>(colors.hatch[c]);
    any_hatch_ = true;
  }
  if (seen_any_ && seen_ == event)
    return;
  // An edge separates it from the previous event.
  if (pixels >= narrowest_edged && seen_any_ && pixel > 0 && seen_ + 1 == event)
    line_[pixel - 1] = mixed(line_[pixel - 1], line.track.blank, 0.65);
  seen_ = event;
  seen_any_ = true;
  if (pixels < line.track.wide)
    return;
  const double x = std::max(0.0, line.scale.x(sums.start(event)));
  const double end = std::min(static_cast<double>(line_.size()), line.scale.x(sums.end(event)));
  wide_.push_back({event, x, end - x});
}

/// Copies the line and its hatches into all lines of the band.
void RowRaster::copy_to(QImage& image, const Band& band) const {
  // Does not use scanLine, which changes a counter in the image that concurrent bands share.
  const auto line_at = [&](int y) {
    return reinterpret_cast<QRgb*>(const_cast<uchar*>(image.constScanLine(y))) + band.left;
  };
  const auto bytes = line_.size() * sizeof(QRgb);
  if (!any_hatch_) {
    for (int y = std::max(0, band.top); y < std::min(image.height(), band.top + band.height); ++y)
      std::memcpy(line_at(y), line_.data(), bytes);
    return;
  }
  std::vector<QRgb> patterned;
  for (int phase = 0; phase < period; ++phase) {
    patterned = line_;
    for (std::size_t p = 0; p < line_.size(); ++p)
      if (hatch_[p] != 0 && marks(static_cast<Hatch>(hatch_[p]), static_cast<int>(p), phase))
        patterned[p] = mixed(patterned[p], qRgb(255, 255, 255), 0.2);
    for (int y = band.top + phase; y < band.top + band.height; y += period)
      if (y >= 0 && y < image.height())
        std::memcpy(line_at(y), patterned.data(), bytes);
  }
}

}  // namespace pipewright::gui
