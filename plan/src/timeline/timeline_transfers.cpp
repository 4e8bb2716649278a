#include "pipewright/plan/timeline/timeline_transfers.hpp"

#include <algorithm>
#include <optional>
#include <unordered_map>

namespace pipewright::plan {
namespace {

using Places = std::unordered_map<std::string, std::vector<std::size_t>>;

Places places_of_receives(const std::vector<Span>& spans) {
  Places places;
  for (std::size_t i = 0; i < spans.size(); ++i)
    if (spans[i].row == Row::Receive)
      places[spans[i].action].push_back(i);
  return places;
}

/// Returns the name of the receive at the other end, or nothing if the span is not a send.
std::optional<std::string> receive_of(const Span& send) {
  if (send.row != Row::Send)
    return {};
  const auto instruction = parse_instruction(send.action);
  if (!instruction || !is_send(instruction->kind))
    return {};
  return to_string(counterpart(*instruction));
}

}  // namespace

std::vector<TransferEnds> transfers_of(const Timeline& timeline) {
  const Places receives = places_of_receives(timeline.spans);
  std::unordered_map<std::string, std::size_t> taken;
  std::vector<TransferEnds> transfers;
  for (std::size_t send = 0; send < timeline.spans.size(); ++send) {
    const auto wanted = receive_of(timeline.spans[send]);
    const auto found = wanted ? receives.find(*wanted) : receives.end();
    if (found == receives.end())
      continue;
    if (std::size_t& next = taken[*wanted]; next < found->second.size())
      transfers.push_back({send, found->second[next++]});
  }
  return transfers;
}

std::vector<TransferSplit> split_transfers(const Timeline& timeline) {
  std::vector<TransferSplit> splits;
  for (const auto& [send, receive] : transfers_of(timeline)) {
    const Span& taker = timeline.spans[receive];
    const Seconds began =
        std::clamp(timeline.spans[send].start, taker.start, std::max(taker.start, taker.end));
    splits.push_back(
        {taker.rank, taker.action, began - taker.start, std::max(taker.end - began, Seconds{})});
  }
  return splits;
}

}  // namespace pipewright::plan
