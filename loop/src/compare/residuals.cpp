#include "pipewright/loop/compare/residuals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "pipewright/plan/quantity_text.hpp"
#include "pipewright/sim/causes/idle.hpp"
#include "pipewright/sim/causes/measured_times.hpp"

namespace pipewright::loop {
namespace {

using PlaceKind = ResidualCause::Kind;

double idle_of(const sim::IdleTime& idle, std::size_t rank,
               std::initializer_list<plan::IdleCause> causes) {
  double sum = 0;
  for (const plan::IdleCause cause : causes)
    sum += idle.by_cause[rank][static_cast<std::size_t>(cause)];
  return sum;
}

/// Returns how one rank spends the iteration, in one of the two timelines.
RankResidual budget(const sim::Times& times, const sim::IdleTime& idle, std::size_t rank) {
  using enum plan::IdleCause;
  RankResidual spent;
  spent.transfer_s = idle_of(idle, rank, {Transfer, Queue, Exposed});
  spent.waiting_s = idle_of(idle, rank, {WarmUp, CoolDown, Imbalance});
  spent.launch_s = idle_of(idle, rank, {Launch});
  spent.compute_s = times.iteration - idle.of_rank(static_cast<int>(rank));
  return spent;
}

/// Time by place, which is (kind, rank, stage, other).
using Place = std::tuple<PlaceKind, int, int, int>;
using Places = std::map<Place, double>;

Place place_of(const plan::Dependencies& events, int event) {
  const auto& own = events[event];
  const plan::InstructionKind kind = own.instruction->kind;
  if (plan::is_send(kind))
    return {PlaceKind::Transfer, own.rank, -1, events[own.partner].rank};
  if (plan::is_receive(kind))
    return {PlaceKind::Transfer, events[own.partner].rank, -1, own.rank};
  if (plan::is_collective(kind))
    return {PlaceKind::Reduction, own.rank, own.instruction->stage, -1};
  return {PlaceKind::Compute, own.rank, own.instruction->stage, -1};
}

/// Returns when the event at `path[at]` released the next event of the chain; for the last event,
/// when it ended.
double handed_over(const plan::Dependencies& events, const sim::Times& times,
                   const std::vector<int>& path, std::size_t at) {
  const int event = path[at];
  double instant = times[event].end;
  if (at + 1 == path.size())
    return instant;
  bool is_found = false;  // stays false for the partner of a receive, which is not a predecessor
  events.for_each_predecessor(path[at + 1], [&](int before, plan::Until until) {
    if (before != event)
      return;
    const double then = until == plan::Until::Done ? times[before].end : times[before].released;
    instant = is_found ? std::max(instant, then) : then;
    is_found = true;
  });
  return instant;
}

/// Returns measured less predicted time by place, for the events on the measured critical path.
Places places_on_path(const sim::Structure& structure, const sim::Times& predicted,
                      const sim::Times& measured) {
  const plan::Dependencies& events = structure.events();
  const std::vector<int> path = measured_critical_path(structure, measured);
  Places places;
  double until = 0, foreseen = 0;
  int last_rank = 0;
  for (std::size_t at = 0; at < path.size(); ++at) {
    const int event = path[at];
    const Place place = place_of(events, event);
    const double end = handed_over(events, measured, path, at);
    const double then = handed_over(events, predicted, path, at);
    last_rank = events[event].rank;
    if (std::get<PlaceKind>(place) == PlaceKind::Compute) {
      places[{PlaceKind::Launch, last_rank, -1, -1}] += measured[event].start - until;
      until = measured[event].start;
    }
    // A receive is charged nothing: the time it waits belongs to its send.
    const bool receives = plan::is_receive(events[event].instruction->kind);
    const double share = receives ? 0 : then - predicted[event].start;
    places[place] += end - until - share;
    foreseen += share;
    until = end;
  }
  places[{PlaceKind::Launch, last_rank, -1, -1}] += measured.iteration - until;
  places[{PlaceKind::Overlap, -1, -1, -1}] = foreseen - predicted.iteration;
  return places;
}

std::string longer(double seconds) {
  return fmt::format("{} {} than predicted", plan::time_text(std::abs(seconds)),
                     seconds < 0 ? "less" : "more");
}

std::string in_words(const ResidualCause& cause) {
  switch (cause.kind) {
    case PlaceKind::Compute:
      return fmt::format("stage {} on rank {} computes {}", cause.stage, cause.rank,
                         longer(cause.seconds));
    case PlaceKind::Transfer:
      return fmt::format("transfers from rank {} to rank {} take {}", cause.rank, cause.other,
                         longer(cause.seconds));
    case PlaceKind::Reduction:
      return fmt::format("the reductions of stage {} on rank {} take {}", cause.stage, cause.rank,
                         longer(cause.seconds));
    case PlaceKind::Launch:
      return fmt::format("rank {} begins late, by {}", cause.rank, longer(cause.seconds));
    case PlaceKind::Overlap:
      return fmt::format("{} were hidden by a longer path in the prediction",
                         plan::time_text(std::abs(cause.seconds)));
  }
  return "";
}

ResidualCause cause_of(const Place& place, double seconds) {
  ResidualCause cause;
  std::tie(cause.kind, cause.rank, cause.stage, cause.other) = place;
  cause.seconds = seconds;
  cause.text = in_words(cause);
  return cause;
}

/// Causes below this share of the measured iteration are rounding errors.
constexpr double least_part = 1e-9;

/// Returns true if the rank's memory was sampled. A peak of 0 stands for a rank without samples.
bool is_sampled(const std::vector<plan::Bytes>& peaks, std::size_t rank) {
  return rank < peaks.size() && peaks[rank] != plan::Bytes{};
}

}  // namespace

Residuals residuals_of(const sim::Structure& structure, const sim::Times& predicted,
                       const sim::Times& measured, const std::vector<plan::Bytes>& predicted_peaks,
                       const std::vector<plan::Bytes>& measured_peaks) {
  Residuals residuals{predicted.iteration, measured.iteration, {}, {}};
  sim::IdleCauses causes(structure);
  const sim::IdleTime foreseen = causes.of(predicted);
  const sim::IdleTime& found = causes.of(measured);
  for (std::size_t rank = 0; rank < found.by_cause.size(); ++rank) {
    const RankResidual before = budget(predicted, foreseen, rank);
    const RankResidual after = budget(measured, found, rank);
    RankResidual residual{after.compute_s - before.compute_s, after.transfer_s - before.transfer_s,
                          after.waiting_s - before.waiting_s, after.launch_s - before.launch_s,
                          plan::Bytes{}};
    if (is_sampled(predicted_peaks, rank) && is_sampled(measured_peaks, rank))
      residual.memory = measured_peaks[rank] - predicted_peaks[rank];
    residuals.ranks.push_back(residual);
  }
  for (const auto& [place, seconds] : places_on_path(structure, predicted, measured))
    if (std::abs(seconds) > least_part * residuals.measured_s)
      residuals.causes.push_back(cause_of(place, seconds));
  std::stable_sort(
      residuals.causes.begin(), residuals.causes.end(),
      [](const ResidualCause& a, const ResidualCause& b) {
        const bool a_hides = a.kind == PlaceKind::Overlap, b_hides = b.kind == PlaceKind::Overlap;
        return a_hides != b_hides ? b_hides : std::abs(a.seconds) > std::abs(b.seconds);
      });
  return residuals;
}

Residuals residuals_of(const sim::Structure& structure, const plan::Timeline& predicted,
                       const plan::Timeline& measured) {
  return residuals_of(structure, sim::times_of(structure, predicted),
                      sim::times_of(structure, measured), peak_per_rank(predicted),
                      peak_per_rank(measured));
}

}  // namespace pipewright::loop
