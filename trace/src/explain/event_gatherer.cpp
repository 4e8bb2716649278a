#include "explain/event_gatherer.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>

#include "pipewright/plan/timeline/timeline_facts.hpp"

namespace pipewright::trace {
namespace {

bool is_number(std::string_view text) {
  return !text.empty() && text.size() < 10 &&
         text.find_first_not_of("0123456789") == std::string_view::npos;
}

constexpr double half_ns = 5e-10;  // seconds: times are written in whole nanoseconds

}  // namespace

std::optional<NamedRange> named_range(std::string_view name) {
  const auto behind = [&](std::string_view mark) -> std::optional<std::string_view> {
    if (!name.starts_with(mark))
      return {};
    return name.substr(mark.size());
  };
  if (const auto action = behind("PP:"))
    return NamedRange{RangeKind::Action, *action};
  if (const auto microbatch = behind("Forward "); microbatch && is_number(*microbatch))
    return NamedRange{RangeKind::Forward, *microbatch};
  if (const auto microbatch = behind("Backward "); microbatch && is_number(*microbatch))
    return NamedRange{RangeKind::Backward, *microbatch};
  if (const auto step = name.substr(name.find_last_of("# ") + 1);
      plan::step_number(name) && is_number(step))
    return NamedRange{RangeKind::Step, step};
  if (const auto optimizer = behind("Optimizer.step#"))
    return NamedRange{RangeKind::Optimizer, *optimizer};
  if (behind("gloo:send"))
    return NamedRange{RangeKind::Send, {}};
  if (behind("gloo:recv"))
    return NamedRange{RangeKind::Receive, {}};
  return {};
}

OperatorKind operator_kind(std::string_view name) {
  if (name.starts_with("autograd::engine::evaluate_function"))
    return OperatorKind::Engine;
  if (!name.starts_with("c10d::"))
    return OperatorKind::Compute;
  if (name.starts_with("c10d::send"))
    return OperatorKind::Send;
  return name.starts_with("c10d::recv") ? OperatorKind::Receive : OperatorKind::Collective;
}

double EventGatherer::seconds(const Microseconds& time) {
  if (!first_)
    first_ = time.whole;
  return (static_cast<double>(time.whole - *first_) + time.fraction) * 1e-6;
}

void EventGatherer::take_operator(std::uint32_t thread, std::string_view name, double start,
                                  double end) {
  calls_.push_back({thread, operator_kind(name), start, end, names_.number_of(name)});
}

void EventGatherer::take_transfer(std::uint32_t thread, OperatorKind kind, double start,
                                  double end) {
  calls_.push_back({thread, kind, start, end, names_.number_of("transfer")});
}

void EventGatherer::take_range(const NamedRange& range, double start, double end,
                               std::string_view stream) {
  events_.ranges.push_back({range.kind, start, end, std::string(range.name), std::string(stream)});
}

void EventGatherer::take_work(std::uint32_t thread, std::string_view name, double start,
                              double end) {
  if (!only_waits(name))
    works_.push_back({thread, OperatorKind::Compute, start, end, 0});
}

void EventGatherer::take_arrow_end(Arrow end, std::int64_t id, std::uint32_t thread, double time) {
  auto& ends = end == Arrow::Forward    ? forward_
               : end == Arrow::Backward ? backward_
               : end == Arrow::Launch   ? launches_
                                        : starts_;
  ends.push_back({id, time, thread});
}

void EventGatherer::finish(std::optional<std::int64_t> base_time) {
  constexpr std::int64_t most_us = 400'000'000'000'000;  // differences must be representable
  if (base_time && std::abs(first_.value_or(0)) < most_us)
    events_.origin_ns = *base_time + first_.value_or(0) * 1000;
  for (std::uint32_t name = 0; name < names_.size(); ++name)
    events_.names.push_back(names_.text(name));
  join_arrows();
  join_device();
  keep_outermost();
  sort_ranges();
}

void EventGatherer::sort_ranges() {
  std::stable_sort(events_.ranges.begin(), events_.ranges.end(), [](const auto& a, const auto& b) {
    return std::tuple(a.start, -a.end) < std::tuple(b.start, -b.end);
  });
  // A known function of a runtime may call another known one.
  std::map<RangeKind, double> until;
  std::erase_if(events_.ranges, [&](const PipelineEvents::Range& own) {
    if (own.kind != RangeKind::ForwardCall && own.kind != RangeKind::BackwardCall)
      return false;
    const auto around = until.find(own.kind);
    const bool is_within = around != until.end() && own.end <= around->second;
    if (!is_within)
      until[own.kind] = own.end;
    return is_within;
  });
}

void EventGatherer::sort_by_id(std::vector<End>& ends) {
  std::stable_sort(ends.begin(), ends.end(),
                   [](const End& a, const End& b) { return a.id < b.id; });
}

/// Calls `take(begin, end)` for the two ends of each arrow.
template <class Take>
void EventGatherer::join(std::vector<End>& begins, std::vector<End>& ends, const Take& take) {
  sort_by_id(begins);
  sort_by_id(ends);
  auto begin = begins.begin();
  for (const End& end : ends) {
    while (begin != begins.end() && begin->id < end.id)
      ++begin;
    if (begin != begins.end() && begin->id == end.id)
      take(*begin, end);
  }
}

void EventGatherer::join_arrows() {
  join(forward_, backward_, [&](const End& from, const End& to) {
    events_.arrows.push_back({from.time, to.time});
    ++threads_of_arrows_[from.thread];
  });
  std::sort(events_.arrows.begin(), events_.arrows.end(),
            [](const auto& a, const auto& b) { return a.from < b.from; });
}

void EventGatherer::join_device() {
  const auto place = [](const Call& work) { return std::pair(work.thread, work.start); };
  std::sort(works_.begin(), works_.end(),
            [&](const Call& a, const Call& b) { return place(a) < place(b); });
  join(launches_, starts_, [&](const End& launch, const End& start) {
    const std::pair wanted(start.thread, start.time);
    const auto work =
        std::lower_bound(works_.begin(), works_.end(), wanted,
                         [&](const Call& own, const auto& key) { return place(own) < key; });
    if (work != works_.end() && place(*work) == wanted)
      events_.device.push_back({launch.time, start.time, work->end});
  });
  std::sort(events_.device.begin(), events_.device.end(),
            [](const auto& a, const auto& b) { return a.launched < b.launched; });
}

/// Keeps only operators on threads that run forwards or backwards: other threads load data or wait.
void EventGatherer::keep_outermost() {
  std::uint32_t threads = 0;
  for (const Call& call : calls_)
    threads = std::max(threads, call.thread + 1);
  for (const auto& [thread, count] : threads_of_arrows_)
    threads = std::max(threads, thread + 1);
  std::vector<bool> works(threads);
  for (const auto& [thread, count] : threads_of_arrows_)
    works[thread] = true;
  for (const Call& call : calls_)
    if (call.kind != OperatorKind::Compute && call.kind != OperatorKind::Collective)
      works[call.thread] = true;
  std::sort(calls_.begin(), calls_.end(), [](const Call& a, const Call& b) {
    return std::tuple(a.thread, a.start, -a.end) < std::tuple(b.thread, b.start, -b.end);
  });
  const Call* around = nullptr;
  for (const Call& call : calls_) {
    if (!works[call.thread])
      continue;
    if (around != nullptr && around->thread == call.thread && call.start + half_ns < around->end)
      continue;
    around = &call;
    events_.operators.push_back({call.start, call.end, call.kind, call.name});
  }
  std::stable_sort(events_.operators.begin(), events_.operators.end(),
                   [](const auto& a, const auto& b) { return a.start < b.start; });
}

}  // namespace pipewright::trace
