#include "even_cut.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace pipewright::plan {
namespace {

__extension__ typedef __int128 Whole;

/// The price of a cut: `square` times the squared weight of each part, plus `part` for each part.
template <class Number>
struct Price {
  Number square;
  Number part;
};

/// The cheapest cut of every prefix of the items, at a price.
template <class Number>
struct Cheapest {
  std::vector<Number> value;
  std::vector<int> parts;
};

/// Returns the position x where earlier + square (x - from)² = later + square (x - to)², so that
/// two beginnings of a part cost the same. For integer positions its floor suffices.
double crossing(double square, double from, double to, double later_minus_earlier) {
  return (from + to + later_minus_earlier / (square * (to - from))) / 2;
}
Whole crossing(Whole square, Whole from, Whole to, Whole later_minus_earlier) {
  const Whole numerator = square * (to - from) * (to + from) + later_minus_earlier;
  const Whole denominator = 2 * square * (to - from);
  const Whole quotient = numerator / denominator;
  return numerator < quotient * denominator ? quotient - 1 : quotient;
}

template <class Number>
class Cutter {
 public:
  /// `at` has the total weight before each item, and of all items. `reach` has for each item the
  /// latest end of a part that begins there.
  Cutter(std::vector<Number> at, const std::vector<std::size_t>& reach)
      : items_(reach.size()), at_(std::move(at)), reach_(reach) {}

  Number square(std::size_t begin, std::size_t end) const {
    return (at_[end] - at_[begin]) * (at_[end] - at_[begin]);
  }

  /// Finds the cheapest cuts with a queue of the beginnings that are best for some later end.
  Cheapest<Number> cheapest(const Price<Number>& price) const {
    Cheapest<Number> best{std::vector<Number>(items_ + 1), std::vector<int>(items_ + 1)};
    std::vector<std::size_t> queue(items_);
    std::vector<Number> best_after(items_);  // by queue entry: the position after which it is best
    std::size_t front = 0;
    std::size_t back = 0;  // past the end
    for (std::size_t end = 1; end <= items_; ++end) {
      Number after = -1;
      while (back > front) {
        after = overtaken(price.square, best.value, queue[back - 1], end - 1);
        if (after > best_after[back - 1])
          break;
        --back;
      }
      queue[back] = end - 1;
      best_after[back++] = after;
      while (front + 1 < back && at_[end] > best_after[front + 1])
        ++front;
      const std::size_t begin = queue[front];
      best.value[end] = best.value[begin] + price.square * square(begin, end) + price.part;
      best.parts[end] = best.parts[begin] + 1;
    }
    return best;
  }

  /// Reconstructs the cut from the end. Each border is as late as possible in a cheapest cut with
  /// `parts` parts. At one price, all numbers of parts between the fewest and the most occur.
  /// Returns nothing if `tolerance` is too small for the rounding errors.
  std::optional<std::vector<int>> latest_borders(int parts, const Price<Number>& price,
                                                 const std::vector<Number>& value,
                                                 const std::vector<int>& fewest,
                                                 const std::vector<int>& most,
                                                 Number tolerance) const {
    std::vector<int> borders(static_cast<std::size_t>(parts) + 1);
    std::size_t end = items_;
    for (int part = parts; part > 0; --part) {
      borders[static_cast<std::size_t>(part)] = static_cast<int>(end);
      std::size_t begin = end;
      do {
        if (begin == 0 || reach_[begin - 1] < end)
          return {};
        --begin;
      } while (fewest[begin] > part - 1 || most[begin] < part - 1 ||
               value[begin] + price.square * square(begin, end) + price.part >
                   value[end] + tolerance);
      end = begin;
    }
    return borders;
  }

 private:
  /// Returns the position after which `later` is a better beginning than `earlier`: where both cost
  /// the same, or where the cap ends a part that begins at `earlier`.
  Number overtaken(Number square, const std::vector<Number>& value, std::size_t earlier,
                   std::size_t later) const {
    const Number limit = at_[reach_[earlier]];
    if (at_[later] == at_[earlier])
      return value[earlier] <= value[later] ? limit : -1;
    return std::min(limit,
                    crossing(square, at_[earlier], at_[later], value[later] - value[earlier]));
  }

