#include "old_memory.hpp"

#include <algorithm>
#include <cassert>

#include "pipewright/plan/computation.hpp"

namespace pipewright::sim {
namespace {

using plan::Bytes;
using plan::Instruction;
using plan::InstructionKind;
using plan::Seconds;

/// What happens first when several things happen at one instant.
enum class Order { TransientEnds, Frees, Allocates, TransientBegins };

struct Change {
  Seconds time;
  Order order = Order::Allocates;
  Bytes amount;
};

class Ledger {
 public:
  Ledger(const plan::Program& program, const std::vector<plan::StageCost>& costs)
      : program_(program),
        costs_(costs),
        forward_only_(plan::is_forward_only(program)),
        changes_(program.ranks.size()) {}

  void enter(const Instruction& i, Seconds start, Seconds end) {
    const plan::StageCost& cost = costs_[static_cast<std::size_t>(i.stage)];
    switch (i.kind) {
      case InstructionKind::Load:
        allocate(i, start, cost.loaded);
        break;
      case InstructionKind::Forward:
        allocate(i, start, cost.activation);
        if (forward_only_)
          free(i, end, cost.activation + cost.loaded);
        transient(i, start, end, cost.forward_peak - cost.activation);
        break;
      case InstructionKind::Backward:
        transient(i, start, end, cost.backward_peak);
        hand_gradients(i, end);
        free(i, end, cost.activation + cost.loaded);
        break;
      case InstructionKind::InputGradient:
        transient(i, start, end, cost.backward_peak);
        hand_gradients(i, end);
        break;
      case InstructionKind::WeightGradient:
        transient(i, start, end, cost.backward_peak);
        free(i, end, cost.activation + cost.loaded);
        break;
      case InstructionKind::Recompute:
      case InstructionKind::SendActivation:
      case InstructionKind::ReceiveActivation:
      case InstructionKind::SendGradient:
      case InstructionKind::ReceiveGradient:
      case InstructionKind::ReduceTied:
      case InstructionKind::ReduceGradients:
      case InstructionKind::OptimizerStep:
      case InstructionKind::Unshard:
      case InstructionKind::Reshard:
        break;
    }
  }

  std::vector<plan::MemorySample> curve() {
    std::vector<plan::MemorySample> samples;
    for (std::size_t rank = 0; rank < changes_.size(); ++rank) {
      auto& changes = changes_[rank];
      std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
        return a.time != b.time ? a.time < b.time : a.order < b.order;
      });
      Bytes held = standing(static_cast<int>(rank));
      samples.push_back({static_cast<int>(rank), Seconds{}, held});
      for (const Change& change : changes) {
        held += change.amount;
        // A later change at the same instant would hide this one, and a peak with it.
        samples.push_back({static_cast<int>(rank), change.time, held});
      }
    }
    return samples;
  }

 private:
  std::vector<Change>& changes_of(const Instruction& i) {
    const int rank = program_.placement.rank_of(i.stage, i.microbatch);
    return changes_[static_cast<std::size_t>(rank)];
  }

  Bytes standing(int rank) const {
    Bytes sum;
    for (std::size_t stage = 0; stage < costs_.size(); ++stage)
      if (program_.placement.holds(rank, static_cast<int>(stage)))
        sum += costs_[stage].parameters + costs_[stage].gradients + costs_[stage].optimizer_state;
    return sum;
  }

  void allocate(const Instruction& i, Seconds time, Bytes amount) {
    changes_of(i).push_back({time, Order::Allocates, amount});
  }

  void free(const Instruction& i, Seconds time, Bytes amount) {
    changes_of(i).push_back({time, Order::Frees, Bytes{} - amount});
  }

  void transient(const Instruction& i, Seconds start, Seconds end, Bytes amount) {
    if (amount <= Bytes{})
      return;
    changes_of(i).push_back({start, Order::TransientBegins, amount});
    changes_of(i).push_back({end, Order::TransientEnds, Bytes{} - amount});
  }

  /// The backward of `stage` made the gradient for the stage before, and used up the one that the
  /// stage after had made: tensors are handed over by reference, so their maker's rank held it.
  void hand_gradients(const Instruction& i, Seconds end) {
    const int stage = i.stage;
    allocate(i, end, costs_[static_cast<std::size_t>(stage)].input_gradient_bytes);
    if (stage + 1 < static_cast<int>(costs_.size()))
      free({i.kind, stage + 1, i.microbatch}, end,
           costs_[static_cast<std::size_t>(stage) + 1].input_gradient_bytes);
  }

  const plan::Program& program_;
  const std::vector<plan::StageCost>& costs_;
  bool forward_only_;
  std::vector<std::vector<Change>> changes_;  // by rank
};

}  // namespace

std::vector<plan::MemorySample> memory_curve(const plan::Program& program,
                                             const std::vector<plan::StageCost>& costs,
                                             const std::vector<plan::Span>& spans) {
  Ledger ledger(program, costs);
  std::size_t at = 0;
  for (const auto& instructions : program.ranks)
    for (const Instruction& i : instructions) {
      ledger.enter(i, spans[at].start, spans[at].end);
      ++at;
    }
  assert(at == spans.size());
  return ledger.curve();
}

}  // namespace pipewright::sim
