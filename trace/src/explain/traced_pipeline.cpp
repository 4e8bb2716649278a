#include "pipewright/trace/explain/traced_pipeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/lower/lower.hpp"
#include "pipewright/plan/quantity_text.hpp"
#include "pipewright/plan/schedules/validate_schedule.hpp"
#include "pipewright/plan/timeline/aligned_timeline.hpp"
#include "pipewright/plan/timeline/clock_offsets.hpp"
#include "pipewright/sim/causes/measured_times.hpp"

namespace pipewright::trace {
namespace {

constexpr double most_apart = 60;  // seconds between the clocks of one run
constexpr int most_events = 4'000'000;
constexpr const char* what_would_be_right =
    "give the traces of all its ranks, and --axes if they are of several pipelines";

std::string name_of(const TracedRank& rank) {
  return rank.rank ? fmt::format("{} (rank {})", rank.file, *rank.rank) : rank.file;
}

std::string steps_of(const TracedRank& rank) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at < rank.steps.size(); ++at)
    words.push_back(fmt::format("{}{}", rank.steps[at].number.value_or(static_cast<int>(at)),
                                rank.steps[at].whole ? "" : " (not whole)"));
  return fmt::format("{}", fmt::join(words, ", "));
}

int number_of(const TracedRank& rank, std::size_t step) {
  return rank.steps[step].number.value_or(static_cast<int>(step));
}

const TracedStep* find_step(const TracedRank& rank, int number) {
  for (std::size_t at = 0; at < rank.steps.size(); ++at)
    if (number_of(rank, at) == number)
      return &rank.steps[at];
  return nullptr;
}

std::vector<int> whole_steps(const std::vector<const TracedRank*>& order) {
  std::vector<int> whole;
  for (std::size_t at = 0; at < order.front()->steps.size(); ++at) {
    const int number = number_of(*order.front(), at);
    if (std::all_of(order.begin(), order.end(), [&](const TracedRank* rank) {
          const TracedStep* const step = find_step(*rank, number);
          return step != nullptr && step->whole;
        }))
      whole.push_back(number);
  }
  return whole;
}

/// Combines the ranks' traces of one step.
class Joiner {
 public:
  Joiner(const std::vector<const TracedRank*>& order, int number) : order_(order) {
    for (const TracedRank* rank : order)
      steps_.push_back(*find_step(*rank, number));
    pipeline_.source = order.front()->source;
    pipeline_.on_device =
        std::any_of(order.begin(), order.end(), [](const auto* rank) { return rank->on_device; });
    for (const TracedRank* rank : order)
      pipeline_.files.push_back(rank->file);
  }

  TracedPipeline join() {
    require_equal_microbatches();
    name_stages();
    make_schedule();
    make_timeline();
    align();
    pipeline_.timeline = sim::with_idle_causes(*pipeline_.structure, pipeline_.timeline);
    find_operators();
    return std::move(pipeline_);
  }

 private:
  int ranks() const { return static_cast<int>(steps_.size()); }

  void require_equal_microbatches() const {
    for (std::size_t rank = 1; rank < steps_.size(); ++rank)
      if (steps_[rank].microbatches != steps_.front().microbatches)
        throw plan::InputError(fmt::format(
            "{}: the step has {} microbatches, but in {} it has {}: they are of different runs, or "
            "of different steps",
            name_of(*order_[rank]), steps_[rank].microbatches, name_of(*order_.front()),
            steps_.front().microbatches));
  }

  /// Sets the stages. Unless ranges name it, a rank has one stage: its place in the pipeline.
  void name_stages() {
    if (pipeline_.source == ActionSource::Ranges)
      return;
    for (int rank = 0; rank < ranks(); ++rank) {
      TracedStep& step = steps_[static_cast<std::size_t>(rank)];
      if (pipeline_.source != ActionSource::Passing && knows_transfers())
        require_ends(step, rank);
      for (TracedAction& action : step.actions)
        action.action.stage = rank;
      for (TracedTransfer& transfer : step.transfers)
        transfer.instruction.stage = rank;
      if (pipeline_.source == ActionSource::Passing)
        std::erase_if(step.transfers, [&](const TracedTransfer& own) {
          const int peer = plan::peer_stage(own.instruction);
          return peer < 0 || peer >= ranks();
        });
    }
  }

