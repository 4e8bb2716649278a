#include "gui/support/tables.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

namespace pipewright::test {
namespace {

constexpr int ranks = 4, microbatches = 6;
constexpr double ms = 1e-3, transfer = 0.2 * ms;

struct Work {
  bool backward = false;
  int microbatch = 0;
};

/// Returns as many forwards as there are later ranks, then one backward per forward.
std::vector<Work> order_of(int rank) {
  std::vector<Work> order;
  const int ahead = std::min(microbatches, ranks - 1 - rank);
  for (int m = 0; m < ahead; ++m)
    order.push_back({false, m});
  for (int m = 0; m < microbatches; ++m) {
    if (ahead + m < microbatches)
      order.push_back({false, ahead + m});
    order.push_back({true, m});
  }
  return order;
}

}  // namespace

plan::Timeline small_pipeline(double slow) {
  plan::Timeline timeline{.name = "small", .ranks = ranks, .length = {}, .spans = {}, .memory = {}};
  std::array<std::vector<Work>, ranks> todo;
  for (int rank = 0; rank < ranks; ++rank)
    todo[static_cast<std::size_t>(rank)] = order_of(rank);
  std::array<std::size_t, ranks> done{};
  std::array<double, ranks> free_at{};
  std::map<std::tuple<bool, int, int>, double> ended;  // backward, rank, microbatch
  for (bool moved = true; moved;) {
    moved = false;
    for (int rank = 0; rank < ranks; ++rank) {
      const auto r = static_cast<std::size_t>(rank);
      if (done[r] == todo[r].size())
        continue;
      const Work work = todo[r][done[r]];
      const int from = work.backward ? rank + 1 : rank - 1;
      double ready = free_at[r];
      if (from >= 0 && from < ranks) {
        const auto found = ended.find({work.backward, from, work.microbatch});
        if (found == ended.end())
          continue;
        const double sent = found->second;
        const std::string tail = (work.backward ? "_B" : "_F") + std::to_string(work.microbatch);
        timeline.spans.push_back({from, plan::Row::Send, std::to_string(from) + "SEND" + tail,
                                  plan::Seconds{sent}, plan::Seconds{sent + transfer}});
        ready = std::max(ready, sent + transfer);
      }
      if (ready > free_at[r])
        timeline.idle.push_back(
            {rank, done[r] == 0 ? plan::IdleCause::WarmUp : plan::IdleCause::Imbalance,
             plan::Seconds{free_at[r]}, plan::Seconds{ready}});
      const double end = ready + (work.backward ? 2 : 1) * ms * (rank == 2 ? slow : 1);
      timeline.spans.push_back(
          {rank, plan::Row::Compute,
           std::to_string(rank) + (work.backward ? "B" : "F") + std::to_string(work.microbatch),
           plan::Seconds{ready}, plan::Seconds{end}});
      free_at[r] = end;
      ended[{work.backward, rank, work.microbatch}] = end;
      ++done[r];
      moved = true;
    }
  }
  for (const plan::Span& span : timeline.spans)
    timeline.length = std::max(timeline.length, span.end);
  for (int rank = 0; rank < ranks; ++rank)
    if (const double free = free_at[static_cast<std::size_t>(rank)]; free < timeline.length.value)
      timeline.idle.push_back(
          {rank, plan::IdleCause::CoolDown, plan::Seconds{free}, timeline.length});
  std::stable_sort(timeline.spans.begin(), timeline.spans.end(),
                   [](const plan::Span& a, const plan::Span& b) {
                     return std::tuple(a.rank, a.start.value) < std::tuple(b.rank, b.start.value);
                   });
  std::stable_sort(timeline.idle.begin(), timeline.idle.end(),
                   [](const plan::IdleSpan& a, const plan::IdleSpan& b) {
                     return std::tuple(a.rank, a.start.value) < std::tuple(b.rank, b.start.value);
                   });
  return timeline;
}

}  // namespace pipewright::test
