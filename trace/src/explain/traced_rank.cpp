#include "pipewright/trace/explain/traced_rank.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <set>
#include <span>

#include "explain/operator_groups.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::trace {
namespace {

using Range = PipelineEvents::Range;
using Operator = PipelineEvents::Operator;

constexpr int most_index = 1'000'000;

std::optional<int> index_of(std::string_view text) {
  int index = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  if (error != std::errc() || end != text.data() + text.size() || index < 0 || index > most_index)
    return {};
  return index;
}

/// Returns the operators that begin in [start, end).
std::span<const Operator> between(const PipelineEvents& events, double start, double end) {
  const auto before = [](const Operator& own, double time) { return own.start < time; };
  const auto first =
      std::lower_bound(events.operators.begin(), events.operators.end(), start, before);
  return {first, std::lower_bound(first, events.operators.end(), std::max(start, end), before)};
}

bool computes(const Operator& own) {
  return own.kind == OperatorKind::Compute || own.kind == OperatorKind::Engine;
}

/// The time range of one step.
struct Window {
  std::optional<int> number;
  double start = 0;
  double end = 0;
  bool whole = true;
};

class RankTracer {
 public:
  explicit RankTracer(const PipelineEvents& events) : events_(events) {
    for (const Range& range : events.ranges)
      if (range.stream.empty())
        by_kind_[range.kind].push_back(&range);
      else if (range.kind == RangeKind::Action || range.kind == RangeKind::Forward ||
               range.kind == RangeKind::Backward)
        twins_.push_back(&range);
    for (const Range* receive : of(RangeKind::Receive))
      receive_ends_.push_back(receive->end);
    std::sort(receive_ends_.begin(), receive_ends_.end());
  }

  TracedRank trace() {
    TracedRank rank{.file = events_.file,
                    .rank = events_.rank,
                    .world_size = events_.world_size,
                    .groups = events_.groups,
                    .origin_ns = events_.origin_ns};
    find_source(rank);
    actions_ = actions_of(rank.source);
    for (const Window& window : windows(rank.source)) {
      TracedStep step{.number = window.number, .whole = window.whole};
      if (rank.source == ActionSource::Operators)
        add_groups(window, step);
      else if (rank.source == ActionSource::Passing)
        add_between(window, step);
      else
        add_ranges(window, rank.source, step);
      if (step.actions.empty())
        continue;
      add_optimizer(window, step);
      if (rank.source != ActionSource::Ranges && rank.source != ActionSource::Passing)
        add_neighboring_transfers(window, step);
      rank.on_device = put_on_device(step) || rank.on_device;
      finish(step);
      rank.steps.push_back(std::move(step));
    }
    if (rank.steps.empty())
      refuse("no action of a pipeline is in any ProfilerStep range");
    return rank;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw plan::InputError(fmt::format("{}: {}", events_.file, what));
  }

  const std::vector<const Range*>& of(RangeKind kind) { return by_kind_[kind]; }

  void find_source(TracedRank& rank) {
    if (!of(RangeKind::Action).empty()) {
      rank.source = ActionSource::Ranges;
    } else if (!of(RangeKind::Forward).empty() && !of(RangeKind::Backward).empty()) {
      rank.source = ActionSource::MicrobatchRanges;
    } else if (events_.interleaves) {
      refuse(
          "its ranks have several stages each (Megatron's interleaved schedule), and no range "
          "tells "
          "which stage runs; use one stage per rank, or ranges as torch's schedule "
          "runtime writes them (\"PP:2F0\")");
    } else if (!of(RangeKind::ForwardCall).empty() && !of(RangeKind::BackwardCall).empty()) {
      rank.source = ActionSource::Functions;
    } else if (!of(RangeKind::Passing).empty()) {
      rank.source = ActionSource::Passing;
    } else {
      rank.source = ActionSource::Operators;
      const bool transfers =
          std::any_of(events_.operators.begin(), events_.operators.end(), [](const Operator& own) {
            return own.kind == OperatorKind::Send || own.kind == OperatorKind::Receive;
          });
      if (events_.arrows.empty() || !transfers)
        refuse(fmt::format(
            "no pipeline in it: it has neither ranges called \"PP:2F0\" or \"Forward 3\" nor {}; "
            "give a trace of torch's profiler from a rank that trains in a pipeline",
            events_.arrows.empty() ? "arrows from forward operators to the autograd engine's "
                                     "(\"fwdbwd\")"
                                   : "sends and receives (\"c10d::send\", \"c10d::recv_\")"));
    }
  }