  /// Returns true if any trace shows transfers. Those of ActionSource::Passing prove nothing: at
  /// the ends of its pipeline, Megatron also calls transfer functions, which do nothing there.
  bool knows_transfers() const {
    return std::any_of(steps_.begin(), steps_.end(),
                       [](const TracedStep& step) { return !step.transfers.empty(); });
  }

  /// Checks that the first and last ranks transfer nothing outwards: such a transfer belongs to a
  /// rank whose trace is missing.
  void require_ends(const TracedStep& step, int rank) const {
    const auto has = [&](plan::InstructionKind kind) {
      return std::any_of(step.transfers.begin(), step.transfers.end(),
                         [&](const auto& own) { return own.instruction.kind == kind; });
    };
    using Kind = plan::InstructionKind;
    const bool before = has(Kind::ReceiveActivation) || has(Kind::SendGradient);
    const bool behind = has(Kind::SendActivation) || has(Kind::ReceiveGradient);
    const std::string name = name_of(*order_[static_cast<std::size_t>(rank)]);
    const auto refuse = [&](const char* what, const char* where) {
      throw plan::InputError(fmt::format("{}: it {}, so it is not the {} stage of the pipeline; {}",
                                         name, what, where, what_would_be_right));
    };
    if (rank == 0 && before)
      refuse("receives before its forwards or sends after its backwards", "first");
    if (rank == ranks() - 1 && behind)
      refuse("sends after its forwards or receives before its backwards", "last");
    if (rank > 0 && !before)
      refuse("receives nothing before its forwards",
             rank == ranks() - 1 ? "last" : fmt::format("{}th", rank + 1).c_str());
    if (rank < ranks() - 1 && !behind)
      refuse("sends nothing after its forwards",
             rank == 0 ? "first" : fmt::format("{}th", rank + 1).c_str());
  }

  void make_schedule() {
    plan::Schedule& schedule = pipeline_.schedule;
    schedule.microbatches = steps_.front().microbatches;
    std::size_t events = 0;
    for (const TracedStep& step : steps_) {
      std::vector<plan::Action> actions;
      for (const TracedAction& traced : step.actions)
        actions.push_back(traced.action);
      events += actions.size();
      schedule.ranks.push_back(std::move(actions));
    }
    require_stages(schedule, events);
    try {
      pipeline_.structure = std::make_shared<sim::Structure>(plan::lower(schedule));
    } catch (const plan::Infeasible& error) {
      refuse(error.what());
    } catch (const plan::InputError& error) {
      refuse(error.what());
    }
  }
  [[noreturn]] void refuse(const std::string& why) const {
    throw plan::InputError(fmt::format(
        "{}: together they are not a whole pipeline: {}; {}, all of one run and one step",
        fmt::join(pipeline_.files, ", "), why, what_would_be_right));
  }

