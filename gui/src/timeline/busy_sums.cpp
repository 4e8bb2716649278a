#include "pipewright/gui/timeline/busy_sums.hpp"

#include <algorithm>

namespace pipewright::gui {
namespace {

/// Returns the number of sorted values below `time`: by exponential search from the guess, because
/// callers move from pixel to pixel, and then by bisection.
std::uint64_t below(std::span<const double> values, double time, std::uint64_t guess) {
  std::uint64_t low = std::min<std::uint64_t>(guess, values.size()), high = low, step = 1;
  if (low > 0 && values[low - 1] >= time) {
    while (low > 0 && values[low - 1] >= time) {
      high = low - 1;
      low -= std::min(low, step);
      step *= 2;
    }
  } else {
    while (high < values.size() && values[high] < time) {
      low = high + 1;
      high += step;
      step *= 2;
    }
    high = std::min<std::uint64_t>(high, values.size());
  }
  const auto begin = values.begin() + static_cast<std::ptrdiff_t>(low);
  const auto end = values.begin() + static_cast<std::ptrdiff_t>(high);
  return static_cast<std::uint64_t>(std::lower_bound(begin, end, time) - values.begin());
}

}  // namespace

BusySums::BusySums(std::span<const double> start, std::span<const double> end,
                   std::span<const std::uint8_t> classes)
    : start_(start), end_(end), classes_(classes) {
  before_.reserve(size() / stride + 1);
  mark_start_.reserve(size() / stride + 1);
  ClassTimes sums{};
  for (std::uint64_t event = 0; event < size(); ++event) {
    if (event % stride == 0) {
      before_.push_back(sums);
      mark_start_.push_back(start_[event]);
    }
    sums[classes_[event]] += end_[event] - start_[event];
  }
  if (size() % stride == 0)
    before_.push_back(sums);
}

std::uint64_t BusySums::begun_before(double time, std::uint64_t guess) const {
  // Marks are contiguous, so that few cache lines are read.
  const std::uint64_t marks = below(mark_start_, time, (guess + stride - 1) / stride);
  if (marks == 0)
    return 0;
  std::uint64_t event = (marks - 1) * stride + 1;
  const std::uint64_t end = std::min<std::uint64_t>(marks * stride, size());
  while (event < end && start_[event] < time)
    ++event;
  return event;
}

ClassTimes BusySums::until(double time, std::uint64_t begun) const {
  if (begun == 0)
    return {};
  const std::uint64_t last = begun - 1, mark = last / stride;
  ClassTimes sums = before_[mark];
  for (std::uint64_t event = mark * stride; event < last; ++event)
    sums[classes_[event]] += end_[event] - start_[event];
  sums[classes_[last]] += std::min(end_[last], time) - start_[last];
  return sums;
}

void BusySums::add_whole(std::uint64_t first, std::uint64_t last, ClassTimes& sums) const {
  const std::uint64_t first_mark = (first + stride - 1) / stride, last_mark = last / stride;
  if (first_mark >= last_mark) {
    for (; first < last; ++first)
      sums[classes_[first]] += end_[first] - start_[first];
    return;
  }
  for (; first < first_mark * stride; ++first)
    sums[classes_[first]] += end_[first] - start_[first];
  for (std::size_t c = 0; c < class_count; ++c)
    sums[c] += before_[last_mark][c] - before_[first_mark][c];
  for (first = last_mark * stride; first < last; ++first)
    sums[classes_[first]] += end_[first] - start_[first];
}

ClassTimes BusySums::between(double first, double last, std::uint64_t begun_first,
                             std::uint64_t begun_last) const {
  ClassTimes sums{};
  if (begun_first > 0) {  // the event that may not have ended
    const std::uint64_t event = begun_first - 1;
    sums[classes_[event]] += std::max(0.0, std::min(end_[event], last) - first);
  }
  if (begun_last > begun_first) {
    const std::uint64_t event = begun_last - 1;
    add_whole(begun_first, event, sums);
    sums[classes_[event]] += std::min(end_[event], last) - start_[event];
  }
  return sums;
}

}  // namespace pipewright::gui
