#include "stall.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

namespace pipewright::exec {
namespace {

using Ranks = std::vector<int>;

const Heartbeat& of(int rank, const std::vector<Heartbeat>& beats) {
  return beats[static_cast<std::size_t>(rank)];
}

/// Returns the ranks that have not left.
Ranks ranks_here(const std::vector<Heartbeat>& beats) {
  Ranks here(beats.size());
  std::iota(here.begin(), here.end(), 0);
  std::erase_if(here, [&](int rank) { return of(rank, beats).left; });
  return here;
}

/// Returns the ranks for which `rank` waits and which have not entered the same wait: two ranks in
/// one all-gather do not wait for each other.
Ranks missing(int rank, const Wait& wait, const std::vector<Heartbeat>& beats) {
  const auto has_come = [&](int other) {
    return other == rank ||
           std::ranges::find(of(other, beats).waits, wait) != of(other, beats).waits.end();
  };
  Ranks missing = wait.ranks;
  std::erase_if(missing, has_come);
  return missing;
}

bool waits_for_any(int rank, const Ranks& others, const std::vector<Heartbeat>& beats) {
  return std::ranges::any_of(of(rank, beats).waits, [&](const Wait& wait) {
    const Ranks ranks = missing(rank, wait, beats);
    return std::ranges::find_first_of(ranks, others) != ranks.end();
  });
}

/// Returns the ranks that wait for each other in cycles. Removes, one by one, ranks that wait for
/// none of the rest and ranks for which none of the rest waits.
Ranks circles(Ranks ranks, const std::vector<Heartbeat>& beats) {
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

/// Returns " in 1RECV_B3 for rank 2". Ranks with equal waits share one sentence.
std::string wait_text(int rank, const Wait& wait, const std::vector<Heartbeat>& beats,
                      bool several) {
  if (wait.ranks.empty())
    return fmt::format(" in {} for {}", wait.where, several ? "their devices" : "its device");
  const Ranks ranks = missing(rank, wait, beats);
  return fmt::format(
      " in {}{}", wait.where,
      ranks.empty() ? ", which all ranks have entered" : " for " + ranks_text(ranks));
}

std::string who_waits_text(const Ranks& ranks, const Wait& wait,
                           const std::vector<Heartbeat>& beats) {
  const std::string& at = of(ranks.front(), beats).at;
  const bool several = ranks.size() > 1;
  return fmt::format("{}{} {}{}", ranks_text(ranks),
                     at == wait.where ? "" : fmt::format(" (at {})", at),
                     several ? "wait" : "waits", wait_text(ranks.front(), wait, beats, several));
}

/// Returns true if two ranks may share a sentence: they are at the same place and wait for the same
/// ranks.
bool wait_alike(int a, int b, const Wait& wait, const std::vector<Heartbeat>& beats) {
  return of(a, beats).at == of(b, beats).at && missing(a, wait, beats) == missing(b, wait, beats) &&
         std::ranges::find(of(b, beats).waits, wait) != of(b, beats).waits.end();
}

std::string circle_report(const Ranks& ranks, const std::vector<Heartbeat>& beats,
                          std::chrono::milliseconds time) {
  const Ranks circle = circles(ranks, beats);
  const Ranks& told = circle.empty() ? ranks : circle;
  std::vector<std::string> texts;
  for (const int rank : told)
    for (const Wait& wait : of(rank, beats).waits) {
      Ranks alike = told;
      std::erase_if(alike, [&](int other) { return !wait_alike(rank, other, wait, beats); });
      if (alike.front() == rank)
        texts.push_back(who_waits_text(alike, wait, beats));
    }
  return fmt::format("no rank has made progress for {}: {}", in_seconds(time),
                     fmt::join(texts, "; "));
}

std::string hang_report(const Ranks& ranks, const std::vector<Heartbeat>& beats,
                        std::chrono::milliseconds time) {
  std::vector<std::string> texts;
  for (const int rank : ranks)
    texts.push_back(fmt::format("rank {} has been at {} for {} and does not end{}", rank,
                                of(rank, beats).at, in_seconds(time), who_waits_for(rank, beats)));
  return fmt::format("{}", fmt::join(texts, "; "));
}

}  // namespace

std::string stall_report(const std::vector<Heartbeat>& beats, std::chrono::milliseconds time) {
  const Ranks here = ranks_here(beats);
  Ranks busy = here, waiting_for_none = here;
  std::erase_if(busy, [&](int rank) { return !of(rank, beats).waits.empty(); });
  const auto in_action = [&](int rank) { return of(rank, beats).in_action; };
  const auto waits_for_ranks = [&](int rank) {
    return std::ranges::any_of(of(rank, beats).waits,
                               [](const Wait& wait) { return !wait.ranks.empty(); });
  };
  std::erase_if(waiting_for_none, waits_for_ranks);
  if (!std::ranges::all_of(waiting_for_none, in_action) || !std::ranges::any_of(here, in_action))
    return "";
  return busy.empty() ? circle_report(here, beats, time) : hang_report(busy, beats, time);
}

bool tells_of_stall(int rank, const std::vector<Heartbeat>& beats) {
  const auto waits = [&](int other) { return !of(other, beats).waits.empty(); };
  return !of(rank, beats).left && (waits(rank) || std::ranges::none_of(ranks_here(beats), waits));
}

}  // namespace pipewright::exec