  // ---- steps

  std::vector<Window> windows(ActionSource source) {
    std::vector<Window> windows;
    for (const Range* step : of(RangeKind::Step))
      windows.push_back({index_of(step->name), step->start, step->end});
    if (!windows.empty()) {
      windows.back().whole = !events_.cut_off;
      return windows;
    }
    double begin = -std::numeric_limits<double>::infinity();
    if (source == ActionSource::Operators || source == ActionSource::Functions) {
      for (const Range* step : of(RangeKind::Optimizer)) {
        windows.push_back({{}, begin, step->end});
        begin = step->end;
      }
    } else if (source == ActionSource::Passing) {
      // A step begins with the receive for the first forward after backwards.
      bool has_backward = false;
      for (const Range* range : of(RangeKind::Passing)) {
        if (has_backward && range->name == "recv_forward") {
          windows.push_back({{}, begin, range->start});
          begin = range->start;
          has_backward = false;
        }
        has_backward = has_backward || range->name.starts_with("send_backward");
      }
    } else {
      // A step ends where an action repeats.
      std::set<std::string> seen;
      for (const Range* range : actions_) {
        const std::string name = fmt::format("{} {}", static_cast<int>(range->kind), range->name);
        if (!seen.insert(name).second) {
          windows.push_back({{}, begin, range->start});
          begin = range->start;
          seen = {name};
        }
      }
    }
    windows.push_back({{}, begin, last() + 1, !events_.cut_off});
    return windows;
  }

  double last() const {
    double last = 0;
    for (const Range& range : events_.ranges)
      last = std::max(last, range.end);
    for (const Operator& own : events_.operators)
      last = std::max(last, own.end);
    return last;
  }

  std::vector<const Range*> actions_of(ActionSource source) {
    const auto acts = [&](RangeKind kind) {
      switch (source) {
        case ActionSource::Ranges:
          return kind == RangeKind::Action;
        case ActionSource::MicrobatchRanges:
          return kind == RangeKind::Forward || kind == RangeKind::Backward;
        case ActionSource::Functions:
          return kind == RangeKind::ForwardCall || kind == RangeKind::BackwardCall;
        case ActionSource::Passing:
        case ActionSource::Operators:
          return false;
      }
      return false;
    };
    std::vector<const Range*> ranges;
    for (const Range& range : events_.ranges)
      if (range.stream.empty() && acts(range.kind))
        ranges.push_back(&range);
    return ranges;
  }

  // ---- ranges

  void add_ranges(const Window& window, ActionSource source, TracedStep& step) {
    const auto first =
        std::lower_bound(actions_.begin(), actions_.end(), window.start,
                         [](const Range* range, double time) { return range->start < time; });
    int forwards = 0, backwards = 0;
    for (auto at = first; at != actions_.end() && (*at)->start < window.end; ++at) {
      const Range& range = **at;
      const double next = std::next(at) == actions_.end()
                              ? window.end
                              : std::min((*std::next(at))->start, window.end);
      const bool forward = range.kind == RangeKind::Forward || range.kind == RangeKind::ForwardCall;
      if (source == ActionSource::Ranges)
        add_action_range(range, step);
      else if (source == ActionSource::Functions)
        add_microbatch_range(range, forward, forward ? forwards++ : backwards++, next, step);
      else if (const auto microbatch = index_of(range.name))
        add_microbatch_range(range, forward, *microbatch, next, step);
    }
  }

  void add_action_range(const Range& range, TracedStep& step) {
    std::vector<plan::Instruction> instructions;
    if (!plan::append_cell(range.name, instructions))
      return;  // UNSHARD and similar instructions
    if (instructions.size() == 2)
      return add_fused(range, instructions, step);
    const plan::Instruction& instruction = instructions.front();
    if (const auto kind = plan::traits_of(instruction.kind).action)
      add_action({*kind, instruction.stage, instruction.microbatch}, range.start, range.end, step);
    else if (plan::is_send(instruction.kind) || plan::is_receive(instruction.kind))
      step.transfers.push_back({instruction, range.start, range.end});
  }

