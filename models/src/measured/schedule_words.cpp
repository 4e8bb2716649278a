#include "schedule_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>

#include "pipewright/models/transformer/cut_schedule.hpp"
#include "pipewright/plan/bare_name.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/generators/schedule_request.hpp"

namespace pipewright::models {
namespace {

/// Beside the names that schedules have here.
const std::map<std::string, std::string>& other_names() {
  static const std::map<std::string, std::string> names{{"fthenb", "gpipe"},
                                                        {"afab", "gpipe"},
                                                        {"dapple", "1f1b"},
                                                        {"pipedreamflush", "1f1b"},
                                                        {"noninterleaved", "1f1b"},
                                                        {"1f1bi", "interleaved-1f1b"},
                                                        {"1f1binterleaved", "interleaved-1f1b"},
                                                        {"interleaved", "interleaved-1f1b"},
                                                        {"vpp", "interleaved-1f1b"},
                                                        {"interleavedzerobubble", "interleaved-zb"},
                                                        {"breadthfirst", "looped-bfs"},
                                                        {"bfs", "looped-bfs"},
                                                        {"zerobubbleh1", "zb-h1"},
                                                        {"zb1p", "zb-h1"},
                                                        {"zb2p", std::string(searched_schedule)},
                                                        {"zerobubbleh2", "zb-h2"},
                                                        {"zerobubblev", "zbv"},
                                                        {"zbvzerobubble", "zbv"},
                                                        {"zbvhalf", "v-half"},
                                                        {"zbvmin", "v-min"}};
  return names;
}

/// What is known by name and cannot be predicted, and why.
const std::map<std::string, std::string>& refused_names() {
  static const std::string no_flush = "it has no flush, so that no iteration ends",
                           slices = "it cuts sequences into slices, which are not timed here";
  static const std::map<std::string, std::string> names{
      {"pipedream", no_flush},
      {"pipedream2bw", no_flush},
      {"seq1f1b", slices},
      {"seq1f1bi", slices},
      {"terapipe", slices},
      {"gems", "it has no generator here"},
      {"inference", "it trains nothing"},
      {"deepspeedtrain",
       "it names a stream of instructions, and no order of passes: 1F1B has that one"},
      {"deepspeedinference", "it trains nothing"},
      {"dataparallel", "it has no pipeline"}};
  return names;
}

std::optional<std::string> schedule_called(std::string word) {
  for (const std::string_view before : {"schedule", ""}) {
    if (!word.starts_with(before))
      continue;
    const std::string rest = word.substr(before.size());
    if (const auto other = other_names().find(rest); other != other_names().end())
      return other->second;
    for (const std::string& name : plan::schedule_names())
      if (plan::bare_name(name) == rest)
        return name;
  }
  return {};
}

/// Takes "v=3" or "vp=3" out of the text; 0: it is not there.
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

/// "1f1br" or "1f1bwithrecompute" without its end; whether there was one.
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
  if (const auto refused = refused_names().find(word); refused != refused_names().end())
    throw plan::InputError(fmt::format("\"{}\" is not predicted: {}", text, refused->second));
  auto found = schedule_called(word);
  if (!found) {
    answer.recomputes = take_recompute(word);
    found = schedule_called(word);
  }
  if (!found)
    throw plan::InputError(
        fmt::format("\"{}\" is no schedule that is known; 1F1B-I, ZB-1p, ZB-2p and {} are", text,
                    plan::listed(plan::schedule_names())));
  answer.schedule = *found;
  return answer;
}

}  // namespace pipewright::models
