#include "pipewright/exec/training/optimizer.hpp"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include "pipewright/plan/error.hpp"

namespace pipewright::exec {

namespace {

/// Bytes of 32-bit gradients that exist at a time if gradients have 16 bits. They are cast in
/// chunks of about this size.
constexpr std::size_t most_cast = std::size_t{1} << 19;

/// Tensors cut after their last whole vector. The rests of all tensors form one tensor, padded to
/// whole vectors, in a list of one; the list is empty if there are no rests.
class InVectors {
 public:
  explicit InVectors(const Tensors& tensors) {
    std::int64_t left = 0;
    for (const at::Tensor& tensor : tensors) {
      whole.push_back(tensor);
      const std::int64_t end = tensor.numel() % longest_vector;
      if (end == 0 || !tensor.is_contiguous())
        continue;
      const at::Tensor flat = tensor.detach().view(-1);
      whole.back() = flat.narrow(0, 0, flat.numel() - end);
      ends_.push_back(flat.narrow(0, flat.numel() - end, end));
      left += end;
    }
    if (left > 0)
      rest = {at::constant_pad_nd(at::cat(ends_), {0, longest_vector - left % longest_vector})};
  }

  void put_back() const {
    std::int64_t at = 0;
    for (const at::Tensor& end : ends_) {
      end.copy_(rest.front().narrow(0, at, end.numel()));
      at += end.numel();
    }
  }

  Tensors whole, rest;

 private:
  Tensors ends_;
};

/// Returns an alias of a slice. Autograd counts changes to the parameter itself, and graphs that
/// use a gathered parameter would report it as modified when it is gathered again.
at::Tensor memory_of(const Slice& slice, const std::vector<at::Tensor>& parameters) {
  return slice.of(parameters[slice.parameter].variable_data());
}

}  // namespace

bool is_matrix(const RuledParameter& parameter) {
  return parameter.sizes.size() > 1 && !parameter.name.ends_with("bias");
}

std::string name_of(const OptimizerOptions& options) {
  return options.own ? options.own_name : plan::to_string(options.kind);
}

double learning_rate_at(const OptimizerOptions& options, int step) {
  if (options.rate_at)
    return options.rate_at(step);
  const double highest = options.learning_rate, lowest = options.lowest_learning_rate;
  if (step < options.warm_up_steps)
    return highest * (step + 1) / options.warm_up_steps;
  if (options.decay == plan::Decay::None || options.decay_steps <= 0)
    return highest;
  const double done =
      std::min(1.0, static_cast<double>(step - options.warm_up_steps) / options.decay_steps);
  const double left =
      options.decay == plan::Decay::Linear ? 1 - done : (1 + std::cos(std::numbers::pi * done)) / 2;
  return lowest + (highest - lowest) * left;
}

Optimizer::Optimizer(std::vector<at::Tensor> parameters, const OptimizerOptions& options,
                     Shard shard, Places places, std::vector<bool> of_experts,
                     const std::vector<ParameterRule>& rules, std::vector<RuledParameter> named)
    : options_(options),
      shard_(shard),
      places_(places),
      parameters_(std::move(parameters)),
      copied_(parameters_, std::move(of_experts)),
      named_(std::move(named)) {
  const at::NoGradGuard no_grad;
  const auto zeroed = [&](const at::Tensor& like) {
    return at::zeros_like(like, options.fp32_gradients ? at::kFloat : like.scalar_type());
  };
  for (at::Tensor& parameter : parameters_) {
    if (!shard_.gradients && !parameter.grad().defined())
      parameter.mutable_grad() = zeroed(parameter);
    if (shard_.count > 1 && !parameter.is_contiguous())
      throw plan::InputError("a parameter that is not contiguous cannot be sharded");
    has_masters_ = has_masters_ || parameter.element_size() < 4;
  }
  own_ = copied_.slices({shard_.index, shard_.count}, shard_.of_experts);
  for (const Slice& slice : own_) {
    rules_.push_back(rules.empty() ? ParameterRule{options.weight_decay}
                                   : rules.at(slice.parameter));
    at::Tensor value = slice.of(parameters_[slice.parameter]);
    if (shard_.parameters)
      value = values_.emplace_back(is_divided(slice.parameter) ? value.detach().clone()
                                                               : memory_of(slice, parameters_));
    if (shard_.gradients)
      gradients_.push_back(zeroed(value));
    updated_.push_back(has_masters_ ? value.detach().to(at::kFloat, false, /*copy=*/true) : value);
    if (options_.own)
      continue;
    if (plan::states_of(options_.kind) > 0)
      first_moments_.push_back(at::zeros_like(updated_.back()));
    if (options_.kind != plan::Optimizer::AdamW)
      continue;
    second_moments_.push_back(at::zeros_like(updated_.back()));
    step_counts_.push_back(at::zeros({}, updated_.back().options().dtype(at::kFloat)));
  }
  if (options_.own && !own_.empty())
    make_own();
}

/// Makes the user's optimizer with a parameter group for each rule, in the order of their first
/// parameters.
void Optimizer::make_own() {
  std::vector<ParameterGroup> groups;
  for (std::size_t s = 0; s < own_.size(); ++s) {
    seen_.push_back(updated_[s].detach());
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const ParameterGroup& each) { return each.rule == rules_[s]; });
    if (group == groups.end())
      group = groups.insert(groups.end(), ParameterGroup{rules_[s], {}});
    group->parameters.push_back(
        {named_.empty() ? RuledParameter() : named_.at(own_[s].parameter), seen_[s]});
  }
  own_optimizer_ = options_.own(groups);
  if (own_optimizer_ == nullptr)
    throw plan::InputError("the function that makes an optimizer returned null");
  for (const State& state : own_states())
    if (state.value.dim() > 0 && state.value.numel() != seen_[slice_at(state.parameter)].numel())
      throw plan::InputError(
          fmt::format("the optimizer's state '{}' has {} elements, but its parameter has {}. It "
                      "must have as many, or be a scalar tensor",
                      state.name, state.value.numel(), seen_[slice_at(state.parameter)].numel()));
}

