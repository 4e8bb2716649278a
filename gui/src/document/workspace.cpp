#include "pipewright/gui/document/workspace.hpp"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "pipewright/plan/error.hpp"
#include "pipewright/sim/causes/critical_path.hpp"

namespace pipewright::gui {
namespace {

constexpr int most_plans = 20;
/// Limits between the classes of Theme::heat, as measured divided by predicted time.
constexpr std::array<double, class_count - 1> heat_borders{0.75, 0.87, 0.95, 1.0, 1.05, 1.15, 1.33};

/// Events of one rank and name, in order of time.
using Named = std::unordered_map<std::string_view, std::vector<std::uint64_t>>;

std::vector<Named> by_rank_and_name(const plan::EventTable& table) {
  std::vector<Named> found(static_cast<std::size_t>(table.ranks));
  for (const plan::EventTrack& track : table.tracks)
    for (std::uint64_t event = track.begin; event < track.end; ++event)
      found[static_cast<std::size_t>(track.rank)][table.name_at(event)].push_back(event);
  for (Named& rank : found)
    for (auto& [name, events] : rank)
      std::sort(events.begin(), events.end(),
                [&](std::uint64_t a, std::uint64_t b) { return table.start[a] < table.start[b]; });
  return found;
}

}  // namespace

std::vector<std::uint8_t> heat_classes(const plan::EventTable& measured,
                                       const plan::EventTable& predicted) {
  constexpr std::uint8_t as_predicted = class_count / 2;
  std::vector<std::uint8_t> classes(measured.size(), as_predicted);
  const auto of_predicted = by_rank_and_name(predicted);
  const auto of_measured = by_rank_and_name(measured);
  for (std::size_t rank = 0; rank < std::min(of_measured.size(), of_predicted.size()); ++rank)
    for (const auto& [name, events] : of_measured[rank]) {
      const auto found = of_predicted[rank].find(name);
      if (found == of_predicted[rank].end())
        continue;
      for (std::size_t i = 0; i < std::min(events.size(), found->second.size()); ++i) {
        const std::uint64_t there = found->second[i];
        const double expected = predicted.end[there] - predicted.start[there];
        const double took = measured.end[events[i]] - measured.start[events[i]];
        if (expected > 0)
          classes[events[i]] = static_cast<std::uint8_t>(
              std::upper_bound(heat_borders.begin(), heat_borders.end(), took / expected) -
              heat_borders.begin());
      }
    }
  return classes;
}

void Workspace::tell(Change change) {
  for (const auto& observer : observers_)
    observer(change);
}

void Workspace::open(const std::filesystem::path& path) { take(open_document(path)); }

void Workspace::take(Document document) {
  document_ = std::move(document);
  remedy_search_.stop();
  plan_search_.stop();
  job_search_.stop();
  stragglers_.reset();
  job_refusal_.clear();
  history_.reset();
  answer_.reset();
  baseline_.reset();
  painted_baseline_.reset();
  refusal_ = {};
  other_.reset();
  residuals_.reset();
  picked_ = {};
  if (document_.scenario) {
    history_.emplace(search::Draft{*document_.scenario, document_.costs});
    baseline_draft_ = draft();
    answer_draft();
    if (answer_)
      baseline_ = std::make_shared<search::Answer>(*answer_);
  }
  if (document_.ran && document_.predicted) {
    try {
      residuals_ = loop::residuals_of(*document_.structure, plan::timeline_of(*document_.predicted),
                                      plan::timeline_of(*document_.measured));
    } catch (const std::exception& error) {
      document_.problems.push_back(error.what());
    }
  }
  shown_ = document_.measured || document_.predicted ? Shown::Run : Shown::Plan;
  tell(Change::Document);
  tell(Change::Plan);
  show_tables();
  if (document_.job)
    explain_job();
}

/// The rows appear at once, by rank; the slow workers are known later.
void Workspace::explain_job() {
  job_search_.start(
      [trace = document_.job](const std::stop_token&) -> Explained {
        try {
          return {std::make_shared<trace::StragglerReport>(trace::explain_stragglers(*trace)), {}};
        } catch (const std::bad_alloc&) {
          throw;
        } catch (const std::exception& error) {
          return {.refusal = error.what()};
        }
      },
      [this](const std::optional<Explained>& found) {
        stragglers_ = found ? found->report : nullptr;
        job_refusal_ = found ? found->refusal : "there is too little memory to explain it";
        tell(Change::Job);
      });
  tell(Change::Job);
}

void Workspace::arrange(JobArrangement arrangement) {
  arrangement_ = arrangement;
  if (document_.job)
    tell(Change::Job);
}

void Workspace::compare_with(const std::filesystem::path& path) {
  Document other = open_document(path);
  if (other.measured)
    other_ = other.measured;
  else if (other.predicted)
    other_ = other.predicted;
  else if (other.scenario) {
    auto answer = what_if_.answer({*other.scenario, other.costs});
    if (const auto* refused = std::get_if<search::Refusal>(&answer))
      throw plan::InputError(path.string() + ": " + refused->text);
    other_ = std::get<search::Answer>(answer).table;
  } else {
    throw plan::InputError(other.problems.empty()
                               ? path.string() + ": has no timeline to compare with"
                               : other.problems.front());
  }
  other_->name = other.title;
  show_tables();
}

void Workspace::answer_draft() {
  saved_ = false;
  remedy_search_.stop();
  auto answer = what_if_.answer(draft());
  if (auto* refused = std::get_if<search::Refusal>(&answer)) {
    refusal_ = std::move(*refused);
    answer_.reset();
  } else {
    refusal_ = {};
    answer_ = std::move(std::get<search::Answer>(answer));
  }
}

void Workspace::show_draft() {
  answer_draft();
  shown_ = Shown::Plan;
  tell(Change::Plan);
  show_tables();
}

void Workspace::look_for_remedy(std::function<void(const std::optional<sim::Remedy>&)> found) {
  if (!has_plan())
    return;
  remedy_search_.start(
      [draft = draft()](const std::stop_token& stop) {
        return search::WhatIf().remedy(draft, stop);
      },
      [found = std::move(found)](const std::optional<std::optional<sim::Remedy>>& remedy) {
        found(remedy.value_or(std::nullopt));
      });
}

void Workspace::look_for_plans(BackgroundSearch<PlansFound>::Found found) {
  if (!has_plan())
    return;
  plan_search_.start(
      [draft = draft()](const std::stop_token& stop) -> PlansFound {
        try {
          search::DraftAnswer answer = search::search_drafts(
              draft, {}, {.most_plans = most_plans, .progress = [&](auto, auto, auto*) {
                            return !stop.stop_requested();
                          }});
          const char* const none = answer.plans.empty() ? "no plan fits the devices' memory" : "";
          return {std::move(answer.plans), answer.candidates, none};
        } catch (const plan::InputError& error) {
          return {.plans = {}, .refusal = error.what()};
        } catch (const plan::Infeasible& error) {
          return {.plans = {}, .refusal = error.what()};
        }
      },
      std::move(found));
}

void Workspace::take_plan(const search::DraftPlan& plan) {
  if (!has_plan())
    return;
  history_->replace(plan.draft, "plan: " + words_of(plan));
  history_->settle();
  show_draft();
}

void Workspace::keep_as_baseline() {
  if (!answer_)
    return;
  baseline_ = std::make_shared<search::Answer>(*answer_);
  painted_baseline_.reset();
  baseline_draft_ = draft();
  tell(Change::Plan);
  show_tables();
}

void Workspace::back_to_baseline() {
  if (!changed())
    return;
  history_->replace(baseline_draft_, "back to the baseline");
  history_->settle();
  show_draft();
}

void Workspace::set(const std::string& assignment) {
  if (!has_plan())
    return;
  history_->set(assignment);
  show_draft();
}

void Workspace::move_boundary(int boundary, int layer) {
  if (!has_plan())
    return;
  // A rejected plan has stage boundaries, too, if they were chosen by hand.
  const auto* chosen = std::get_if<std::vector<int>>(&draft().scenario.pipeline.partition);
  if (!answer_ && chosen == nullptr)
    return;
  const std::vector<int> boundaries = answer_ ? answer_->plan.partition.boundaries : *chosen;
  history_->move_boundary(boundaries, boundary, layer);
  show_draft();
}

void Workspace::settle() {
  if (has_plan())
    history_->settle();
}

void Workspace::undo() {
  if (!has_plan() || !history_->can_undo())
    return;
  history_->undo();
  show_draft();
}

void Workspace::redo() {
  if (!has_plan() || !history_->can_redo())
    return;
  history_->redo();
  show_draft();
}

void Workspace::show(Shown shown) {
  shown_ = shown;
  show_tables();
}

void Workspace::set_heat(bool heat) {
  heat_ = heat;
  color();
  tell(Change::Tables);
}

void Workspace::show_tables() {
  const auto painted = [](const plan::EventTable& table) {
    return std::make_shared<PaintedTable>(table);
  };
  front_.reset();
  ghost_.reset();
  if (shown_ == Shown::Run) {
    if (document_.measured)
      front_ = painted(*document_.measured);
    if (document_.predicted)
      (front_ ? ghost_ : front_) = painted(*document_.predicted);
  } else if (answer_) {
    front_ = painted(answer_->table);
    if (changed() && baseline_) {
      if (!painted_baseline_)
        painted_baseline_ = painted(baseline_->table);
      ghost_ = painted_baseline_;
    }
  }
  if (other_)
    ghost_ = painted(*other_);
  picked_ = {};
  match_events();
  color();
  tell(Change::Tables);
  tell(Change::Pick);
}

void Workspace::color() {
  if (!front_)
    return;
  if (heat_ && ghost_)
    front_->set_classes(heat_classes(front_->table(), ghost_->table()));
  else
    front_->set_kinds();
}

const sim::Structure* Workspace::structure() const {
  if (shown_ == Shown::Plan)
    return answer_ ? answer_->plan.structure.get() : nullptr;
  return document_.structure.get();
}

const sim::Times* Workspace::times() const {
  if (shown_ == Shown::Plan)
    return answer_ ? &answer_->times : nullptr;
  return document_.ran ? &document_.ran->times : nullptr;
}

void Workspace::match_events() {
  table_event_.clear();
  structure_event_.clear();
  if (structure() == nullptr || times() == nullptr || !front_)
    return;
  table_event_ = shown_ == Shown::Plan ? answer_->places : document_.ran->places;
  structure_event_.assign(front_->table().size(), -1);
  for (std::size_t event = 0; event < table_event_.size(); ++event)
    structure_event_[table_event_[event]] = static_cast<int>(event);
}

std::int64_t Workspace::table_event(int event) const {
  const auto at = static_cast<std::size_t>(event);
  return at < table_event_.size() ? static_cast<std::int64_t>(table_event_[at]) : -1;
}

int Workspace::structure_event(std::uint64_t event) const {
  return event < structure_event_.size() ? structure_event_[event] : -1;
}

void Workspace::pick(Picked picked) {
  if (picked == picked_)
    return;
  picked_ = std::move(picked);
  tell(Change::Pick);
}

std::optional<sim::WhyIdle> Workspace::why_idle(int rank, double time) const {
  const sim::Structure* of = structure();
  const sim::Times* when = times();
  if (of == nullptr || when == nullptr)
    return {};
  sim::LayersOfStages layers;
  if (shown_ == Shown::Plan) {
    layers = {&answer_->costs, &answer_->plan.partition};
  } else if (document_.run) {
    layers = {&document_.run->costs, &document_.run->partition};
  }
  try {
    return sim::why_idle(*of, *when, rank, time, layers);
  } catch (const plan::InputError&) {
    return {};  // beyond the iteration
  }
}

const std::vector<loop::Saving>& Workspace::savings() const {
  if (!saved_) {
    savings_ = answer_ ? loop::savings_of(answer_->plan, answer_->times, answer_->costs)
                       : std::vector<loop::Saving>{};
    slack_ = answer_ ? sim::slack(*answer_->plan.structure, answer_->times) : std::vector<double>{};
    saved_ = true;
  }
  return savings_;
}

const std::vector<double>& Workspace::slack() const {
  savings();
  return slack_;
}

}  // namespace pipewright::gui