  /// Splits a fused pair: its forward ends where the autograd engine begins.
  void add_fused(const Range& range, const std::vector<plan::Instruction>& pair, TracedStep& step) {
    double border = (range.start + range.end) / 2;
    const bool forward_first = pair.front().kind == plan::InstructionKind::Forward;
    double last_forward = range.start;
    for (const Operator& own : between(events_, range.start, range.end)) {
      if (own.kind == OperatorKind::Engine) {
        border = forward_first ? std::max(last_forward, std::min(own.start, range.end)) : border;
        break;
      }
      last_forward = own.end;
    }
    const auto action = [](const plan::Instruction& own, bool fused) {
      return plan::Action{*plan::traits_of(own.kind).action, own.stage, own.microbatch, fused};
    };
    add_action(action(pair[0], true), range.start, border, step);
    add_action(action(pair[1], false), border, range.end, step);
  }

  void add_microbatch_range(const Range& range, bool forward, int microbatch, double next,
                            TracedStep& step) {
    double end = range.end;
    bool worked = false;
    for (const Operator& own : between(events_, range.start, range.end)) {
      if (computes(own))
        worked = true;
      if (worked && own.kind == OperatorKind::Send) {
        end = own.start;  // the rest of the range is the transfer
        break;
      }
    }
    // The loss is computed after the range.
    if (forward)
      for (const Operator& own : between(events_, range.end, next)) {
        if (own.kind != OperatorKind::Compute || !has_arrow(own))
          break;
        end = own.end;
      }
    add_action({forward ? plan::ActionKind::Forward : plan::ActionKind::Backward, -1, microbatch},
               range.start, end, step);
  }

  bool has_arrow(const Operator& own) const {
    const auto arrow = first_arrow(own.start);
    return arrow != events_.arrows.end() && arrow->from <= own.end;
  }
  std::vector<PipelineEvents::Arrow>::const_iterator first_arrow(double time) const {
    return std::lower_bound(events_.arrows.begin(), events_.arrows.end(), time,
                            [](const auto& arrow, double t) { return arrow.from < t; });
  }

  /// Adds an action. If its range begins with a wait for its input, the action starts after the
  /// wait.
  void add_action(plan::Action action, double start, double end, TracedStep& step) {
    double first_work = end;
    for (const Operator& own : between(events_, start, end))
      if (own.kind == OperatorKind::Engine ||
          (own.kind == OperatorKind::Compute && has_arrow(own))) {
        first_work = own.start;
        break;
      }
    const auto behind = std::upper_bound(receive_ends_.begin(), receive_ends_.end(), first_work);
    if (behind != receive_ends_.begin())
      start = std::max(start, *std::prev(behind));
    TracedAction traced{action, start, std::max(start, end)};
    if (action.kind == plan::ActionKind::Forward)
      traced.operators = operators_of(start, end);
    step.actions.push_back(std::move(traced));
  }

  std::vector<TracedOperator> operators_of(double start, double end) const {
    std::vector<TracedOperator> operators;
    for (const Operator& own : between(events_, start, end)) {
      if (own.kind != OperatorKind::Compute || !has_arrow(own))
        continue;
      TracedOperator traced{events_.names[own.name], own.end - own.start};
      for (auto arrow = first_arrow(own.start);
           arrow != events_.arrows.end() && arrow->from <= own.end; ++arrow)
        traced.backward += backward_at(arrow->to);
      operators.push_back(std::move(traced));
    }
    return operators;
  }

  /// Returns the duration of the engine's operator that is running at `time`.
  double backward_at(double time) const {
    auto own = std::upper_bound(events_.operators.begin(), events_.operators.end(), time,
                                [](double t, const Operator& o) { return t < o.start; });
    while (own != events_.operators.begin()) {
      --own;
      if (own->kind == OperatorKind::Engine)
        return own->end >= time ? own->end - own->start : 0;
    }
    return 0;
  }

  // ---- operators

