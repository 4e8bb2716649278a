#include "held_amounts.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace pipewright::sim {
namespace {

/// The costs of a stage and of its neighbors for a microbatch of some length.
class Sizes {
 public:
  Sizes(const StepCosts& costs, int stage, double length)
      : stages_(costs.stages), at_(static_cast<std::size_t>(stage)), length_(length) {}

  const plan::StageCost& cost() const { return stages_[at_]; }
  const plan::StageCost& before() const { return stages_[at_ - 1]; }
  const plan::StageCost& after() const { return stages_[at_ + 1]; }
  /// Returns true if the next stage's weight gradient needs this stage's output.
  bool is_for_weights_after() const {
    return at_ + 1 < stages_.size() && after().input_for_weights;
  }
  /// Returns true if the previous stage's weight gradient needs the gradient that this stage
  /// produces.
  bool is_for_weights_before() const { return at_ > 0 && before().output_gradient_for_weights; }

  std::int64_t operator()(plan::Bytes bytes) const {
    return length_ == 1 ? bytes.value : std::llround(static_cast<double>(bytes.value) * length_);
  }

 private:
  const std::vector<plan::StageCost>& stages_;
  const std::size_t at_;
  const double length_;
};

std::int64_t beyond(std::int64_t peak, std::int64_t kept) {
  return std::max<std::int64_t>(0, peak - kept);
}

std::int64_t at_once(const plan::StageCost& stage, plan::Bytes whole) {
  return stage.whole_at_once == 1
             ? whole.value
             : plan::whole_bytes(stage.whole_at_once * static_cast<double>(whole.value)).value;
}

struct AmountRow {
  Amount amount;
  Owner owner;
  std::int64_t (*bytes)(const Sizes&);
};

/// An output that a layer saves belongs to its activation; `output_alone` is then 0.
constexpr AmountRow amounts[] = {
    {Amount::Loaded, Owner::Inputs, [](const Sizes& s) { return s(s.cost().loaded); }},
    {Amount::Activation, Owner::Activations, [](const Sizes& s) { return s(s.cost().activation); }},
    {Amount::ActivationOfInputGradient, Owner::Activations,
     [](const Sizes& s) { return s(s.cost().freed_by_input_gradient); }},
    {Amount::ActivationOfWeightGradient, Owner::Activations,
     [](const Sizes& s) {
       return s(s.cost().activation) - s(s.cost().freed_by_input_gradient) -
              s(s.cost().output_alone);
     }},
    {Amount::OutputAlone, Owner::Activations,
     [](const Sizes& s) {
       return s.is_for_weights_after() ? std::int64_t{0} : s(s.cost().output_alone);
     }},
    {Amount::OutputAloneForWeights, Owner::Activations,
     [](const Sizes& s) {
       return s.is_for_weights_after() ? s(s.cost().output_alone) : std::int64_t{0};
     }},
    {Amount::ActivationLessOutput, Owner::Activations,
     [](const Sizes& s) { return s(s.cost().activation) - s(s.cost().output); }},
    {Amount::Output, Owner::Activations, [](const Sizes& s) { return s(s.cost().output); }},
    {Amount::OutputForInputGradient, Owner::Activations,
     [](const Sizes& s) {
       return s.is_for_weights_after() ? std::int64_t{0} : s(s.cost().output);
     }},
    {Amount::OutputForWeights, Owner::Activations,
     [](const Sizes& s) {
       return s.is_for_weights_after() ? s(s.cost().output) : std::int64_t{0};
     }},
    {Amount::ForwardTransient, Owner::Transients,
     [](const Sizes& s) { return beyond(s(s.cost().forward_peak), s(s.cost().activation)); }},
    {Amount::BackwardTransient, Owner::Transients,
     [](const Sizes& s) { return beyond(s(s.cost().backward_peak), 0); }},
    {Amount::InputGradientTransient, Owner::Transients,
     [](const Sizes& s) { return beyond(s(s.cost().input_gradient_peak), 0); }},
    {Amount::WeightGradientTransient, Owner::Transients,
     [](const Sizes& s) { return beyond(s(s.cost().weight_gradient_peak), 0); }},
    {Amount::RerunKept, Owner::Activations, [](const Sizes& s) { return s(s.cost().rerun.kept); }},
    {Amount::RerunForwardTransient, Owner::Transients,
     [](const Sizes& s) {
       return beyond(s(s.cost().rerun.forward_peak), s(s.cost().rerun.kept) + s(s.cost().output));
     }},
    {Amount::RemadeOfInputGradient, Owner::Activations,
     [](const Sizes& s) {
       return s(s.cost().rerun.freed_by_input_gradient) + s(s.cost().output_alone);
     }},
    {Amount::RemadeOfWeightGradient, Owner::Activations,
     [](const Sizes& s) {
       return s(s.cost().rerun.recomputed_bytes) - s(s.cost().rerun.freed_by_input_gradient) -
              s(s.cost().output_alone);
     }},
    {Amount::RerunTransient, Owner::Transients,
     [](const Sizes& s) {
       return beyond(s(s.cost().rerun.rerun_peak), s(s.cost().rerun.recomputed_bytes));
     }},
    {Amount::RerunBackwardTransient, Owner::Transients,
     [](const Sizes& s) { return beyond(s(s.cost().rerun.backward_peak), 0); }},
    {Amount::RerunInputGradientTransient, Owner::Transients,
     [](const Sizes& s) { return beyond(s(s.cost().rerun.input_gradient_peak), 0); }},
    {Amount::RerunForWeights, Owner::Activations,
     [](const Sizes& s) { return s(s.cost().rerun.left_for_weights); }},
    {Amount::GradientsForWeights, Owner::InputGradients,
     [](const Sizes& s) { return s(s.cost().gradients_for_weights); }},
    {Amount::InputGradient, Owner::InputGradients,
     [](const Sizes& s) { return s(s.cost().input_gradient_bytes); }},
    {Amount::InputGradientOfInput, Owner::InputGradients,
     [](const Sizes& s) {
       return s.is_for_weights_before() ? std::int64_t{0} : s(s.cost().input_gradient_bytes);
     }},
    {Amount::InputGradientForWeights, Owner::InputGradients,
     [](const Sizes& s) {
       return s.is_for_weights_before() ? s(s.cost().input_gradient_bytes) : std::int64_t{0};
     }},
    {Amount::ReceivedActivation, Owner::Buffers,
     [](const Sizes& s) { return s(s.before().output); }},
    {Amount::ReceivedGradient, Owner::Buffers,
     [](const Sizes& s) {
       return s.cost().output_gradient_for_weights ? std::int64_t{0}
                                                   : s(s.after().input_gradient_bytes);
     }},
    {Amount::ReceivedGradientForWeights, Owner::Buffers,
     [](const Sizes& s) {
       return s.cost().output_gradient_for_weights ? s(s.after().input_gradient_bytes)
                                                   : std::int64_t{0};
     }},
    {Amount::ParametersWhole, Owner::Parameters,
     [](const Sizes& s) { return at_once(s.cost(), s.cost().parameters); }},
    {Amount::ParametersReceived, Owner::Buffers,
     [](const Sizes& s) { return at_once(s.cost(), s.cost().parameters_elsewhere); }},
    {Amount::GradientsWhole, Owner::Gradients,
     [](const Sizes& s) { return at_once(s.cost(), s.cost().gradients); }},
    {Amount::GradientsReceived, Owner::Buffers,
     [](const Sizes& s) { return at_once(s.cost(), s.cost().gradients_elsewhere); }},
    {Amount::GradientsAside, Owner::Gradients,
     [](const Sizes& s) { return standing_gradients(s.cost()).value; }},
};

static_assert([] {
  std::size_t at = 0;
  for (const AmountRow& row : amounts)
    if (static_cast<std::size_t>(row.amount) != at++)
      return false;
  return at == static_cast<std::size_t>(Amount::GradientsAside) + 1;
}());

const AmountRow& row_of(Amount amount) { return amounts[static_cast<std::size_t>(amount)]; }

}  // namespace

