#include "pipewright/plan/cluster/link_fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/statistics.hpp"

namespace pipewright::plan {
namespace {

constexpr std::size_t least_sizes = 3;
constexpr std::size_t least_in_segment = 3;
// Relative errors beyond this count linearly and not squared, so that outliers have less weight.
constexpr double tolerated = 0.1;
// No measurement is more exact than this, so an additional segment gains nothing below it.
constexpr double finest = 0.01;

/// Seconds = constant + per_byte · bytes.
struct Line {
  double constant = 0;
  double per_byte = 0;
  double at(double bytes) const { return constant + per_byte * bytes; }
};

struct FitPoint {
  double bytes = 0;
  double seconds = 0;
  double error(const Line& line) const { return line.at(bytes) / seconds - 1; }
};

using Points = std::vector<FitPoint>;
using Place = Points::const_iterator;

double weight_of(double error) {
  return std::abs(error) <= tolerated ? 1 : tolerated / std::abs(error);
}

/// The lines that a fit may return. In general neither a transfer nor a byte takes negative time,
/// but a segment's line may start below 0 outside the segment.
enum class Lines { FromZeroOn, Any };

/// Returns the line with the least sum of squared weighted relative errors.
Line weighted_line(Place begin, Place end, const std::vector<double>& weights, Lines allowed) {
  double aa = 0, ab = 0, bb = 0, a = 0, b = 0;
  auto weight = weights.begin();
  for (Place p = begin; p != end; ++p, ++weight) {
    const double one = 1 / p->seconds, bytes = p->bytes / p->seconds;
    aa += *weight * one * one;
    ab += *weight * one * bytes;
    bb += *weight * bytes * bytes;
    a += *weight * one;
    b += *weight * bytes;
  }
  const double determinant = aa * bb - ab * ab;
  const Line line{(a * bb - b * ab) / determinant, (b * aa - a * ab) / determinant};
  if (!(determinant > 0) || !(line.per_byte >= 0))
    return {a / aa, 0};
  return line.constant >= 0 || allowed == Lines::Any ? line : Line{0, b / bb};
}

struct FittedLine {
  Line line;
  double cost = 0;  // sum over all errors: squared, but linear beyond `tolerated`
};

FittedLine fit_line(Place begin, Place end, Lines allowed) {
  std::vector<double> weights(static_cast<std::size_t>(end - begin), 1);
  FittedLine fitted;
  constexpr int most_turns = 20;
  for (int turn = 0; turn < most_turns; ++turn) {
    fitted.line = weighted_line(begin, end, weights, allowed);
    for (std::size_t p = 0; p < weights.size(); ++p)
      weights[p] = weight_of((begin + static_cast<std::ptrdiff_t>(p))->error(fitted.line));
  }
  for (Place p = begin; p != end; ++p) {
    const double error = std::abs(p->error(fitted.line));
    fitted.cost += error <= tolerated ? error * error : tolerated * (2 * error - tolerated);
  }
  return fitted;
}

/// The points [begin, end) of a segment.
struct Part {
  std::size_t begin = 0, end = 0;
  Line line{};
};

/// Finds the best cut of all points into `count` segments, by dynamic programming over their ends.
class Cuts {
 public:
  explicit Cuts(const Points& points) : points_(points) {}

  struct Cut {
    double cost = std::numeric_limits<double>::infinity();
    std::vector<Part> parts;
  };

  std::vector<Cut> up_to(std::size_t most) const {
    const std::size_t n = points_.size();
    std::vector<Cut> by_end(n + 1);  // best cut of the first `end` points into `count` segments
    for (std::size_t end = 1; end <= n; ++end)
      by_end[end] = extended({.cost = 0, .parts = {}}, 0, end);
    std::vector<Cut> best{by_end[n]};
    for (std::size_t count = 2; count <= most && count * least_in_segment <= n; ++count) {
      std::vector<Cut> next(n + 1);
      for (std::size_t end = count * least_in_segment; end <= n; ++end)
        for (std::size_t begin = (count - 1) * least_in_segment; begin + least_in_segment <= end;
             ++begin) {
          if (points_[begin].bytes <= points_[begin - 1].bytes || by_end[begin].parts.empty())
            continue;
          Cut cut = extended(by_end[begin], begin, end);
          if (cut.cost < next[end].cost)
            next[end] = std::move(cut);
        }
      by_end = std::move(next);
      best.push_back(by_end[n]);
    }
    return best;
  }

