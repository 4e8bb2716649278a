#pragma once

// What a file or a folder was opened to. What could be read is here, and what could not is named.

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

/// The times of each event of a Structure, and which event of a table it is.
struct Ran {
  sim::Times times;
  std::vector<std::uint64_t> places;
};

struct Document {
  enum class Kind { Nothing, Scenario, Run, Timeline, Program };
  Kind kind = Kind::Nothing;
  std::filesystem::path path;
  std::string title;
  std::vector<std::string> problems;  // lines: file, place and reason
  std::vector<std::string> notes;     // what a reader should know, such as that costs are estimated

  /// A plan with these can be asked what would happen if.
  std::optional<plan::Scenario> scenario;
  std::optional<plan::LayerCosts> costs;

  std::optional<loop::StoredRun> run;
  /// The structure of the timelines' Program, where one is known.
  std::shared_ptr<const sim::Structure> structure;
  std::optional<plan::EventTable> predicted;
  std::optional<plan::EventTable> measured;  // or what else was opened
  /// The trace of a whole job, whose workers are the ranks of `measured`; null where it is none.
  std::shared_ptr<const trace::JobTrace> job;
  /// When the Program's instructions ran in `measured`; nothing where it is of another Program.
  std::optional<Ran> ran;
};

/// Never throws for what a file holds: what is wrong is in `problems`.
Document open_document(const std::filesystem::path& path);

}  // namespace pipewright::gui
