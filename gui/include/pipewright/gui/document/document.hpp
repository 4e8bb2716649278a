#pragma once

// The content of an opened file or folder. It holds everything that could be read, and lists what
// could not.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipewright/loop/record/run_directory.hpp"
#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/plan/scenario/scenario.hpp"
#include "pipewright/plan/timeline/event_table.hpp"
#include "pipewright/sim/structure/structure.hpp"
#include "pipewright/sim/structure/times.hpp"
#include "pipewright/trace/straggler/job_trace.hpp"

namespace pipewright::gui {

/// The times of each event of a Structure, and the index of the corresponding event in a table.
struct EventTimes {
  sim::Times times;
  std::vector<std::uint64_t> places;
};

struct Document {
  enum class Kind { Nothing, Scenario, Run, Timeline, Program };
  Kind kind = Kind::Nothing;
  std::filesystem::path path;
  std::string title;
  std::vector<std::string> problems;  // lines with file, position and reason
  std::vector<std::string> notes;     // facts that a reader should know, such as that costs are
                                      // estimated

  /// A plan that has these two can be changed in What-if.
  std::optional<plan::Scenario> scenario;
  std::optional<plan::LayerCosts> costs;

  std::optional<loop::StoredRun> run;
  /// The structure of the timelines' Program, if one is known.
  std::shared_ptr<const sim::Structure> structure;
  std::optional<plan::EventTable> predicted;
  std::optional<plan::EventTable> measured;  // or another timeline that was opened
  /// The trace of a whole job, whose workers are the ranks of `measured`; otherwise null.
  std::shared_ptr<const trace::JobTrace> job;
  /// The times of the Program's instructions in `measured`; empty if it belongs to another Program.
  std::optional<EventTimes> ran;
};

/// Opens a file or folder. Never throws because of a file's content: errors are listed in
/// `problems`.
Document open_document(const std::filesystem::path& path);

}  // namespace pipewright::gui
