#include "pipewright/gui/timeline/row_raster.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace pipewright::gui {
namespace {

constexpr double narrowest_hatched = 14;
constexpr double narrowest_edged = 4;
constexpr int period = 8;  // of hatches, in pixels

/// Goes from pixel to pixel over one list of events.
class Sweep {
 public:
  Sweep(const BusySums* sums, double first) : sums_(sums) {
    if (sums_ != nullptr)
      begun_ = sums_->begun_before(first);
  }

  struct Pixel {
    bool whole = false;  // one event fills it
    std::uint64_t event = 0;
    bool mixed = false;  // several do, or one in part
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
  std::uint64_t step_ = 0;  // events of the pixel before, about as many as of the next
  // What lies before the last border that was looked at.
  ClassTimes until_{};
  std::uint64_t until_of_ = 0;
  double until_at_ = -std::numeric_limits<double>::infinity();
};

/// Red, green and blue, added up in parts.
struct Mix {
  float red = 0, green = 0, blue = 0;
  void add(QRgb colour, float part) {
    red += part * static_cast<float>(qRed(colour));
    green += part * static_cast<float>(qGreen(colour));
    blue += part * static_cast<float>(qBlue(colour));
  }
  QRgb colour() const {
    const auto level = [](float value) {
      return std::clamp(static_cast<int>(value + 0.5F), 0, 255);
    };
    return qRgb(level(red), level(green), level(blue));
  }
};

QRgb colour_of(const ClassTimes& times, const ClassColours& colours, QRgb rest, double whole) {
  Mix mix;
  float busy = 0;
  for (std::size_t c = 0; c < class_count; ++c) {
    if (times[c] <= 0)
      continue;
    const auto part = static_cast<float>(times[c] / whole);
    mix.add(colours.fill[c], part);
    busy += part;
  }
  mix.add(rest, std::max(0.0F, 1 - busy));
  return mix.colour();
}

/// Whether the pattern has a mark at a pixel.
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
  return mix.colour();
}

ClassColours colours_of(const std::array<ClassLook, class_count>& looks) {
  ClassColours colours;
  for (std::size_t c = 0; c < class_count; ++c) {
    colours.fill[c] = looks[c].fill.rgb();
    colours.hatch[c] = looks[c].hatch;
  }
  return colours;
}

ClassColours colours_of(const std::array<QColor, class_count>& of) {
  ClassColours colours;
  for (std::size_t c = 0; c < class_count; ++c)
    colours.fill[c] = of[c].rgb();
  return colours;
}

ClassColours colours_of(const QColor& colour) {
  ClassColours colours;
  colours.fill.fill(colour.rgb());
  return colours;
}

const std::vector<WideEvent>& RowRaster::paint(QImage& image, const Band& band, TimeScale scale,
                                               const BusySums& sums, const ClassColours& colours,
                                               const BusySums* ground,
                                               const ClassColours& ground_colours, QRgb blank,
                                               QRgb outside, double length, double wide) {
  wide_.clear();
  const auto width = static_cast<std::size_t>(std::max(0, band.width));
  line_.assign(width, outside);
  hatch_.assign(width, 0);
  const double begin_x = std::clamp(std::floor(scale.x(0)), 0.0, static_cast<double>(width));
  const double end_x = std::clamp(std::ceil(scale.x(length)), 0.0, static_cast<double>(width));

  Sweep work(&sums, scale.time(begin_x)), idle(ground, scale.time(begin_x));
  Sweep::Pixel pixel, below;
  bool any_hatch = false;
  bool seen_any = false;
  std::uint64_t seen = 0;  // the last event that was looked at for being wide
  for (auto p = static_cast<std::size_t>(begin_x); p < static_cast<std::size_t>(end_x); ++p) {
    const double from = scale.time(static_cast<double>(p)),
                 to = scale.time(static_cast<double>(p) + 1);
    work.next(from, to, pixel);
    idle.next(from, to, below);
    if (pixel.whole) {
      const std::uint8_t c = sums.class_of(pixel.event);
      line_[p] = colours.fill[c];
      const double pixels = (sums.end(pixel.event) - sums.start(pixel.event)) / scale.per_pixel;
      if (pixels >= narrowest_hatched && colours.hatch[c] != Hatch::None) {
        hatch_[p] = static_cast<std::uint8_t>(colours.hatch[c]);
        any_hatch = true;
      }
      if (!seen_any || seen != pixel.event) {
        // An edge parts it from what came before.
        if (pixels >= narrowest_edged && seen_any && p > 0 && seen + 1 == pixel.event)
          line_[p - 1] = mixed(line_[p - 1], blank, 0.65);
        seen = pixel.event;
        seen_any = true;
        if (pixels >= wide) {
          const double x = std::max(0.0, scale.x(sums.start(pixel.event)));
          wide_.push_back(
              {pixel.event, x,
               std::min(static_cast<double>(width), scale.x(sums.end(pixel.event))) - x});
        }
      }
      continue;
    }
    QRgb rest = blank;
    if (below.whole)
      rest = ground_colours.fill[ground->class_of(below.event)];
    else if (below.mixed)
      rest = colour_of(below.times, ground_colours, blank, scale.per_pixel);
    if (!pixel.mixed) {
      line_[p] = rest;
      continue;
    }
    // The ground shows between the events alone, so its share is of what they leave.
    double left = scale.per_pixel;
    for (const double part : pixel.times)
      left -= part;
    if (below.mixed && left > 0)
      rest = colour_of(below.times, ground_colours, blank, left);
    line_[p] = colour_of(pixel.times, colours, rest, scale.per_pixel);
  }

  const auto bytes = width * sizeof(QRgb);
  // Not scanLine: it counts its calls in the image, which bands in other threads share.
  const auto line_at = [&](int y) {
    return reinterpret_cast<QRgb*>(const_cast<uchar*>(image.constScanLine(y))) + band.left;
  };
  if (!any_hatch) {
    for (int y = std::max(0, band.top); y < std::min(image.height(), band.top + band.height); ++y)
      std::memcpy(line_at(y), line_.data(), bytes);
    return wide_;
  }
  std::vector<QRgb> patterned;
  for (int phase = 0; phase < period; ++phase) {
    patterned = line_;
    for (std::size_t p = 0; p < width; ++p)
      if (hatch_[p] != 0 && marks(static_cast<Hatch>(hatch_[p]), static_cast<int>(p), phase))
        patterned[p] = mixed(patterned[p], qRgb(255, 255, 255), 0.28);
    for (int y = band.top + phase; y < band.top + band.height; y += period)
      if (y >= 0 && y < image.height())
        std::memcpy(line_at(y), patterned.data(), bytes);
  }
  return wide_;
}

}  // namespace pipewright::gui