  void require_stages(const plan::Schedule& schedule, std::size_t actions) const {
    const int stages = plan::stage_count(schedule);
    if (stages > static_cast<int>(actions) || actions > most_events)
      refuse(fmt::format("{} actions of {} stages", actions, stages));
    std::vector<std::vector<int>> ranks_of(static_cast<std::size_t>(stages));
    for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank)
      for (const plan::Action& action : schedule.ranks[rank])
        if (auto& own = ranks_of[static_cast<std::size_t>(action.stage)];
            own.empty() || own.back() != static_cast<int>(rank))
          own.push_back(static_cast<int>(rank));
    for (int stage = 0; stage < stages; ++stage)
      if (ranks_of[static_cast<std::size_t>(stage)].empty())
        refuse(fmt::format("no trace has stage {}, though there is a stage {}: its rank is missing",
                           stage, stages - 1));
    // Transfers beyond the last stage that was given.
    for (std::size_t rank = 0; rank < steps_.size(); ++rank)
      for (const TracedTransfer& transfer : steps_[rank].transfers)
        if (const int peer = plan::peer_stage(transfer.instruction); peer >= stages || peer < 0)
          refuse(fmt::format("{} has {}, but no trace has stage {}: its rank is missing",
                             name_of(*order_[rank]), to_string(transfer.instruction), peer));
  }

  double origin(int rank) const {
    const auto known = [](const TracedRank* own) { return own->origin_ns.has_value(); };
    if (!std::all_of(order_.begin(), order_.end(), known))
      return 0;
    std::int64_t first = *order_.front()->origin_ns;
    return static_cast<double>(*order_[static_cast<std::size_t>(rank)]->origin_ns - first) * 1e-9;
  }

  struct Interval {
    double start = 0;
    double end = 0;
  };
  /// Keyed by rank and text of the instruction.
  using Intervals = std::map<std::pair<int, std::string>, Interval>;

  /// Gives every instruction of the Program its span.
  void make_timeline() {
    for (int rank = 0; rank < ranks(); ++rank) {
      const TracedStep& step = steps_[static_cast<std::size_t>(rank)];
      for (const TracedAction& own : step.actions)
        actions_[{rank, to_string(own.action)}] = {own.start, own.end};
      for (const TracedTransfer& own : step.transfers)
        transfers_[{rank, to_string(own.instruction)}] = {own.start, own.end};
      pipeline_.optimizer_s.push_back(step.optimizer_end - step.optimizer_start);
    }
    pipeline_.timeline.name = "traced";
    pipeline_.timeline.ranks = ranks();
    for (int rank = 0; rank < ranks(); ++rank)
      add_spans(rank);
  }

  /// State from which a rank's next instruction without a traced span gets its time.
  struct RankTime {
    double free = 0;  // earliest time at which the rank could compute the next one
    bool has_computed = false;
    double next_update = 0;
    double update = 0;  // duration of each optimizer step
  };

  void add_spans(int rank) {
    const auto& list = pipeline_.structure->program().ranks[static_cast<std::size_t>(rank)];
    RankTime time = time_before(rank, list);
    const double shift = origin(rank);
    for (const plan::Instruction& own : list) {
      const Interval span = span_of(own, rank, time);
      if (plan::is_compute(own.kind)) {
        time.free = span.end;
        time.has_computed = true;
      }
      pipeline_.timeline.spans.push_back({rank, plan::row_of(own.kind), to_string(own),
                                          plan::Seconds{span.start + shift},
                                          plan::Seconds{span.end + shift}});
    }
  }

  RankTime time_before(int rank, const std::vector<plan::Instruction>& list) const {
    const TracedStep& step = steps_[static_cast<std::size_t>(rank)];
    const auto updates = static_cast<double>(
        std::count_if(list.begin(), list.end(), [](const plan::Instruction& own) {
          return own.kind == plan::InstructionKind::OptimizerStep;
        }));
    RankTime time{.next_update = step.optimizer_start,
                  .update = (step.optimizer_end - step.optimizer_start) / updates};
    for (const TracedAction& own : step.actions)
      time.next_update = std::max(time.next_update, own.end);
    return time;
  }

  Interval span_of(const plan::Instruction& own, int rank, RankTime& time) const {
    if (const auto action = actions_.find({rank, to_string(own)}); action != actions_.end())
      return action->second;
    if (plan::is_send(own.kind))
      return sent(own, rank);
    if (plan::is_receive(own.kind))
      return received(own, rank);
    if (own.kind == plan::InstructionKind::OptimizerStep) {
      const double start = time.next_update;
      time.next_update = std::max(start, start + time.update);
      return {start, time.next_update};
    }
    if (own.kind == plan::InstructionKind::Load) {
      // A load takes no time. Its forward's other waits do not belong to it.
      const plan::Action forward{plan::ActionKind::Forward, own.stage, own.microbatch};
      const double start =
          time.has_computed ? time.free : actions_.at({rank, to_string(forward)}).start;
      return {start, start};
    }
    return {time.next_update, time.next_update};
  }

  /// Returns the action that produces the data of a send, or consumes those of a receive.
  const Interval& action_of(const plan::Instruction& own, int rank) const {
    using Kind = plan::InstructionKind;
    const bool forward = own.kind == Kind::SendActivation || own.kind == Kind::ReceiveActivation;
    for (const plan::ActionKind kind :
         {forward ? plan::ActionKind::Forward : plan::ActionKind::Backward,
          plan::ActionKind::InputGradient})
      if (const auto action =
              actions_.find({rank, to_string(plan::Action{kind, own.stage, own.microbatch})});
          action != actions_.end())
        return action->second;
    refuse(fmt::format("nothing needs {}", to_string(own)));
  }

  Interval sent(const plan::Instruction& own, int rank) const {
    const Interval& maker = action_of(own, rank);
    const auto traced = transfers_.find({rank, to_string(own)});
    if (traced == transfers_.end() || pipeline_.on_device)
      return {maker.end, maker.end};
    const double start = std::max(traced->second.start, maker.end);
    return {start, std::max(start, traced->second.end)};
  }

  /// A receive ends when the action that needs it can begin.
  Interval received(const plan::Instruction& own, int rank) const {
    const Interval& user = action_of(own, rank);
    const auto traced = transfers_.find({rank, to_string(own)});
    const double start = traced == transfers_.end() ? user.start : traced->second.start;
    return {std::min(start, user.start), user.start};
  }

  void align() {
    plan::Timeline& timeline = pipeline_.timeline;
    const auto first_span = first_action(timeline);
    const plan::Seconds traced = timeline.spans[first_span].start;
    auto passages = plan::passages_of(timeline);
    double worst = 0;
    for (const plan::ClockObservation& passage : passages)
      worst = std::min(worst, (passage.arrived - passage.sent).value);
    plan::ClockOffsets clocks = plan::clock_offsets(ranks(), passages);
    pipeline_.clock_uncertainty_s = clocks.uncertainty.value;
    double apart = 0;
    for (const plan::Seconds& offset : clocks.offset)
      apart = std::max(apart, std::abs(offset.value));
    if (worst >= 0)
      std::fill(clocks.offset.begin(), clocks.offset.end(), plan::Seconds{});
    const auto length = [&] {
      double first = std::numeric_limits<double>::infinity(), last = 0;
      for (const plan::Span& span : timeline.spans)
        if (span.rank == 0) {
          first = std::min(first, span.start.value);
          last = std::max(last, span.end.value);
        }
      return last - first;
    }();
    if (apart > most_apart + length && all_have_origin())
      throw plan::InputError(fmt::format(
          "{}: their clocks (baseTimeNanoseconds) are {:.0f} s apart according to their sends "
          "and receives: they are of different runs",
          fmt::join(pipeline_.files, ", "), apart));
    if (clocks.residual.value > 0.1 * length)
      throw plan::InputError(fmt::format(
          "{}: no shift of their clocks puts every send before its receive: {} "
          "are missing in an iteration of {}; they are of different runs, or of different steps",
          fmt::join(pipeline_.files, ", "), plan::time_text(clocks.residual.value),
          plan::time_text(length)));
    for (const plan::Seconds& offset : clocks.offset)
      pipeline_.clock_s.push_back(offset.value);
    timeline = plan::aligned(std::move(timeline), clocks);
    begin_at_zero(timeline);
    if (all_have_origin())
      pipeline_.began_ns = *order_.front()->origin_ns +
                           std::llround((traced - timeline.spans[first_span].start).value * 1e9);
    end_sends(timeline);
  }

  /// Returns the index of an action of the first rank, whose clock is not corrected.
  static std::size_t first_action(const plan::Timeline& timeline) {
    const auto found =
        std::find_if(timeline.spans.begin(), timeline.spans.end(), [](const plan::Span& span) {
          return span.rank == 0 && plan::parse_action(span.action).has_value();
        });
    return static_cast<std::size_t>(found - timeline.spans.begin());
  }
  bool all_have_origin() const {
    return std::all_of(order_.begin(), order_.end(),
                       [](const TracedRank* own) { return own->origin_ns.has_value(); });
  }

  static void begin_at_zero(plan::Timeline& timeline) {
    plan::Seconds first = timeline.spans.front().start, last;
    for (const plan::Span& span : timeline.spans)
      first = std::min(first, span.start);
    for (plan::Span& span : timeline.spans) {
      span.start -= first;
      span.end -= first;
      if (span.row == plan::Row::Compute)
        last = std::max(last, span.end);
    }
    timeline.length = last;
    // A rank that has not computed yet could have loaded its inputs at time 0.
    std::vector<bool> has_begun(static_cast<std::size_t>(timeline.ranks));
    for (plan::Span& span : timeline.spans) {
      const auto rank = static_cast<std::size_t>(span.rank);
      if (span.row != plan::Row::Compute || has_begun[rank])
        continue;
      has_begun[rank] = plan::kind_of(span.action) != "LOAD";
      if (!has_begun[rank])
        span.start = span.end = {};
    }
  }

  /// Ends sends when their data has arrived, because torch waits for most sends only at the end of
  /// the step.
  void end_sends(plan::Timeline& timeline) const {
    const auto spans = sim::spans_of(*pipeline_.structure, timeline);
    const plan::Dependencies& events = pipeline_.structure->events();
    for (int event = 0; event < pipeline_.structure->size(); ++event) {
      if (!plan::is_send(events[event].instruction->kind))
        continue;
      plan::Span& send = timeline.spans[spans[static_cast<std::size_t>(event)]];
      const plan::Span& receive =
          timeline.spans[spans[static_cast<std::size_t>(events[event].partner)]];
      send.end = std::max(send.start,
                          pipeline_.on_device || send.end > receive.end ? receive.end : send.end);
    }
  }

  /// Keeps the operators of a stage only if all its microbatches have the same ones.
  void find_operators() {
    const int stages = plan::stage_count(pipeline_.schedule);
    std::vector<std::vector<TracedOperator>> sums(static_cast<std::size_t>(stages));
    std::vector<int> counts(static_cast<std::size_t>(stages));
    std::vector<bool> differ(static_cast<std::size_t>(stages));
    for (const TracedStep& step : steps_)
      for (const TracedAction& traced : step.actions) {
        if (traced.action.kind != plan::ActionKind::Forward)
          continue;
        const auto stage = static_cast<std::size_t>(traced.action.stage);
        auto& sum = sums[stage];
        if (counts[stage]++ == 0) {
          sum = traced.operators;
          continue;
        }
        if (sum.size() != traced.operators.size()) {
          differ[stage] = true;
          continue;
        }
        for (std::size_t at = 0; at < sum.size(); ++at) {
          sum[at].forward += traced.operators[at].forward;
          sum[at].backward += traced.operators[at].backward;
          if (sum[at].name != traced.operators[at].name)
            differ[stage] = true;
        }
      }
    for (std::size_t stage = 0; stage < sums.size(); ++stage) {
      if (differ[stage])
        sums[stage].clear();
      for (TracedOperator& own : sums[stage]) {
        own.forward /= counts[stage];
        own.backward /= counts[stage];
      }
    }
    pipeline_.operators = std::move(sums);
  }

  const std::vector<const TracedRank*>& order_;
  std::vector<TracedStep> steps_;
  Intervals actions_, transfers_;  // as traced
  TracedPipeline pipeline_;
};

}  // namespace

