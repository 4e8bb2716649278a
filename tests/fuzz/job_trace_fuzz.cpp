// The trace of a whole job: the results of a replay are finite numbers.

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "pipewright/trace/straggler/straggler_report.hpp"
#include "promise.hpp"
#include "reader.hpp"
#include "support/temp_folder.hpp"

namespace job_trace_fuzz {

using namespace pipewright;
using pipewright::fuzz::accepted;
using pipewright::fuzz::demand;

void try_text(std::string_view text) {
  static const test::TempFolder folder;
  const auto file = folder.write("job.json", std::string(text));
  std::vector<std::string> problems;
  trace::is_job_trace(file);
  const auto report = accepted([&] { return trace::explain_stragglers(file, problems); });
  demand(problems.size() < 10'000, "the list of problems is bounded");
  if (!report)
    return;
  const auto& steps = report->steps;
  demand(!steps.numbers.empty(), "an explained job has a step");
  for (std::size_t step = 0; step < steps.numbers.size(); ++step) {
    const double measured = steps.measured[step];
    demand(std::isfinite(measured) && measured >= 0, "a step has a length");
    // The replay delays each operation to its recorded start; clock differences shift ends a
    // little.
    demand(std::isfinite(report->delays.explained_s[step]), "a step can be replayed");
  }
  demand(std::isfinite(report->metrics.slowdown.all), "a slowdown is a number");
  for (const trace::Remedy& own : report->remedies.all)
    demand(std::isfinite(own.step_s), "a simulated step has a length");
  const plan::EventTable table = trace::job_timeline(steps, report->metrics.workers);
  demand(table.size() > 0 && table.rank_names.size() == static_cast<std::size_t>(table.ranks),
         "each worker has a row");
  demand(!document_of(*report).dump().empty(), "the report can be written");
}

const pipewright::fuzz::Reader reader("job_trace", try_text);

}  // namespace job_trace_fuzz
