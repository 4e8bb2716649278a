#include "pipewright/plan/timeline/timeline.hpp"

#include <algorithm>
#include <cassert>

namespace pipewright::plan {
namespace {

/// Returns what a span adds to the busy time of its rank. Transfers run concurrently with compute
/// and add nothing. A clock that stepped back must not reduce what other spans added.
Seconds busy_time(const Span& span) {
  if (span.row != Row::Compute)
    return {};
  return std::max(span.end - span.start, Seconds{});
}

/// Returns the time covered by at least one of the spans.
Seconds covered_by(std::vector<const Span*>& spans) {
  const auto before = [](const Span* a, const Span* b) { return a->start < b->start; };
  if (!std::is_sorted(spans.begin(), spans.end(), before))
    std::stable_sort(spans.begin(), spans.end(), before);
  Seconds covered;
  const Span* last = nullptr;  // of the spans so far, the one that ends last
  for (const Span* span : spans) {
    if (last == nullptr || span->start >= last->end)
      covered += busy_time(*span);
    else if (span->end > last->end)
      covered += span->end - last->end;
    if (last == nullptr || span->end > last->end)
      last = span;
  }
  return covered;
}

std::size_t index_of(int rank, const Timeline& timeline) {
  assert(rank >= 0 && rank < timeline.ranks);
  (void)timeline;  // used only by the assert
  return static_cast<std::size_t>(rank);
}

}  // namespace

Row row_of(InstructionKind kind) {
  if (is_send(kind))
    return Row::Send;
  if (is_collective(kind))
    return Row::Reduce;
  return is_receive(kind) ? Row::Receive : Row::Compute;
}

const char* word_of(Row row) {
  switch (row) {
    case Row::Compute:
      return "compute";
    case Row::Send:
      return "send";
    case Row::Receive:
      return "receive";
    case Row::Reduce:
      return "reduce";
  }
  return "";
}

std::string kind_of(std::string_view action) {
  constexpr std::string_view digits = "0123456789";
  const auto first = action.find_first_not_of(digits);
  if (first == std::string_view::npos)
    return "";
  return std::string(action.substr(first, action.find_last_not_of(digits) - first + 1));
}

const std::vector<std::string>& idle_causes() {
  static const std::vector<std::string> names{"warm-up", "cool-down", "imbalance", "transfer",
                                              "queue",   "exposed",   "launch",    "shards"};
  return names;
}

std::string to_string(IdleCause cause) { return idle_causes()[static_cast<std::size_t>(cause)]; }

std::vector<Seconds> busy_per_rank(const Timeline& timeline) {
  std::vector<std::vector<const Span*>> computing(static_cast<std::size_t>(timeline.ranks));
  for (const Span& span : timeline.spans)
    if (span.row == Row::Compute)
      computing[index_of(span.rank, timeline)].push_back(&span);
  std::vector<Seconds> busy;
  for (std::vector<const Span*>& spans : computing)
    busy.push_back(covered_by(spans));
  for (const Span& span : timeline.spans)
    busy[index_of(span.rank, timeline)] -= span.late;
  return busy;
}

std::vector<Seconds> shards_per_rank(const Timeline& timeline) {
  std::vector<Seconds> shards(static_cast<std::size_t>(timeline.ranks));
  for (const Span& span : timeline.spans)
    shards[index_of(span.rank, timeline)] += span.shards - span.late;
  return shards;
}

std::vector<Seconds> bubble_per_rank(const Timeline& timeline) {
  std::vector<Seconds> bubble = busy_per_rank(timeline);
  for (Seconds& rank : bubble)
    rank = timeline.length - rank;
  return bubble;
}

Seconds longest_span(const Timeline& timeline) {
  std::map<int, std::pair<Seconds, Seconds>> ends;  // rank → first start, last end
  for (const Span& span : timeline.spans) {
    if (!parse_action(span.action))
      continue;
    auto& [first, last] = ends.try_emplace(span.rank, span.start, span.end).first->second;
    first = std::min(first, span.start);
    last = std::max(last, span.end);
  }
  Seconds longest;
  for (const auto& [rank, end] : ends)
    longest = std::max(longest, end.second - end.first);
  return longest;
}

std::vector<Bytes> peak_per_rank(const Timeline& timeline) {
  std::vector<Bytes> peak(static_cast<std::size_t>(timeline.ranks));
  for (const MemorySample& sample : timeline.memory) {
    Bytes& most = peak[index_of(sample.rank, timeline)];
    most = std::max(most, sample.held);
  }
  return peak;
}

std::vector<IdleByCause> idle_by_cause(const Timeline& timeline) {
  std::vector<IdleByCause> idle(static_cast<std::size_t>(timeline.ranks));
  for (const IdleSpan& span : timeline.idle)
    idle[index_of(span.rank, timeline)][static_cast<std::size_t>(span.cause)] +=
        span.end - span.start;
  return idle;
}

IdleByCause sum(const std::vector<IdleByCause>& ranks) {
  IdleByCause all{};
  for (const IdleByCause& rank : ranks)
    for (std::size_t cause = 0; cause < all.size(); ++cause)
      all[cause] += rank[cause];
  return all;
}

std::map<std::string, Seconds> busy_per_kind(const Timeline& timeline) {
  std::map<std::string, Seconds> busy;
  for (const Span& span : timeline.spans)
    if (span.row == Row::Compute)
      busy[kind_of(span.action)] += busy_time(span);
  return busy;
}

}  // namespace pipewright::plan
