#include "schedule_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>

#include "pipewright/models/transformer/cut_schedule.hpp"
#include "pipewright/plan/bare_name.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/generators/schedule_catalog.hpp"

namespace pipewright::models {
namespace {

/// Schedules of papers that are not in the catalog, and why they are not predicted.
const std::map<std::string, std::string>& refused_names() {
  static const std::string slices = "it cuts sequences into slices, which are not timed here";
  static const std::map<std::string, std::string> names{{"seq1f1b", slices},
                                                        {"seq1f1bi", slices},
                                                        {"terapipe", slices},
                                                        {"gems", "it has no generator here"}};
  return names;
}

/// Returns the reason why a run of the schedule is not predicted; empty if it is.
std::string refusal_of(const plan::ScheduleDescriptor& schedule) {
  if (schedule.is_forward_only)
    return "it trains nothing";
  if (schedule.is_data_parallel)
    return "it has no pipeline";
  if (schedule.step_every)
    return "it has no flush, so that no iteration ends";
  if (schedule.is_instruction_stream)
    return "it names a stream of instructions, and no order of passes: 1F1B has that one";
  return {};
}

bool is_called(const plan::ScheduleDescriptor& schedule, const std::string& word) {
  const auto is_word = [&](const std::string& name) { return plan::bare_name(name) == word; };
  return is_word(schedule.name) || is_word(schedule.torch_class) ||
         std::ranges::any_of(schedule.aliases, is_word);
}

std::optional<std::string> schedule_called(std::string word) {
  for (const std::string_view before : {"schedule", ""}) {
    if (!word.starts_with(before))
      continue;
    const std::string rest = word.substr(before.size());
    if (rest.empty())
      continue;
    for (const plan::ScheduleDescriptor& schedule : plan::schedules()) {
      if (is_called(schedule, rest))
        return schedule.name;
      for (const plan::NamedLimit& limit : schedule.named_limits)
        if (plan::bare_name(limit.name) == rest)
          return limit.name;
    }
  }
  return {};
}

/// Removes "v=3" or "vp=3" from the text and returns the number; 0 if it is not there.
int take_chunks(std::string& text) {
  for (const std::string_view key : {"vp=", "v=", "VP=", "V="}) {
    const auto at = text.find(key);
    if (at == std::string::npos)
      continue;
    auto end = at + key.size();
    int chunks = 0;
    while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])) != 0 &&
           chunks < 1000)
      chunks = 10 * chunks + (text[end++] - '0');
    text.erase(at, end - at);
    return chunks;
  }
  return 0;
}

/// Removes the ending of "1f1br" or "1f1bwithrecompute". Returns true if there was one.
bool take_recompute(std::string& word) {
  for (const std::string_view end : {"withrecomputation", "withrecompute", "recompute", "r"})
    if (word.ends_with(end) && schedule_called(word.substr(0, word.size() - end.size()))) {
      word.resize(word.size() - end.size());
      return true;
    }
  return false;
}

}  // namespace

ScheduleWord schedule_word(const std::string& text) {
  std::string rest = text;
  ScheduleWord answer;
  answer.chunks = take_chunks(rest);
  std::string word = plan::bare_name(rest);
  if (word.empty() || word == "none" || word == "na")
    return answer;
  const auto refuse = [&](const std::string& reason) {
    throw plan::InputError(fmt::format("\"{}\" is not predicted: {}", text, reason));
  };
  if (const auto refused = refused_names().find(word); refused != refused_names().end())
    refuse(refused->second);
  auto found = schedule_called(word);
  if (!found) {
    answer.recomputes = take_recompute(word);
    found = schedule_called(word);
  }
  if (!found)
    throw plan::InputError(
        fmt::format("\"{}\" is not a known schedule; known are 1F1B-I, ZB-1p, ZB-2p and {}", text,
                    plan::listed(plan::schedule_names())));
  if (const std::string reason = refusal_of(cut_schedule(*found)); !reason.empty())
    refuse(reason);
  answer.schedule = *found;
  return answer;
}

}  // namespace pipewright::models
