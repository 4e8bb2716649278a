// Timelines as trace events: an accepted timeline can be summed, compared, drawn and written.

#include <string>
#include <string_view>

#include "json_text.hpp"
#include "pipewright/draw/svg.hpp"
#include "pipewright/draw/timeline.hpp"
#include "pipewright/loop/compare/action_errors.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/timeline/timeline.hpp"
#include "pipewright/plan/timeline/trace.hpp"
#include "reader.hpp"

namespace timeline_fuzz {

using namespace pipewright;
using namespace pipewright::plan;
using namespace pipewright::loop;
using pipewright::fuzz::accepted;
using pipewright::fuzz::demand;
using pipewright::fuzz::document_of;
using pipewright::fuzz::may_be_refused;

constexpr int most_to_draw = 100;  // ranks; the output has lines for each

void try_text(std::string_view text) {
  const auto timeline = accepted([&] { return timeline_from_trace(document_of(text)); });
  if (!timeline)
    return;
  const auto ranks = static_cast<std::size_t>(timeline->ranks);
  const StepFigures figures = figures_of(*timeline);
  demand(figures.busy.size() == ranks && figures.peak.size() == ranks, "figures for every rank");
  demand(longest_span(*timeline) >= Seconds{}, "time does not run backwards");
  if (timeline->ranks > most_to_draw)
    return;
  demand(timeline_from_trace(JsonDocument::parse(to_trace(*timeline), "again")) == *timeline,
         "reads back as written");
  demand(comparison_table(figures, figures) != "", "it can be compared");
  may_be_refused(
      [&] { demand(to_svg(draw::timeline_scene({*timeline}, "fuzz")) != "", "it can be drawn"); });
}

const pipewright::fuzz::Reader reader("timeline", try_text);

}  // namespace timeline_fuzz