int step_to_explain(const std::vector<const TracedRank*>& ranks, std::optional<int> wanted) {
  if (wanted)
    for (const TracedRank* rank : ranks) {
      const TracedStep* const step = find_step(*rank, *wanted);
      if (step == nullptr || !step->whole)
        throw plan::InputError(fmt::format("{}: step {} {}; it has {}", rank->file, *wanted,
                                           step == nullptr ? "is not in it" : "is not whole",
                                           steps_of(*rank)));
    }
  if (wanted)
    return *wanted;
  const auto whole = whole_steps(ranks);
  if (!whole.empty())
    return whole.back();
  std::vector<std::string> words;
  for (const TracedRank* rank : ranks)
    words.push_back(fmt::format("{} has {}", rank->file, steps_of(*rank)));
  throw plan::InputError(
      fmt::format("no step is whole on all ranks: {}; profile at least one step from its begin to "
                  "its end, the same on all ranks",
                  fmt::join(words, "; ")));
}

TracedPipeline traced_pipeline(const std::vector<const TracedRank*>& ranks, int step) {
  TracedPipeline pipeline = Joiner(ranks, step).join();
  pipeline.step = find_step(*ranks.front(), step)->number;
  pipeline.step_index = step;
  pipeline.steps = static_cast<int>(whole_steps(ranks).size());
  return pipeline;
}

}  // namespace pipewright::trace