 private:
  Cut extended(Cut cut, std::size_t begin, std::size_t end) const {
    const auto at = [&](std::size_t p) { return points_.begin() + static_cast<std::ptrdiff_t>(p); };
    const FittedLine fitted =
        fit_line(at(begin), at(end), begin == 0 ? Lines::FromZeroOn : Lines::Any);
    cut.cost += fitted.cost;
    cut.parts.push_back({begin, end, fitted.line});
    return cut;
  }

  const Points& points_;
};

/// Returns the information criterion of Schwarz, Ann. Stat. 6, 1978. A segment has a latency and a
/// bandwidth. Its beginning was chosen among all points, which counts for more than one parameter.
double information_criterion(double cost, std::size_t points, std::size_t segments) {
  constexpr int parameters = 5;
  const auto n = static_cast<double>(points);
  return n * std::log(cost / n + finest * finest) +
         parameters * static_cast<double>(segments) * std::log(n);
}

double bandwidth_of(const Line& line) {
  return line.per_byte > 1 / unlimited_bandwidth ? 1 / line.per_byte : unlimited_bandwidth;
}

/// Returns where the two lines meet between the neighboring points, or else the first point after
/// the border.
Bytes border(const Line& before, const Line& behind, double last, double first) {
  const double meet = (before.constant - behind.constant) / (behind.per_byte - before.per_byte);
  return whole_bytes(meet > last && meet < first ? meet : first);
}

Link link_of(const Points& points, const std::vector<Part>& parts) {
  Link link{.latency = {parts.front().line.constant},
            .bandwidth_per_s = bandwidth_of(parts.front().line)};
  for (std::size_t p = 1; p < parts.size(); ++p) {
    const Line &before = parts[p - 1].line, &line = parts[p].line;
    const std::size_t first = parts[p].begin;
    const Bytes from = border(before, line, points[first - 1].bytes, points[first].bytes);
    const double time = line.at(static_cast<double>(from.value));
    link.segments.push_back({from, {std::max(0.0, time)}, bandwidth_of(line)});
  }
  return link;
}

Points sorted_points(const std::vector<LinkSample>& samples) {
  Points points;
  for (const LinkSample& sample : samples) {
    if (!(sample.time.value > 0) || !std::isfinite(sample.time.value) || sample.size.value < 0)
      throw InputError(fmt::format("a transfer of {} bytes in {} s is not possible",
                                   sample.size.value, sample.time.value));
    points.push_back({static_cast<double>(sample.size.value), sample.time.value});
  }
  std::stable_sort(points.begin(), points.end(),
                   [](const FitPoint& a, const FitPoint& b) { return a.bytes < b.bytes; });
  std::size_t sizes = points.empty() ? 0 : 1;
  for (std::size_t p = 1; p < points.size(); ++p)
    sizes += points[p].bytes > points[p - 1].bytes ? 1 : 0;
  if (sizes < least_sizes)
    throw InputError(
        fmt::format("transfers of {} sizes are too few to fit a link: at least {} are "
                    "needed",
                    sizes, least_sizes));
  return points;
}

/// Makes the times non-decreasing with the pool-adjacent-violators algorithm (Ayer et al., Ann.
/// Math. Stat. 26, 1955), and keeps one point per size.
Points never_falling(const Points& points) {
  struct Pool {
    std::size_t count = 0;
    double mean = 0;
  };
  std::vector<Pool> pools;
  for (std::size_t p = 0; p < points.size(); ++p) {
    Pool pool{1, points[p].seconds};
    const auto joins = [&](const Pool& before) {
      return before.mean >= pool.mean || points[p].bytes <= points[p - 1].bytes;
    };
    while (!pools.empty() && joins(pools.back())) {
      const auto of = [](const Pool& part) { return static_cast<double>(part.count) * part.mean; };
      const double sum = of(pool) + of(pools.back());
      pool.count += pools.back().count;
      pool.mean = sum / static_cast<double>(pool.count);
      pools.pop_back();
    }
    pools.push_back(pool);
  }
  Points found;
  std::size_t next = 0;
  for (const Pool& pool : pools)
    for (std::size_t i = 0; i < pool.count; ++i, ++next)
      if (found.empty() || points[next].bytes > found.back().bytes)
        found.push_back({points[next].bytes, pool.mean});
  return found;
}

Line through(const FitPoint& a, const FitPoint& b) {
  const double per_byte = (b.seconds - a.seconds) / (b.bytes - a.bytes);
  return {a.seconds - per_byte * a.bytes, per_byte};
}

/// Returns the points that are needed: the lines between them pass close to all points left out.
Points knots_of(const Points& points) {
  Points knots{points.front()};
  for (std::size_t from = 0; from + 1 < points.size();) {
    const auto passes_nearby = [&](std::size_t to) {
      const Line line = through(points[from], points[to]);
      for (std::size_t between = from + 1; between < to; ++between)
        if (std::abs(points[between].error(line)) > tolerated)
          return false;
      return true;
    };
    std::size_t to = points.size() - 1;
    while (!passes_nearby(to))
      --to;
    knots.push_back(points[to]);
    from = to;
  }
  return knots;
}

double growth_of(const Line& line) {
  return line.per_byte > 1 / unlimited_bandwidth ? 1 / line.per_byte : 0;
}

LinkSegment segment_from(const FitPoint& point, double per_byte) {
  return {whole_bytes(point.bytes), {point.seconds}, bandwidth_of({0, per_byte})};
}

}  // namespace

Seconds transfer_time(const Link& link, Bytes size) { return occupancy(link, size) + link.latency; }

LinkFit fit_link(const std::vector<LinkSample>& samples, std::size_t most_segments) {
  const Points points = sorted_points(samples);
  const auto cuts = Cuts(points).up_to(most_segments);
  std::size_t best = 0;
  const auto score = [&](std::size_t c) {
    return information_criterion(cuts[c].cost, points.size(), c + 1);
  };
  for (std::size_t c = 1; c < cuts.size(); ++c)
    if (!cuts[c].parts.empty() && score(c) < score(best))
      best = c;
  LinkFit fit{link_of(points, cuts[best].parts), {}};
  for (const LinkSample& sample : samples)
    fit.residuals.push_back(transfer_time(fit.link, sample.size) / sample.time - 1);
  return fit;
}

LinkFit slowed_down(const Link& link, const std::vector<LinkSample>& samples) {
  constexpr Bytes large{1 << 15};  // from this size on, the bytes dominate the time
  constexpr int rounds = 10;       // the two parts of the slow-down are estimated in turn
  sorted_points(samples);          // throws if a sample is invalid
  double each = 0, per_byte = 0;
  for (int round = 0; round < rounds; ++round) {
    std::vector<double> of_small, of_large;
    for (const LinkSample& sample : samples) {
      const double beyond = (sample.time - transfer_time(link, sample.size)).value;
      const auto bytes = static_cast<double>(sample.size.value);
      if (sample.size < large)
        of_small.push_back(beyond - per_byte * bytes);
      else
        of_large.push_back((beyond - each) / bytes);
    }
    each = std::max(0.0, median(of_small));
    per_byte = std::max(0.0, median(of_large));
  }
  LinkFit fit{link, {}};
  fit.link.latency += Seconds{each};
  fit.link.bandwidth_per_s = 1 / (1 / link.bandwidth_per_s + per_byte);
  for (LinkSegment& segment : fit.link.segments) {
    segment.time += Seconds{each + per_byte * static_cast<double>(segment.from.value)};
    segment.bandwidth_per_s = 1 / (1 / segment.bandwidth_per_s + per_byte);
  }
  for (const LinkSample& sample : samples)
    fit.residuals.push_back(transfer_time(fit.link, sample.size) / sample.time - 1);
  return fit;
}

Overhead fit_overhead(const std::vector<LinkSample>& samples) {
  const Points points = never_falling(sorted_points(samples));
  const auto knots = knots_of(points);
  Overhead overhead;
  const Line first = through(knots[0], knots[1]);
  overhead.each = {std::max(first.constant, knots[0].seconds / 2)};
  overhead.bandwidth_per_s = growth_of(first);
  Line last = first;
  for (std::size_t k = 1; k + 1 < knots.size(); ++k) {
    last = through(knots[k], knots[k + 1]);
    overhead.segments.push_back(segment_from(knots[k], last.per_byte));
  }
  const double on_average = (knots.back().seconds - overhead.each.value) / knots.back().bytes;
  if (on_average > (1 + tolerated) * last.per_byte)
    overhead.segments.push_back(segment_from(knots.back(), on_average));
  return overhead;
}

LinkSample ring_step(const LinkSample& ring, int devices, int rounds) {
  LinkSample step = ring;
  step.size = whole_bytes(static_cast<double>(ring.size.value) / devices);
  step.time = ring.time * (1.0 / (rounds * (devices - 1)));
  return step;
}

}  // namespace pipewright::plan
