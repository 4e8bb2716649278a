#pragma once

// What the window is about: a document, the plan that is drafted from it, what was pointed at. It
// has no widgets; panels observe it and ask it.

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
    Plan,      // the draft, and with it the answer
    Tables,    // what the timeline shows
    Pick,
    Job,  // the answers of a job's stragglers, or how its rows are arranged
  };
  /// Called after each change, in the order of observing.
  void observe(std::function<void(Change)> observer) { observers_.push_back(std::move(observer)); }

  // ---- the document

  void open(const std::filesystem::path& path);
  void take(Document document);
  const Document& document() const { return document_; }
  /// A file to hold beside what is shown: its timeline becomes the ghost. Throws InputError.
  void compare_with(const std::filesystem::path& path);

  // ---- the plan

  /// Whether there is a scenario, so that it can be asked what would happen if.
  bool has_plan() const { return history_.has_value(); }
  const search::Draft& draft() const { return history_->now(); }
  const search::DraftHistory& history() const { return *history_; }
  /// The draft's answer; null where it is refused or there is none.
  const search::Answer* answer() const { return answer_ ? &*answer_ : nullptr; }
  /// Why there is no answer; empty where there is one.
  const search::Refusal& refusal() const { return refusal_; }
  /// Looks for the single change with which the memory suffices. It takes some time, so `found` is
  /// called later, and never where the draft has changed until then or another search has begun.
  void look_for_remedy(std::function<void(const std::optional<sim::Remedy>&)> found);
  /// The fastest plans for the draft's batch on as many devices, or why there are none.
  struct PlansFound {
    std::vector<search::DraftPlan> plans{};
    std::size_t candidates = 0;
    std::string refusal{};
  };
  /// Calls `found` later, unless another document is opened or another search begins until then.
  void look_for_plans(BackgroundSearch<PlansFound>::Found found);
  bool is_looking_for_plans() const { return plan_search_.is_running(); }
  /// The draft becomes this plan: a step that can be undone.
  void take_plan(const search::DraftPlan& plan);
  /// What the answer is held against: the plan as it was opened, or was last kept.
  const search::Answer* baseline() const { return baseline_.get(); }
  /// Whether the draft is not the baseline's.
  bool changed() const { return has_plan() && !(draft() == baseline_draft_); }
  const search::Draft& baseline_draft() const { return baseline_draft_; }
  void keep_as_baseline();
  /// The draft is the baseline's again: a step that can be undone.
  void back_to_baseline();

  /// "pipeline.ranks=4". Throws InputError, and then nothing has happened. What only has no answer
  /// is a refusal.
  void set(const std::string& assignment);
  void move_boundary(int boundary, int layer);
  /// The hand has let go of a slider or a border.
  void settle();
  void undo();
  void redo();

  // ---- what the timeline shows

  enum class Shown {
    Run,   // what was measured, or opened, with its prediction behind
    Plan,  // the draft's prediction, with the baseline behind once they differ
  };
  Shown shown() const { return shown_; }
  void show(Shown shown);
  const std::shared_ptr<PaintedTable>& front() const { return front_; }
  const std::shared_ptr<PaintedTable>& ghost() const { return ghost_; }
  /// Whether events are coloured by how far they are from their prediction.
  bool heat() const { return heat_; }
  void set_heat(bool heat);

  /// The structure of the front table's Program; null where none is known.
  const sim::Structure* structure() const;
  /// When its events ran; null where no structure is known or the table is not of it.
  const sim::Times* times() const;
  /// The table's event of a Structure's event, and back; -1 where there is none.
  std::int64_t table_event(int event) const;
  int structure_event(std::uint64_t table_event) const;

  // ---- the trace of a whole job

  /// Null where what is open is none.
  const trace::JobTrace* job() const { return document_.job.get(); }
  /// What `explain` answers, a while after it was opened; null until then.
  const std::shared_ptr<const trace::StragglerReport>& stragglers() const { return stragglers_; }
  bool is_explaining() const { return job_search_.is_running(); }
  /// Why there is no answer; empty where there is one, or will be.
  const std::string& job_refusal() const { return job_refusal_; }
  JobArrangement arrangement() const { return arrangement_; }
  void arrange(JobArrangement arrangement);

  // ---- what was pointed at

  const Picked& picked() const { return picked_; }
  void pick(Picked picked);
  /// Why a rank is idle at an instant; nothing where no Program is known.
  std::optional<sim::WhyIdle> why_idle(int rank, double time) const;
  /// The measured run against its prediction; nothing where one is missing.
  const std::optional<loop::Residuals>& residuals() const { return residuals_; }
  /// What a millisecond less would save; empty without a plan.
  const std::vector<loop::Saving>& savings() const;
  /// The slack of each event of the answer's Structure, in seconds.
  const std::vector<double>& slack() const;

 private:
  void tell(Change change);
  void answer_draft();
  void explain_job();
  void show_draft();
  void show_tables();
  void match_events();
  void colour();

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
  std::shared_ptr<PaintedTable> painted_baseline_;  // kept while a hand drags
  bool heat_ = false;
  std::vector<std::uint64_t> table_event_;  // by event of the structure
  std::vector<int> structure_event_;        // by event of the front table
  Picked picked_;
  std::optional<loop::Residuals> residuals_;
  mutable std::vector<loop::Saving> savings_;
  mutable std::vector<double> slack_;
  mutable bool saved_ = false;
};

/// How far each event of `measured` is from the action of the same rank and name in `predicted`, as
/// a class of Theme::heat: 0 much quicker … 7 much slower; unmatched ones are as predicted.
std::vector<std::uint8_t> heat_classes(const plan::EventTable& measured,
                                       const plan::EventTable& predicted);

}  // namespace pipewright::gui