Tensors Optimizer::slices(int shard, CopiesOf copies) const {
  const int count = copies == CopiesOf::Rest ? shard_.count : shard_.of_experts.count;
  Tensors parts;
  for (const Slice& slice : copied_.slices(copies, {shard, count}))
    parts.push_back(memory_of(slice, parameters_));
  return parts;
}

at::Tensor Optimizer::updated_part(std::size_t slice) const {
  return shard_.parameters ? values_[slice] : memory_of(own_[slice], parameters_);
}

Tensors Optimizer::own_slices(CopiesOf copies) const {
  Tensors parts;
  for (const std::size_t place : own_places(copies))
    parts.push_back(updated_part(place));
  return parts;
}

std::vector<std::size_t> Optimizer::own_places(CopiesOf copies) const {
  std::vector<std::size_t> places;
  for (std::size_t s = 0; s < own_.size(); ++s)
    if (copied_.is_of_experts(own_[s].parameter) == (copies == CopiesOf::Experts))
      places.push_back(s);
  return places;
}

Tensors Optimizer::own_slices() const {
  Tensors parts;
  for (std::size_t s = 0; s < own_.size(); ++s)
    parts.push_back(updated_part(s));
  return parts;
}

/// Returns the first slice of this parameter or of a later one.
std::size_t Optimizer::slice_at(std::size_t parameter) const {
  const auto found = std::lower_bound(
      own_.begin(), own_.end(), parameter,
      [](const Slice& slice, std::size_t wanted) { return slice.parameter < wanted; });
  return static_cast<std::size_t>(found - own_.begin());
}

void Optimizer::step(std::size_t first, std::size_t last, double learning_rate,
                     const GradientUse& use) {
  const at::NoGradGuard no_grad;
  if (own_optimizer_) {
    if (first < last && last == parameters_.size())
      step_own(learning_rate, use);
    return;
  }
  const std::size_t end = slice_at(last);
  for (std::size_t begin = slice_at(first); begin < end;) {
    Tensors gradients;
    std::size_t bytes = 0;
    for (std::size_t s = begin; s < end && (s == begin || bytes < most_cast); ++s) {
      at::Tensor gradient = gradient_of(s);
      if (has_masters_) {
        gradient = gradient.to(at::kFloat);
        bytes += gradient.nbytes();
      }
      if (use.scale.defined())
        gradient.mul_(use.scale);
      gradients.push_back(std::move(gradient));
    }
    update(gradients, begin, learning_rate, use.overflow);
    write_back(begin, begin + gradients.size());
    begin += gradients.size();
  }
  zero_gradients(first, last);
}

