#include "hang/hang_words.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "pipewright/trace/hang/diagnosis.hpp"

namespace pipewright::trace {

std::string name_of(const FlightGroup& group) {
  return group.description.empty() || group.description == "undefined"
             ? group.name
             : fmt::format("{} ({})", group.name, group.description);
}

std::string in_words(const FlightOperation& operation, const std::string& group) {
  switch (operation.kind) {
    case FlightOperation::Kind::Send:
      return fmt::format("send to rank {}", operation.peer);
    case FlightOperation::Kind::Receive:
      return fmt::format("recv from rank {}", operation.peer);
    case FlightOperation::Kind::Collective:
      return fmt::format("{} {} of group {}", operation.name, operation.sequence, group);
  }
  return {};
}

const std::vector<std::string>& hang_kinds() {
  static const std::vector<std::string> words{
      "none", "unknown",    "order", "missing send", "missing receive", "extra", "late",
      "dead", "collective", "sizes", "types"};
  return words;
}
const std::string& to_string(HangKind kind) { return hang_kinds()[static_cast<std::size_t>(kind)]; }

plan::Json to_json(const HangDiagnosis& own) {
  const auto known = [](int value) { return value < 0 ? plan::Json() : plan::Json(value); };
  plan::Json json{{"kind", to_string(own.kind)}, {"rank", known(own.rank)},
                  {"ranks", own.ranks},          {"what", own.what},
                  {"operation", own.operation},  {"instruction", own.instruction},
                  {"stage", known(own.stage)},   {"microbatch", known(own.microbatch)},
                  {"step", known(own.step)},     {"place", own.place},
                  {"is_cycle", own.is_cycle},    {"waits", plan::Json::array()},
                  {"notes", own.notes}};
  for (const HangWait& wait : own.waits)
    json["waits"].push_back({{"rank", wait.rank},
                             {"at", wait.at},
                             {"waits_for", wait.waits_for},
                             {"because", wait.because}});
  return json;
}

std::string in_words(const HangDiagnosis& own) {
  std::string text = own.what + "\n\n";
  text += fmt::format("kind        {}\n", to_string(own.kind));
  if (own.ranks.size() > 1)
    text += fmt::format("ranks       {}\n", fmt::join(own.ranks, ", "));
  else if (own.rank >= 0)
    text += fmt::format("rank        {}\n", own.rank);
  if (!own.operation.empty())
    text += fmt::format("operation   {}\n", own.operation);
  if (!own.instruction.empty())
    text += fmt::format("schedule    {}: stage {}, microbatch {}{}\n", own.instruction, own.stage,
                        own.microbatch,
                        own.step < 0 ? "" : fmt::format(", step {} of the dumps", own.step));
  if (!own.place.empty())
    text += fmt::format("program     {}\n", own.place);
  if (!own.waits.empty())
    text += own.is_cycle ? "\nwaits, in a cycle:\n" : "\nwaits:\n";
  for (const HangWait& wait : own.waits)
    text += fmt::format("- rank {} at {} waits for rank {}, which {}\n", wait.rank, wait.at,
                        wait.waits_for, wait.because);
  if (!own.notes.empty())
    text += "\nnotes:\n";
  for (const std::string& note : own.notes)
    text += "- " + note + "\n";
  return text;
}

}  // namespace pipewright::trace
