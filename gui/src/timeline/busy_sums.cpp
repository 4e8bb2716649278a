#include "pipewright/gui/timeline/busy_sums.hpp"

#include <algorithm>

namespace pipewright::gui {

BusySums::BusySums(std::span<const double> start, std::span<const double> end,
                   std::span<const std::uint8_t> classes)
    : start_(start), end_(end), classes_(classes) {
  before_.reserve(size() / stride + 1);
  ClassTimes sums{};
  for (std::uint64_t event = 0; event < size(); ++event) {
    if (event % stride == 0)
      before_.push_back(sums);
    sums[classes_[event]] += end_[event] - start_[event];
  }
  if (size() % stride == 0)
    before_.push_back(sums);
}

std::uint64_t BusySums::begun_before(double time, std::uint64_t guess) const {
  // Gallops from the guess, since whoever asks goes from pixel to pixel.
  std::uint64_t low = std::min(guess, size());
  if (low > 0 && start_[low - 1] >= time)
    low = 0;
  std::uint64_t step = 1, high = low;
  while (high < size() && start_[high] < time) {
    low = high + 1;
    high += step;
    step *= 2;
  }
  high = std::min(high, size());
  const auto begin = start_.begin() + static_cast<std::ptrdiff_t>(low);
  const auto end = start_.begin() + static_cast<std::ptrdiff_t>(high);
  return static_cast<std::uint64_t>(std::lower_bound(begin, end, time) - start_.begin());
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
  if (begun_first > 0) {  // the one that may still go on
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