std::int64_t bytes_of(Amount amount, const StepCosts& costs, int stage, double length) {
  return row_of(amount).bytes({costs, stage, length});
}

Owner owner_of(Amount amount) { return row_of(amount).owner; }

namespace {

/// Returns the most memory that the work on one microbatch holds at once, the first time.
plan::Bytes most_of_parts(const plan::StageCost& cost, bool splits, bool reruns) {
  const plan::RecomputeCost& rerun = cost.rerun;
  const plan::Bytes forward = reruns ? rerun.forward_peak : cost.forward_peak;
  const plan::Bytes before_rerun = rerun.kept + cost.output;
  const plan::Bytes kept = reruns ? before_rerun + rerun.recomputed_bytes : cost.activation;
  plan::Bytes most = std::max(forward, reruns ? before_rerun + rerun.rerun_peak : plan::Bytes{});
  if (!splits)
    return std::max(most, kept + (reruns ? rerun.backward_peak_apart : cost.backward_peak_apart));
  most = std::max(most, kept + (reruns ? rerun.input_gradient_peak : cost.input_gradient_peak));
  const plan::Bytes freed = reruns ? rerun.freed_by_input_gradient - rerun.left_for_weights
                                   : cost.freed_by_input_gradient;
  return std::max(most, kept - freed + cost.gradients_for_weights + cost.input_gradient_bytes +
                            cost.weight_gradient_peak_apart);
}

}  // namespace

plan::Bytes slot_bytes(const StepCosts& costs, int stage, bool splits, bool reruns) {
  const auto at = static_cast<std::size_t>(stage);
  const plan::StageCost& cost = costs.stages[at];
  const bool is_last = at + 1 == costs.stages.size();
  plan::Bytes copies = cost.loaded;
  if (stage > 0)
    copies += costs.stages[at - 1].output;
  if (!is_last)
    copies += costs.stages[at + 1].input_gradient_bytes;
  const plan::Bytes made = cost.input_gradient_bytes + cost.gradients + cost.output;
  return copies + std::max(most_of_parts(cost, splits, reruns), made);
}

}  // namespace pipewright::sim