  void add_groups(const Window& window, TracedStep& step) {
    const auto groups = operator_groups(events_, window.start, window.end);
    if (!groups)
      refuse(fmt::format(
          "the forward operators of {} do not fall into microbatches: a forward and its backward "
          "are found as the operators between two transfers, so several stages on a rank or a "
          "backward in two halves need ranges as torch's schedule runtime writes them (\"PP:2F0\")",
          window.number ? fmt::format("ProfilerStep#{}", *window.number) : "a step"));
    for (const OperatorGroup& group : *groups) {
      const auto kind = group.is_backward ? plan::ActionKind::Backward : plan::ActionKind::Forward;
      TracedAction traced{{kind, -1, group.microbatch}, group.start, group.end};
      if (!group.is_backward)
        traced.operators = operators_of(group.start, group.end);
      step.actions.push_back(std::move(traced));
    }
  }

  /// Assigns each receive to the next action, and each send to the previous one.
  void add_neighboring_transfers(const Window& window, TracedStep& step) {
    sort_actions(step);
    const auto kind_of = [](const TracedAction& action, bool send) {
      const bool forward = action.action.kind == plan::ActionKind::Forward;
      using Kind = plan::InstructionKind;
      if (send)
        return forward ? Kind::SendActivation : Kind::SendGradient;
      return forward ? Kind::ReceiveActivation : Kind::ReceiveGradient;
    };
    const auto add = [&](const TracedAction& action, const Operator& own, RangeKind work) {
      const bool send = work == RangeKind::Send;
      const plan::Instruction instruction{kind_of(action, send), -1, action.action.microbatch};
      const double end = end_of_work(own, work);
      // Several tensors are one transfer.
      for (TracedTransfer& known : step.transfers)
        if (known.instruction == instruction) {
          known.end = std::max(known.end, end);
          return;
        }
      step.transfers.push_back({instruction, own.start, end});
    };
    for (const Operator& own : between(events_, window.start, window.end)) {
      const auto next = std::find_if(step.actions.begin(), step.actions.end(),
                                     [&](const TracedAction& a) { return a.start >= own.start; });
      if (own.kind == OperatorKind::Receive && next != step.actions.end())
        add(*next, own, RangeKind::Receive);
      if (own.kind == OperatorKind::Send && next != step.actions.begin())
        add(*std::prev(next), own, RangeKind::Send);
    }
  }

  /// Returns the end of the transfer's range, which begins while its operator runs.
  double end_of_work(const Operator& own, RangeKind kind) {
    const auto& ranges = of(kind);
    const auto range =
        std::lower_bound(ranges.begin(), ranges.end(), own.start,
                         [](const Range* r, double time) { return r->start < time; });
    return range != ranges.end() && (*range)->start <= own.end ? std::max((*range)->end, own.end)
                                                               : own.end;
  }

  // ---- sends and receives of Megatron-LM

  /// Finds the actions between transfers: one that ends with sending an output is a forward, one
  /// that ends with sending a gradient is a backward. There is a forward between "recv_forward" and
  /// "send_forward_recv_backward".
  void add_between(const Window& window, TracedStep& step) {
    using Kind = plan::InstructionKind;
    int forwards = 0, backwards = 0;
    double free = 0;
    for (const Range* range : of(RangeKind::Passing)) {
      if (range->start < window.start || range->start >= window.end)
        continue;
      const auto transfer = [&](Kind kind, int microbatch) {
        step.transfers.push_back({{kind, -1, microbatch}, range->start, range->end});
      };
      const std::string_view name = range->name;
      if (name.starts_with("send_forward")) {
        add_action({plan::ActionKind::Forward, -1, forwards}, free, range->start, step);
        transfer(Kind::SendActivation, forwards++);
      } else if (name.starts_with("send_backward")) {
        add_action({plan::ActionKind::Backward, -1, backwards}, free, range->start, step);
        transfer(Kind::SendGradient, backwards++);
      }
      if (name.ends_with("recv_forward"))
        transfer(Kind::ReceiveActivation, forwards);
      else if (name.ends_with("recv_backward"))
        transfer(Kind::ReceiveGradient, backwards);
      free = range->end;
    }
  }

