#pragma once

// What would happen if: a plan as somebody is drafting it, and everything that can be said of it at
// once. Made to be asked again and again, while a boundary is dragged or a slider moved.

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
  /// Nothing: they are estimated from the model (estimated_costs.hpp), anew for every change. They
  /// are for one microbatch size; for others, times and activations are scaled linearly.
  std::optional<plan::LayerCosts> costs{};
  friend bool operator==(const Draft&, const Draft&) = default;
};

/// The draft with one field set to something else, "pipeline.ranks=4", as `--set` does it;
/// link.bandwidth and link.latency mean both links. Boundaries that somebody chose and speeds by
/// rank are for a number of stages and ranks: where that changes, layers are balanced by time again
/// and ranks are equally fast again. Throws InputError.
Draft changed(const Draft& draft, const std::string& assignment);

/// The draft with the border in front of stage `boundary` (1 is the first that can move) at another
/// layer. `boundaries` are those of its plan, which it keeps from then on. Throws InputError when a
/// stage would be left without a layer.
Draft with_boundary(const Draft& draft, const std::vector<int>& boundaries, int boundary,
                    int layer);

/// The draft's costs for its microbatch size; `notes` is told what was scaled or estimated.
plan::LayerCosts costs_of(const Draft& draft, std::vector<std::string>* notes = nullptr);

/// What two answers are held against each other by.
struct Figures {
  double iteration_s = 0;
  double units_per_s = 0;
  std::string unit;                                     // "tokens", "images"
  double bubble_s = 0;                                  // idle time of a rank, on average
  std::array<double, plan::idle_cause_count> idle_s{};  // the same by cause
  plan::Bytes peak;                                     // of the rank that holds most
};

/// The iteration of a draft.
struct Answer {
  plan::LayerCosts costs;  // for the draft's microbatch size
  sim::ScenarioPlan plan;
  sim::Times times;
  sim::IdleTime idle;
  std::vector<double> bubble_s;  // by rank: the iteration less compute
  sim::MemoryCurves memory;
  std::vector<models::DeviceMemory> devices;  // by rank: the memory that its device needs
  plan::Bytes cap;                            // of each rank; 0: none
  std::optional<sim::OverCap> over{};         // the rank that is furthest above the cap
  std::vector<int> critical;                  // events, in order of time
  sim::Throughput throughput;
  std::string bound;  // why the answer is a lower bound; empty: it is exact by the rules
  std::vector<std::string> notes;  // what was taken for granted, in sentences
  plan::EventTable table;
  std::vector<std::uint64_t> places;  // of the Structure's events in the table
  Figures figures;
};

/// Why there is no answer.
struct Refusal {
  std::string text;
  bool for_memory = false;  // `remedy` may then know a way out
};

/// Keeps what drafts have in common, so that the next answer is quick. For one thread.
class WhatIf {
 public:
  /// Plans of more events than that, over all pipelines, are answered as if each transfer had its
  /// link alone, so that the hand that drags need not wait; their answer then says that it is a
  /// lower bound. The default takes some 30 ms.
  explicit WhatIf(int most_shared_events = 200'000);
  ~WhatIf();
  WhatIf(const WhatIf&) = delete;
  WhatIf& operator=(const WhatIf&) = delete;

  /// A plan that needs more memory than there is has an answer, which says so (`over`), unless
  /// what stands throughout is too much already.
  std::variant<Answer, Refusal> answer(const Draft& draft);

  /// The quickest single change of the scenario with which the memory suffices, such as
  /// "training.recompute=selective"; nothing when none that is tried does. It plans every one of
  /// them, which takes as many answers; once it is stopped, what it gives means nothing.
  std::optional<sim::Remedy> remedy(const Draft& draft, const std::stop_token& stop = {});

  /// What a change would need and take; nothing when it cannot be planned.
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
  std::vector<std::unique_ptr<Evaluator>> evaluators_;  // the one used last is the last
};

/// What a change has made of it: after less before.
struct Difference {
  double iteration_s = 0;
  double units_per_s = 0;
  double bubble_s = 0;
  std::array<double, plan::idle_cause_count> idle_s{};
  plan::Bytes peak;
  /// Each figure that differs: "iteration -1.204 ms (-3.1 %)",
  /// "bubble -0.900 ms (warm-up -1.100 ms, transfer +0.200 ms)", "peak +2.000 MB".
  std::vector<std::string> parts;
  std::string text;  // all of them; "no difference" where there is none
};
Difference difference(const Figures& before, const Figures& after);

}  // namespace pipewright::search
