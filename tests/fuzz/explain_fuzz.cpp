// Traces of a pipeline's ranks, separated by lines of ====, or an nsys export: explained times add
// up.

#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "pipewright/trace/explain/job_explanation.hpp"
#include "promise.hpp"
#include "reader.hpp"
#include "support/temp_folder.hpp"

namespace explain_fuzz {

using namespace pipewright;
using pipewright::fuzz::accepted;
using pipewright::fuzz::demand;

std::vector<std::string> parts_of(std::string_view text) {
  constexpr std::string_view border = "\n====\n";
  std::vector<std::string> parts;
  while (parts.size() < 8) {
    const auto end = text.find(border);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos)
      break;
    text.remove_prefix(end + border.size());
  }
  return parts;
}

void try_text(std::string_view text) {
  static const test::TempFolder folder;
  std::vector<std::filesystem::path> files;
  for (const std::string& part : parts_of(text))
    files.push_back(folder.write("rank" + std::to_string(files.size()) + ".json", part));
  std::vector<std::string> problems;
  const auto job = accepted([&] { return trace::explain_traces(files, {}, problems); });
  demand(problems.size() < 10'000, "the list of problems is bounded");
  if (!job)
    return;
  const trace::TraceExplanation* const own = &job->explanation;
  const double length = own->pipeline.timeline.length.value;
  demand(std::isfinite(length) && length >= 0, "an iteration has a length");
  demand(job->timeline.ranks >= static_cast<int>(files.size()), "each trace is a rank, or several");
  demand(job->timeline.length.value >= length, "no pipeline outlasts the job");
  for (const trace::TracedRankTimes& rank : own->ranks) {
    double sum = rank.busy_s;
    for (const plan::Seconds& idle : rank.idle) {
      demand(idle.value >= 0, "idle time is not negative");
      sum += idle.value;
    }
    demand(sum >= length * (1 - 1e-9), "all idle time of a rank has a cause");
  }
  for (const trace::Alternative& change : own->alternatives.all)
    demand(std::isfinite(change.iteration_s), "a simulated iteration has a length");
  demand(!to_json(*job).dump().empty(), "the report can be written");
}

const pipewright::fuzz::Reader reader("explain", try_text);

}  // namespace explain_fuzz