  // ---- common parts

  void add_optimizer(const Window& window, TracedStep& step) {
    for (const Range* range : of(RangeKind::Optimizer))
      if (range->start >= window.start && range->start < window.end) {
        if (step.optimizer_end == 0)
          step.optimizer_start = range->start;
        step.optimizer_end = range->end;
      }
  }

  static void sort_actions(TracedStep& step) {
    std::stable_sort(step.actions.begin(), step.actions.end(),
                     [](const auto& a, const auto& b) { return a.start < b.start; });
  }

  /// Replaces the host's times by those of the device if it did work: by the range's device
  /// counterpart or, without one, by the work launched during the range.
  bool put_on_device(TracedStep& step) {
    if (events_.device.empty())
      return put_on_twins(step);
    bool found = false;
    double free = 0;
    for (TracedAction& action : step.actions) {
      double start = 0, end = 0;
      auto work = std::lower_bound(
          events_.device.begin(), events_.device.end(), action.start,
          [](const PipelineEvents::DeviceWork& own, double time) { return own.launched < time; });
      for (; work != events_.device.end() && work->launched < action.end; ++work) {
        start = end == 0 ? work->start : std::min(start, work->start);
        end = std::max(end, work->end);
      }
      if (end == 0)
        continue;
      found = true;
      action.operators.clear();  // their times are the host's
      action.start = std::max(start, free);
      action.end = free = std::max(action.start, end);
    }
    return found;
  }

  /// Uses only the ranges' device counterparts, on the stream with most of their time.
  bool put_on_twins(TracedStep& step) const {
    std::map<std::string, double> busy;
    for (const Range* twin : twins_)
      busy[twin->stream] += twin->end - twin->start;
    if (busy.empty())
      return false;
    const std::string& stream =
        std::max_element(busy.begin(), busy.end(), [](const auto& a, const auto& b) {
          return a.second < b.second;
        })->first;
    double free = 0;
    for (TracedAction& action : step.actions) {
      const plan::Action& own = action.action;
      const bool forward = own.kind == plan::ActionKind::Forward;
      for (const Range* twin : twins_)
        if (twin->stream == stream && twin->end > action.start &&
            (own.stage >= 0 ? twin->name == to_string(own)
                            : (twin->kind == RangeKind::Forward) == forward &&
                                  index_of(twin->name) == own.microbatch)) {
          action.start = std::max(twin->start, free);
          action.end = free = std::max(action.start, twin->end);
          action.operators.clear();
          break;
        }
    }
    return true;
  }

  static void finish(TracedStep& step) {
    sort_actions(step);
    std::map<std::pair<int, int>, int> open;  // halves of backwards still due for the forwards so
                                              // far
    int forwards = 0;
    for (const TracedAction& traced : step.actions) {
      const plan::Action& action = traced.action;
      step.microbatches = std::max(step.microbatches, action.microbatch + 1);
      int& parts = open[{action.stage, action.microbatch}];
      if (action.kind == plan::ActionKind::Forward) {
        parts += 2;
        ++forwards;
      } else if (action.kind == plan::ActionKind::Backward) {
        parts -= 2;
      } else if (action.kind != plan::ActionKind::Recompute) {
        parts -= 1;
      }
    }
    step.whole =
        step.whole && forwards > 0 &&
        std::all_of(open.begin(), open.end(), [](const auto& own) { return own.second == 0; });
  }

  const PipelineEvents& events_;
  std::map<RangeKind, std::vector<const Range*>> by_kind_;
  std::vector<const Range*> actions_;  // of the host, by time
  std::vector<const Range*> twins_;    // of a device
  std::vector<double> receive_ends_;
};

}  // namespace

std::string to_string(ActionSource source) {
  switch (source) {
    case ActionSource::Ranges:
      return "ranges";
    case ActionSource::MicrobatchRanges:
      return "microbatch ranges";
    case ActionSource::Passing:
      return "sends and receives";
    case ActionSource::Functions:
      return "functions";
    case ActionSource::Operators:
      return "operators";
  }
  return {};
}

TracedRank traced_rank(const PipelineEvents& events) { return RankTracer(events).trace(); }

}  // namespace pipewright::trace