  std::size_t items_;
  std::vector<Number> at_;
  const std::vector<std::size_t>& reach_;
};

/// A point of the curve of the least sum of squares over the number of parts.
template <class Number>
struct Point {
  int parts;
  Number squares;
};

template <class Number>
Point<Number> point_of(const Cheapest<Number>& cut, const Price<Number>& price) {
  return {cut.parts.back(), (cut.value.back() - price.part * cut.parts.back()) / price.square};
}

/// Returns a price at which `parts` parts are as cheap as any other number. The curve is convex:
/// the line through two of its points is a price that finds either a point between them, or that
/// the line is an edge of the curve.
template <class Number>
Price<Number> price_between(const Cutter<Number>& cutter, Point<Number> few, Point<Number> many,
                            int parts, Number rounding) {
  while (true) {
    const Price<Number> price{static_cast<Number>(many.parts - few.parts),
                              few.squares - many.squares};
    const Cheapest<Number> cut = cutter.cheapest(price);
    const Number line = price.square * many.squares + price.part * many.parts;
    const Point<Number> found = point_of(cut, price);
    const bool between = few.parts < found.parts && found.parts < many.parts;
    if (found.parts == parts || !between || cut.value.back() >= line - rounding * line)
      return price;
    (found.parts < parts ? few : many) = found;
  }
}

Price<double> rounded_price(const Cutter<double>& cutter, int items, int parts) {
  // More than all squares together, so the fewest parts are cheapest.
  const Price<double> high{1, parts + 1.0};
  const Point<double> few = point_of(cutter.cheapest(high), high);
  Point<double> many{items, 0};
  for (int item = 0; item < items; ++item)
    many.squares +=
        cutter.square(static_cast<std::size_t>(item), static_cast<std::size_t>(item) + 1);
  if (few.parts == many.parts)
    return {1, 0};
  const auto price = price_between<double>(cutter, few, many, parts, 1e-14);
  return {1, price.part / price.square};
}

/// Finds the fewest and the most parts with a slightly higher and a slightly lower price. Ties do
/// so only up to rounding errors of unknown size, so the tolerance is increased until it works.
std::vector<int> rounded_cut(const Cutter<double>& cutter, int parts, const Price<double>& price) {
  const auto value = cutter.cheapest(price).value;
  for (double tolerance = 1e-13 * parts;; tolerance *= 10) {
    const auto fewest = cutter.cheapest({1, price.part + tolerance}).parts;
    const auto most = cutter.cheapest({1, price.part - tolerance}).parts;
    if (fewest.back() <= parts && parts <= most.back())
      if (auto borders = cutter.latest_borders(parts, price, value, fewest, most, tolerance))
        return *borders;
  }
}

/// Finds the cut in exact integers, starting from an approximate price.
std::vector<int> exact_cut(const Cutter<Whole>& cutter, int items, int parts, double near) {
  const auto point_at = [&](double part) {
    const Price<Whole> price{1, static_cast<Whole>(part)};
    return point_of(cutter.cheapest(price), price);
  };
  double away = 1 + 1e-9 * std::abs(near);
  Point<Whole> few = point_at(std::ceil(near + away)), many = point_at(std::floor(near - away));
  for (; few.parts > parts || many.parts < parts; away *= 16) {
    few = point_at(std::ceil(near + away));
    many = point_at(std::floor(near - away));
  }
  const Price<Whole> price = few.parts == many.parts
                                 ? Price<Whole>{1, static_cast<Whole>(std::round(near))}
                                 : price_between<Whole>(cutter, few, many, parts, 0);

  // Prices are scaled so that squares decide first, and then the number of parts.
  const Whole first = items + 1;
  const auto fewest = cutter.cheapest({price.square * first, price.part * first + 1});
  const auto most = cutter.cheapest({price.square * first, price.part * first - 1});
  std::vector<Whole> value(fewest.value);
  for (std::size_t end = 0; end < value.size(); ++end)
    value[end] = (value[end] - fewest.parts[end]) / first;
  return cutter.latest_borders(parts, price, value, fewest.parts, most.parts, 0).value();
}

std::vector<std::size_t> reaches(const std::vector<double>& sum_before, double cap) {
  std::vector<std::size_t> reach;
  std::size_t end = 0;
  for (std::size_t begin = 0; begin + 1 < sum_before.size(); ++begin) {
    while (end + 1 < sum_before.size() && sum_before[end + 1] - sum_before[begin] <= cap)
      ++end;
    reach.push_back(end);
  }
  return reach;
}

}  // namespace

std::vector<int> most_even_cut(const std::vector<double>& sum_before, int parts, double cap) {
  const int items = static_cast<int>(sum_before.size()) - 1;
  const auto reach = reaches(sum_before, cap);
  // Scaled to the cap, squares neither overflow nor vanish, whatever the unit of the weights is.
  const double unit = cap > 0 ? cap : 1;
  std::vector<double> shares(sum_before);
  for (double& share : shares)
    share /= unit;
  const Cutter<double> rounded(shares, reach);
  const Price<double> price = rounded_price(rounded, items, parts);

  const double largest = 8 * std::pow(sum_before.back() * (items + 1.0), 2);
  if (!are_whole(sum_before) || largest > 0x1p126)
    return rounded_cut(rounded, parts, price);
  const Cutter<Whole> exact(std::vector<Whole>(sum_before.begin(), sum_before.end()), reach);
  return exact_cut(exact, items, parts, price.part * unit * unit);
}

bool are_whole(const std::vector<double>& sums) {
  return sums.back() < 0x1p53 &&
         std::all_of(sums.begin(), sums.end(), [](double sum) { return sum == std::floor(sum); });
}

}  // namespace pipewright::plan