at::Tensor Optimizer::gradient_of(std::size_t slice) const {
  return shard_.gradients ? gradients_[slice]
                          : own_[slice].of(parameters_[own_[slice].parameter].grad());
}

/// Copies the updated master copies to the parameters.
void Optimizer::write_back(std::size_t first_slice, std::size_t end) {
  for (std::size_t s = first_slice; has_masters_ && s < end; ++s)
    (shard_.parameters ? values_[s] : own_[s].of(parameters_[own_[s].parameter]))
        .copy_(updated_[s]);
}

void Optimizer::zero_gradients(std::size_t first, std::size_t last) {
  for (std::size_t s = slice_at(first); shard_.gradients && s < slice_at(last); ++s)
    gradients_[s].zero_();
  for (std::size_t p = first; !shard_.gradients && p < last; ++p)
    parameters_[p].grad().zero_();
}

/// Steps all parameters at once, so all their gradients exist in the optimizer's type at the same
/// time. Overflow is checked on the host, which waits for the device.
void Optimizer::step_own(double learning_rate, const GradientUse& use) {
  for (std::size_t s = 0; s < own_.size(); ++s) {
    at::Tensor gradient = gradient_of(s);
    if (use.scale.defined())
      gradient.mul_(use.scale);
    seen_[s].mutable_grad() = gradient.to(seen_[s].scalar_type());
  }
  if (!use.overflow.defined() || use.overflow.item<float>() == 0)
    own_optimizer_->step(learning_rate);
  for (at::Tensor& seen : seen_)
    seen.mutable_grad().reset();
  write_back(0, own_.size());
  zero_gradients(0, parameters_.size());
}

/// Updates the slices of one rule at a time.
void Optimizer::update(const Tensors& gradients, std::size_t begin, double learning_rate,
                       const at::Tensor& overflow) {
  std::map<ParameterRule, std::vector<std::size_t>> by_rule;
  for (std::size_t at = 0; at < gradients.size(); ++at)
    by_rule[rules_[begin + at]].push_back(at);
  for (const auto& [rule, slices] : by_rule) {
    const auto own = [slices = &slices](const Tensors& of_all, std::size_t first) {
      Tensors some;
      for (const std::size_t at : *slices)
        if (!of_all.empty())
          some.push_back(of_all[first + at]);
      return some;
    };
    const Updated all{own(updated_, begin), own(gradients, 0), own(first_moments_, begin),
                      own(second_moments_, begin), own(step_counts_, begin)};
    for (const at::Tensor& count : all.step_counts)
      overflow.defined() ? count.add_(1 - overflow) : count.add_(1);
    places_ == Places::MayDiffer ? update_in_vectors(all, rule, learning_rate, overflow)
                                 : update(all, rule, learning_rate, overflow);
  }
}

void Optimizer::update_in_vectors(const Updated& all, const ParameterRule& rule,
                                  double learning_rate, const at::Tensor& overflow) const {
  const InVectors values(all.values), gradients(all.gradients), first(all.first_moments),
      second(all.second_moments);
  update({values.whole, gradients.whole, first.whole, second.whole, all.step_counts}, rule,
         learning_rate, overflow);
  if (values.rest.empty())
    return;
  Tensors count = all.step_counts;  // all counts are equal
  count.resize(std::min<std::size_t>(1, count.size()));
  update({values.rest, gradients.rest, first.rest, second.rest, count}, rule, learning_rate,
         overflow);
  for (const InVectors* const changed : {&values, &first, &second})
    changed->put_back();
}

