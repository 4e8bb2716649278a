#include "pipewright/loop_torch/slow_ranks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/statistics.hpp"
#include "pipewright/plan/timeline/timeline.hpp"

namespace pipewright::loop {
namespace {

constexpr std::size_t least_steps = 5, steps_to_compare_with = 8;
constexpr double least_window_s = 1, between_looks_s = 0.1;
/// Factors above which a rank is slow. A prediction may be off by more than earlier steps are.
constexpr double slow_beside_prediction = 2, slow_beside_earlier = 1.5;

plan::Json json_of(const RelativePace& beside) {
  return plan::Json::array({beside.usual_s, beside.least, beside.most});
}

RelativePace beside_from(const plan::Json& json) { return {json.at(0), json.at(1), json.at(2)}; }

/// Returns true if a rank is slow by this measure, also in comparison with the other ranks. A
/// single rank cannot be told apart from a slow machine, so it is never slow.
bool is_slow(std::size_t rank, const std::vector<std::optional<Pace>>& paces,
             RelativePace Pace::*measure, double slow) {
  const auto beside = [&](std::size_t each) { return (*paces[each]).*measure; };
  if (!paces[rank] || beside(rank).usual_s == 0)
    return false;
  std::vector<double> others;
  for (std::size_t other = 0; other < paces.size(); ++other)
    if (other != rank && paces[other] && beside(other).usual_s > 0)
      others.push_back(beside(other).most);
  return !others.empty() &&
         beside(rank).least > slow * std::max(1.0, plan::median(std::move(others)));
}

/// Returns the predicted compute time of each rank of the pipeline in a step.
std::vector<double> predicted_compute(const Plan& plan) {
  std::vector<double> compute(static_cast<std::size_t>(plan.predicted.ranks));
  for (const plan::Span& span : plan.predicted.spans)
    if (span.row == plan::Row::Compute)
      compute.at(static_cast<std::size_t>(span.rank)) += (span.end - span.start).value;
  return compute;
}

}  // namespace

std::string to_text(const Pace& pace) {
  return plan::Json::array({pace.compute_s, pace.usual_step_s, pace.step_s, pace.steps,
                            json_of(pace.prediction), json_of(pace.earlier)})
      .dump();
}

std::optional<Pace> pace_from_text(const std::string& text) {
  if (text.empty())
    return {};
  const auto json = plan::Json::parse(text);
  return Pace{json.at(0),
              json.at(1),
              json.at(2),
              json.at(3),
              beside_from(json.at(4)),
              beside_from(json.at(5))};
}

void PaceOfRank::add_step(double compute_s, double step_s) {
  if (warm_up_left_ > 0) {
    --warm_up_left_;
    return;
  }
  if (!earlier_) {
    first_.push_back({compute_s, step_s});
    if (first_.size() == steps_to_compare_with)
      earlier_ = middle_of(first_);
  }
  latest_.push_back({compute_s, step_s});
  latest_s_ += step_s;
  // Drops the oldest step as long as enough steps remain.
  while (latest_.size() > least_steps && latest_s_ - latest_.front().step_s >= least_window_s) {
    latest_s_ -= latest_.front().step_s;
    latest_.pop_front();
  }
}

PaceOfRank::Step PaceOfRank::middle_of(const std::vector<Step>& steps) {
  std::vector<double> compute, whole;
  for (const Step& step : steps) {
    compute.push_back(step.compute_s);
    whole.push_back(step.step_s);
  }
  return {plan::median(std::move(compute)), plan::median(std::move(whole))};
}

std::optional<Pace> PaceOfRank::pace() const {
  if (latest_.size() < least_steps || latest_s_ < least_window_s)
    return {};
  const auto [least, most] = std::ranges::minmax(latest_, {}, &Step::compute_s);
  const auto beside = [least = least.compute_s, most = most.compute_s](double usual_s) {
    return usual_s > 0 ? RelativePace{usual_s, least / usual_s, most / usual_s} : RelativePace{};
  };
  const Step middle = middle_of({latest_.begin(), latest_.end()});
  return Pace{.compute_s = middle.compute_s,
              .usual_step_s = earlier_ ? earlier_->step_s : 0,
              .step_s = middle.step_s,
              .steps = static_cast<int>(latest_.size()),
              .prediction = beside(predicted_s_),
              .earlier = earlier_ ? beside(earlier_->compute_s) : RelativePace{}};
}

std::vector<bool> slow_ranks(const std::vector<std::optional<Pace>>& paces) {
  std::vector<bool> slow;
  for (std::size_t rank = 0; rank < paces.size(); ++rank)
    slow.push_back(is_slow(rank, paces, &Pace::earlier, slow_beside_earlier) ||
                   is_slow(rank, paces, &Pace::prediction, slow_beside_prediction));
  return slow;
}

bool is_slow_by_earlier(const Pace& slow) { return slow.earlier.least > slow_beside_earlier; }

std::string slow_words(int rank, const Pace& pace) {
  const bool by_earlier = is_slow_by_earlier(pace);
  const RelativePace& beside = by_earlier ? pace.earlier : pace.prediction;
  std::string words =
      fmt::format("rank {} is slow: in each of {} steps it computes for {:.3g} s, {:.1f} times {}",
                  rank, pace.steps, pace.compute_s, pace.compute_s / beside.usual_s,
                  by_earlier ? "what it took before" : "its prediction");
  if (by_earlier)
    words += fmt::format("; a step takes {:.3g} s, before it took {:.3g} s", pace.step_s,
                         pace.usual_step_s);
  else
    words += fmt::format(", which costs each step up to {:.3g} s", pace.compute_s - beside.usual_s);
  return words;
}

SlowRanks::SlowRanks(const plan::Scenario& scenario, const Plan& plan, Membership& members)
    : members_(members) {
  const exec::JobGrid grid = grid_of(scenario.pipeline);
  const std::vector<double> predicted = predicted_compute(plan);
  for (int rank = 0; rank < grid.size(); ++rank) {
    const auto place = static_cast<std::size_t>(grid.rank(rank).rank);
    ranks_.emplace_back(place < predicted.size() ? predicted[place] : 0);
  }
  compute_s_.resize(ranks_.size());
  named_.resize(ranks_.size());
}

void SlowRanks::ran(const exec::InstructionRecord& record) {
  if (plan::row_of(record.instruction.kind) == plan::Row::Compute)
    compute_s_.at(static_cast<std::size_t>(record.rank)) +=
        (record.end - record.start - record.shards).value;
}

void SlowRanks::end_step(double step_s, const Say& say) {
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
    ranks_[rank].add_step(std::exchange(compute_s_[rank], 0), step_s);
  not_looked_at_s_ += step_s;
  if (not_looked_at_s_ < between_looks_s)
    return;
  not_looked_at_s_ = 0;
  latest_ = paces();
  const std::vector<bool> slow = slow_ranks(latest_);
  for (std::size_t rank = 0; rank < slow.size() && members_.is_first(); ++rank) {
    if (slow[rank] && !named_[rank])
      say(slow_words(static_cast<int>(rank), *latest_[rank]));
    if (!slow[rank] && named_[rank])
      say(fmt::format("rank {} is no longer slow", rank));
  }
  named_ = slow;
}

std::string SlowRanks::words() const {
  std::string all;
  for (std::size_t rank = 0; rank < named_.size(); ++rank)
    if (named_[rank])
      all += (all.empty() ? "" : "\n") + slow_words(static_cast<int>(rank), *latest_[rank]);
  return all;
}

std::optional<Pace> SlowRanks::slow_pace(int rank) const {
  const auto place = static_cast<std::size_t>(rank);
  return named_.at(place) ? latest_.at(place) : std::nullopt;
}

std::vector<std::optional<Pace>> SlowRanks::paces() const {
  std::vector<std::optional<Pace>> paces;
  exec::Job* const job = members_.job();
  if (job == nullptr) {
    for (const PaceOfRank& rank : ranks_)
      paces.push_back(rank.pace());
    return paces;
  }
  const auto own = ranks_[static_cast<std::size_t>(job->rank())].pace();
  job->tell(own ? to_text(*own) : "");
  for (const std::string& note : job->told())
    paces.push_back(pace_from_text(note));
  return paces;
}

}  // namespace pipewright::loop
