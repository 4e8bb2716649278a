#pragma once

// What-if analysis: the complete prediction of a drafted plan. It is fast enough to be repeated
// while a boundary is dragged or a slider moved.

#include <array>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <variant>
#include <vector>

#include "pipewright/models/allocator/device_memory.hpp"
#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/plan/scenario/scenario.hpp"
#include "pipewright/plan/timeline/event_table.hpp"
#include "pipewright/sim/causes/idle.hpp"
#include "pipewright/sim/memory/memory.hpp"
#include "pipewright/sim/memory/memory_cap.hpp"
#include "pipewright/sim/scenario/scenario_plan.hpp"
#include "pipewright/sim/structure/times.hpp"

namespace pipewright::search {

struct Draft {
  plan::Scenario scenario;
  /// Measured costs. Without them, costs are estimated from the model (estimated_costs.hpp) again
  /// for every change. They are for one microbatch size; for others, times and activations are
  /// scaled linearly.
  std::optional<plan::LayerCosts> costs{};
  friend bool operator==(const Draft&, const Draft&) = default;
};

/// Returns the draft with one field changed, "pipeline.ranks=4", as `--set` does it; link.bandwidth
/// and link.latency mean both links. Explicit boundaries and speeds by rank belong to a number of
/// stages and ranks: if that changes, layers are balanced by time again and ranks are equally fast
/// again. Throws InputError.
Draft changed(const Draft& draft, const std::string& assignment);

/// Returns the draft with the boundary before stage `boundary` (1 is the first that can move) at
/// another layer. `boundaries` are those of its plan, which the draft keeps from then on. Throws
/// InputError if a stage would have no layer.
Draft with_boundary(const Draft& draft, const std::vector<int>& boundaries, int boundary,
                    int layer);

/// Returns the draft's costs for its microbatch size, and appends to `notes` what was scaled or
/// estimated.
plan::LayerCosts costs_of(const Draft& draft, std::vector<std::string>* notes = nullptr);

/// The figures by which two answers are compared.
struct Figures {
  double iteration_s = 0;
  double units_per_s = 0;
  std::string unit;                                     // "tokens", "images"
  double bubble_s = 0;                                  // mean idle time of a rank
  std::array<double, plan::idle_cause_count> idle_s{};  // the same by cause
  plan::Bytes peak;                                     // of the rank that holds most
};

/// The prediction of a draft's iteration.
struct Answer {
  plan::LayerCosts costs;  // for the draft's microbatch size
  sim::ScenarioPlan plan;
  sim::Times times;
  sim::IdleTime idle;
  std::vector<double> bubble_s;  // by rank: the iteration minus compute
  sim::MemoryCurves memory;
  std::vector<models::DeviceMemory> devices;  // by rank: the memory that its device needs
  plan::Bytes cap;                            // of each rank; 0: none
  std::optional<sim::MemoryExcess> over{};    // the rank that exceeds the cap by most
  std::vector<int> critical;                  // events, in order of time
  sim::Throughput throughput;
  std::string bound;  // why the answer is a lower bound; empty: it is exact by the rules
  std::vector<std::string> notes;  // assumptions, in sentences
  plan::EventTable table;
  std::vector<std::uint64_t> places;  // positions of the Structure's events in the table
  Figures figures;
};

/// The reason why there is no answer.
struct Refusal {
  std::string text;
  bool for_memory = false;  // `remedy` may then find a change that fits
};

/// Computes answers. It keeps what drafts have in common, so that the next answer is fast. For one
/// thread.
class WhatIf {
 public:
  /// Plans with more events than `most_shared_events`, over all pipelines, are answered as if each
  /// transfer had its link to itself, to keep dragging responsive; the answer then says that it is
  /// a lower bound. The default takes about 30 ms.
  explicit WhatIf(int most_shared_events = 200'000);
  ~WhatIf();
  WhatIf(const WhatIf&) = delete;
  WhatIf& operator=(const WhatIf&) = delete;

  /// Predicts the draft. A plan that needs too much memory still has an answer, which says so
  /// (`over`), unless its standing memory alone is too large.
  std::variant<Answer, Refusal> answer(const Draft& draft);

  /// Returns the fastest single change of the scenario with which the memory suffices, such as
  /// "training.recompute=selective"; nothing if none that is tried does. It plans every change, so
  /// it takes as long as that many answers. After `stop` its result means nothing.
  std::optional<sim::Remedy> remedy(const Draft& draft, const std::stop_token& stop = {});

  /// Returns the memory and time of the changed draft; nothing if it cannot be planned.
  std::optional<sim::Need> need_of(const Draft& draft, const std::string& assignment);

 private:
  struct Evaluator;
  Evaluator& evaluator_for(const std::shared_ptr<const sim::Structure>& structure);
  bool is_for_memory(const Draft& draft);
  Answer simulated(const plan::Scenario& scenario, const plan::LayerCosts& costs,
                   sim::ScenarioPlan plan);

  bool shares_links(const sim::ScenarioPlan& plan) const;
  const sim::Times& times_of(Evaluator& evaluator, const sim::ScenarioPlan& plan) const;

  const int most_shared_events_;
  sim::StructureCache structures_;
  std::vector<std::unique_ptr<Evaluator>> evaluators_;  // ordered by last use
};

/// The effect of a change: after minus before.
struct Difference {
  double iteration_s = 0;
  double units_per_s = 0;
  double bubble_s = 0;
  std::array<double, plan::idle_cause_count> idle_s{};
  plan::Bytes peak;
  /// Each figure that differs: "iteration -1.204 ms (-3.1 %)",
  /// "bubble -0.900 ms (warm-up -1.100 ms, transfer +0.200 ms)", "peak +2.000 MB".
  std::vector<std::string> parts;
  std::string text;  // all parts; "no difference" if there is none
};
Difference difference(const Figures& before, const Figures& after);

}  // namespace pipewright::search