void Optimizer::update(const Updated& all, const ParameterRule& rule, double learning_rate,
                       const at::Tensor& overflow) const {
  const auto found_inf = overflow.defined() ? std::optional(overflow) : std::nullopt;
  const double rate = rule.rate * learning_rate;
  if (options_.kind == plan::Optimizer::AdamW) {
    at::_fused_adamw_(all.values, all.gradients, all.first_moments, all.second_moments, {},
                      all.step_counts, rate, options_.beta1, options_.beta2, rule.weight_decay,
                      options_.epsilon, /*amsgrad=*/false,
                      /*maximize=*/false,
                      /*grad_scale=*/{}, found_inf);
    return;
  }
  const bool momentum = options_.kind == plan::Optimizer::SgdMomentum;
  at::_fused_sgd_(all.values, all.gradients, all.first_moments, rule.weight_decay,
                  momentum ? options_.momentum : 0, rate, /*dampening=*/0,
                  /*nesterov=*/false, /*maximize=*/false, /*is_first_step=*/false,
                  /*grad_scale=*/{}, found_inf);
}

void Optimizer::leave_weights(std::size_t first, std::size_t last) {
  const at::NoGradGuard no_grad;
  for (std::size_t s = slice_at(first); s < slice_at(last); ++s) {
    at::Tensor& parameter = parameters_[own_[s].parameter];
    parameter.set_data(parameter.variable_data().clone());
    // An alias, because autograd counts changes to the parameter itself, and graphs that hold the
    // old memory would report it as modified.
    if (!has_masters_)
      updated_[s] = parameter.variable_data();
    if (own_optimizer_)
      seen_[s].set_data(updated_[s]);
  }
}

Optimizer::State Optimizer::state_of(std::size_t slice, std::string name, at::Tensor value) const {
  const Slice& own = own_[slice];
  const std::int64_t numbers = parameters_[own.parameter].numel();
  const bool all = own.end - own.begin == numbers || value.dim() == 0;
  return {own.parameter, std::move(name), std::move(value), own.begin, all ? -1 : numbers};
}

std::vector<Optimizer::State> Optimizer::gradient_slices() const {
  std::vector<State> slices;
  for (std::size_t s = 0; s < own_.size(); ++s)
    slices.push_back(state_of(s, {}, gradient_of(s)));
  return slices;
}

std::vector<Optimizer::State> Optimizer::own_states() const {
  std::vector<State> states;
  for (UserOptimizerState& kept : own_optimizer_->states()) {
    const auto seen = std::find_if(seen_.begin(), seen_.end(), [&](const at::Tensor& each) {
      return each.is_same(kept.parameter);
    });
    if (seen == seen_.end())
      throw plan::InputError(fmt::format(
          "the optimizer has a state '{}' for a tensor that is not one of its parameters",
          kept.name));
    states.push_back(state_of(static_cast<std::size_t>(seen - seen_.begin()), std::move(kept.name),
                              std::move(kept.value)));
  }
  return states;
}

std::vector<Optimizer::State> Optimizer::states() const {
  std::vector<State> states = own_optimizer_ ? own_states() : std::vector<State>();
  for (std::size_t s = 0; s < own_.size(); ++s) {
    const auto add = [&](const char* name, const at::Tensor& value) {
      states.push_back(state_of(s, name, value));
    };
    if (has_masters_)
      add("master", updated_[s]);
    if (options_.own)
      continue;
    if (options_.kind == plan::Optimizer::SgdMomentum)
      add("momentum", first_moments_[s]);
    if (options_.kind != plan::Optimizer::AdamW)
      continue;
    add("exp_avg", first_moments_[s]);
    add("exp_avg_sq", second_moments_[s]);
    add("step", step_counts_[s]);  // all slices count the same steps; the first is stored for all
  }
  std::stable_sort(states.begin(), states.end(),
                   [](const State& a, const State& b) { return a.parameter < b.parameter; });
  return states;
}

void Optimizer::states_were_set() {
  if (own_optimizer_)
    own_optimizer_->states_were_set();
}

void Optimizer::refresh_masters() {
  const at::NoGradGuard no_grad;
  for (std::size_t s = 0; s < own_.size(); ++s) {
    const at::Tensor value = own_[s].of(parameters_[own_[s].parameter]);
    if (shard_.parameters)
      values_[s].copy_(value);
    if (has_masters_)
      updated_[s].copy_(value);
  }
}

}  // namespace pipewright::exec
