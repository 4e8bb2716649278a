#include "report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "pipewright/plan/json/json_document.hpp"

namespace pipewright::exec {

using plan::Json;

std::string to_text(const Heartbeat& beat) {
  Json waits = Json::array();
  for (const Wait& wait : beat.waits)
    waits.push_back({{"for", wait.ranks}, {"in", wait.where}});
  return Json{{"count", beat.count}, {"at", beat.at},  {"in_action", beat.in_action},
              {"moves", beat.moves}, {"waits", waits}, {"note", beat.note},
              {"left", beat.left}}
      .dump();
}

Heartbeat beat_from_text(const std::string& text) {
  const Json json = Json::parse(text);
  Heartbeat beat{.count = json.at("count"),
                 .at = json.at("at"),
                 .in_action = json.at("in_action"),
                 .moves = json.at("moves"),
                 .waits = {},
                 .note = json.at("note"),
                 .left = json.at("left")};
  for (const Json& wait : json.at("waits"))
    beat.waits.push_back({wait.at("for"), wait.at("in")});
  return beat;
}

std::string failure_report(int rank, const std::string& what, const std::vector<Heartbeat>& beats) {
  return fmt::format("rank {} {}; it was at {}{}", rank, what,
                     beats[static_cast<std::size_t>(rank)].at, who_waits_for(rank, beats));
}

std::string who_waits_for(int rank, const std::vector<Heartbeat>& beats) {
  std::string text;
  for (std::size_t other = 0; other < beats.size(); ++other)
    for (const Wait& wait : beats[other].waits)
      if (std::ranges::find(wait.ranks, rank) != wait.ranks.end())
        text += fmt::format("; rank {} waits in {} for it", other, wait.where);
  return text;
}

std::string ranks_text(const std::vector<int>& ranks) {
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "));
}

std::string in_seconds(std::chrono::milliseconds time) {
  return fmt::format("{} s", std::chrono::duration<double>(time).count());
}

}  // namespace pipewright::exec
