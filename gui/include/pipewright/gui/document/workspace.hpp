#pragma once

// The state of the window: a document, the plan that is drafted from it, and the selection. It has
// no widgets; panels observe and query it.

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipewright/gui/document/background_search.hpp"
#include "pipewright/gui/document/document.hpp"
#include "pipewright/gui/document/job_rows.hpp"
#include "pipewright/gui/timeline/painted_table.hpp"
#include "pipewright/gui/timeline/picked.hpp"
#include "pipewright/loop/compare/residuals.hpp"
#include "pipewright/loop/predict/savings.hpp"
#include "pipewright/search/drafts/draft_history.hpp"
#include "pipewright/search/drafts/draft_search.hpp"
#include "pipewright/search/drafts/what_if.hpp"
#include "pipewright/sim/causes/why_idle.hpp"

namespace pipewright::gui {

class Workspace {
 public:
  enum class Change {
    Document,  // another one was opened, or it has grown
    Plan,      // the draft and its answer
    Tables,    // the tables that the timeline shows
    Pick,
    Job,  // the results for a job's stragglers, or the arrangement of its rows
  };
  /// Registers a function that is called after each change; they are called in the order of
  /// registration.
  void observe(std::function<void(Change)> observer) { observers_.push_back(std::move(observer)); }

  // ---- document

  void open(const std::filesystem::path& path);
  void take(Document document);
  const Document& document() const { return document_; }
  /// Opens a file to compare with: its timeline becomes the ghost. Throws InputError.
  void compare_with(const std::filesystem::path& path);

  // ---- plan

  /// Returns true if there is a scenario, so that What-if can change it.
  bool has_plan() const { return history_.has_value(); }
  const search::Draft& draft() const { return history_->now(); }
  const search::DraftHistory& history() const { return *history_; }
  /// Returns the draft's answer; null if it was rejected or there is no plan.
  const search::Answer* answer() const { return answer_ ? &*answer_ : nullptr; }
  /// Returns why there is no answer; empty if there is one.
  const search::Refusal& refusal() const { return refusal_; }
  /// Searches for a single change that makes the plan fit into memory. The search takes some time,
  /// so `found` is called later, and not at all if the draft changes or another search begins
  /// before that.
  void look_for_remedy(std::function<void(const std::optional<sim::Remedy>&)> found);
  /// The fastest plans for the draft's batch on the same number of devices, or the reason why no
  /// plan was found.
  struct PlansFound {
    std::vector<search::DraftPlan> plans{};
    std::size_t candidates = 0;
    std::string refusal{};
  };
  /// Calls `found` later, unless another document is opened or another search begins before that.
  void look_for_plans(BackgroundSearch<PlansFound>::Found found);
  bool is_looking_for_plans() const { return plan_search_.is_running(); }
  /// Makes this plan the draft; the step can be undone.
  void take_plan(const search::DraftPlan& plan);
  /// Returns the answer that the draft is compared with: the plan as opened, or as last kept.
  const search::Answer* baseline() const { return baseline_.get(); }
  /// Returns true if the draft differs from the baseline.
  bool changed() const { return has_plan() && !(draft() == baseline_draft_); }
  const search::Draft& baseline_draft() const { return baseline_draft_; }
  void keep_as_baseline();
  /// Resets the draft to the baseline; the step can be undone.
  void back_to_baseline();

  /// Changes the draft by an assignment such as "pipeline.ranks=4". Throws InputError without
  /// changing anything. A valid plan that cannot be answered leads to a refusal instead.
  void set(const std::string& assignment);
  void move_boundary(int boundary, int layer);
  /// Ends the dragging of a slider or a stage boundary.
  void settle();
  void undo();
  void redo();

  // ---- timeline

  enum class Shown {
    Run,   // the measured or opened timeline, and its prediction as the ghost
    Plan,  // the draft's prediction, and the baseline as the ghost once they differ
  };
  Shown shown() const { return shown_; }
  void show(Shown shown);
  const std::shared_ptr<PaintedTable>& front() const { return front_; }
  const std::shared_ptr<PaintedTable>& ghost() const { return ghost_; }
  /// Returns true if events are colored by their difference from the prediction.
  bool heat() const { return heat_; }
  void set_heat(bool heat);

  /// Returns the structure of the front table's Program; null if none is known.
  const sim::Structure* structure() const;
  /// Returns the times of its events; null if no structure is known or the table belongs to another
  /// one.
  const sim::Times* times() const;
  /// Converts between events of the Structure and of the table; -1 if there is no counterpart.
  std::int64_t table_event(int event) const;
  int structure_event(std::uint64_t table_event) const;

  // ---- trace of a whole job

  /// Returns null if the document is not the trace of a job.
  const trace::JobTrace* job() const { return document_.job.get(); }
  /// Returns the result of `explain`, which is computed after opening; null until then.
  const std::shared_ptr<const trace::StragglerReport>& stragglers() const { return stragglers_; }
  bool is_explaining() const { return job_search_.is_running(); }
  /// Returns why there is no result; empty if there is one, or will be.
  const std::string& job_refusal() const { return job_refusal_; }
  JobArrangement arrangement() const { return arrangement_; }
  void arrange(JobArrangement arrangement);

  // ---- selection

  const Picked& picked() const { return picked_; }
  void pick(Picked picked);
  /// Explains why a rank is idle at an instant; nothing if no Program is known.
  std::optional<sim::WhyIdle> why_idle(int rank, double time) const;
  /// Returns the comparison of the measured run with its prediction; nothing if one is missing.
  const std::optional<loop::Residuals>& residuals() const { return residuals_; }
  /// Returns the savings per millisecond; empty without a plan.
  const std::vector<loop::Saving>& savings() const;
  /// Returns the slack of each event of the answer's Structure, in seconds.
  const std::vector<double>& slack() const;

 private:
  void tell(Change change);
  void answer_draft();
  void explain_job();
  void show_draft();
  void show_tables();
  void match_events();
  void color();

  std::vector<std::function<void(Change)>> observers_;
  Document document_;
  std::optional<search::DraftHistory> history_;
  search::WhatIf what_if_;
  BackgroundSearch<std::optional<sim::Remedy>> remedy_search_;
  BackgroundSearch<PlansFound> plan_search_;
  struct Explained {
    std::shared_ptr<const trace::StragglerReport> report{};
    std::string refusal{};
  };
  BackgroundSearch<Explained> job_search_;
  std::shared_ptr<const trace::StragglerReport> stragglers_;
  std::string job_refusal_;
  JobArrangement arrangement_;
  std::optional<search::Answer> answer_;
  search::Refusal refusal_;
  std::shared_ptr<const search::Answer> baseline_;
  search::Draft baseline_draft_;
  std::optional<plan::EventTable> other_;  // to compare with

  Shown shown_ = Shown::Run;
  std::shared_ptr<PaintedTable> front_, ghost_;
  std::shared_ptr<PaintedTable> painted_baseline_;  // kept during dragging
  bool heat_ = false;
  std::vector<std::uint64_t> table_event_;  // by event of the structure
  std::vector<int> structure_event_;        // by event of the front table
  Picked picked_;
  std::optional<loop::Residuals> residuals_;
  mutable std::vector<loop::Saving> savings_;
  mutable std::vector<double> slack_;
  mutable bool saved_ = false;
};

/// Returns, for each event of `measured`, its difference from the action of the same rank and name
/// in `predicted` as a class of Theme::heat: 0 much faster … 7 much slower. Unmatched events count
/// as predicted.
std::vector<std::uint8_t> heat_classes(const plan::EventTable& measured,
                                       const plan::EventTable& predicted);

}  // namespace pipewright::gui
