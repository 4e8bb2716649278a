#include "stall.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

namespace pipewright::exec {
namespace {

using Ranks = std::vector<int>;

const Beat& of(int rank, const std::vector<Beat>& beats) {
  return beats[static_cast<std::size_t>(rank)];
}

/// Those that `wait` of `rank` is for and that have not come: two in one all-gather do not wait for
/// each other.
Ranks missing(int rank, const Wait& wait, const std::vector<Beat>& beats) {
  const auto has_come = [&](int other) {
    return other == rank ||
           std::ranges::find(of(other, beats).waits, wait) != of(other, beats).waits.end();
  };
  Ranks missing = wait.ranks;
  std::erase_if(missing, has_come);
  return missing;
}

bool waits_for_any(int rank, const Ranks& others, const std::vector<Beat>& beats) {
  return std::ranges::any_of(of(rank, beats).waits, [&](const Wait& wait) {
    const Ranks ranks = missing(rank, wait, beats);
    return std::ranges::find_first_of(ranks, others) != ranks.end();
  });
}

/// The circles in who waits for whom: what is left without those that wait for none of the rest,
/// and those that none of the rest waits for.
Ranks circles(Ranks ranks, const std::vector<Beat>& beats) {
  const auto is_outside = [&](int rank) {
    return !waits_for_any(rank, ranks, beats) || std::ranges::none_of(ranks, [&](int other) {
      return waits_for_any(other, {rank}, beats);
    });
  };
  for (auto outside = std::ranges::find_if(ranks, is_outside); outside != ranks.end();
       outside = std::ranges::find_if(ranks, is_outside))
    ranks.erase(outside);
  return ranks;
}

std::string wait_text(int rank, const Wait& wait, const std::vector<Beat>& beats) {
  const Beat& beat = of(rank, beats);
  const Ranks ranks = missing(rank, wait, beats);
  return fmt::format("rank {}{} waits in {}{}", rank,
                     beat.at == wait.where ? "" : fmt::format(" (at {})", beat.at), wait.where,
                     ranks.empty() ? "" : " for " + ranks_text(ranks));
}

std::string circle_report(const Ranks& ranks, const std::vector<Beat>& beats,
                          std::chrono::milliseconds time) {
  const Ranks circle = circles(ranks, beats);
  std::vector<std::string> texts;
  for (const int rank : circle.empty() ? ranks : circle)
    for (const Wait& wait : of(rank, beats).waits)
      texts.push_back(wait_text(rank, wait, beats));
  return fmt::format("no rank has gone on for {}: {}", in_seconds(time), fmt::join(texts, "; "));
}

std::string hang_report(const Ranks& ranks, const std::vector<Beat>& beats,
                        std::chrono::milliseconds time) {
  std::vector<std::string> texts;
  for (const int rank : ranks)
    texts.push_back(fmt::format("rank {} has been at {} for {} and does not end{}", rank,
                                of(rank, beats).at, in_seconds(time), who_waits_for(rank, beats)));
  return fmt::format("{}", fmt::join(texts, "; "));
}

}  // namespace

std::string stall_report(const std::vector<Beat>& beats, std::chrono::milliseconds time) {
  Ranks here(beats.size());
  std::iota(here.begin(), here.end(), 0);
  std::erase_if(here, [&](int rank) { return of(rank, beats).left; });
  Ranks busy = here;
  std::erase_if(busy, [&](int rank) { return !of(rank, beats).waits.empty(); });
  const auto in_action = [&](int rank) { return of(rank, beats).in_action; };
  if (busy.size() == here.size() || !std::ranges::all_of(busy, in_action) ||
      !std::ranges::any_of(here, in_action))
    return "";
  return busy.empty() ? circle_report(here, beats, time) : hang_report(busy, beats, time);
}

}  // namespace pipewright::exec
