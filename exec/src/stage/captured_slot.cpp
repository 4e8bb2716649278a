#include "captured_slot.hpp"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "pipewright/plan/error.hpp"

namespace pipewright::exec {
namespace {

bool fits(const at::Tensor& memory, const at::Tensor& value) {
  if (memory.defined() != value.defined() || !value.defined())
    return memory.defined() == value.defined();
  return memory.sizes() == value.sizes() && memory.scalar_type() == value.scalar_type();
}

/// Stores values, detached from their graph, in the memory of `place`, which the first call
/// creates.
void put(Tensors& place, const Tensors& values) {
  const at::NoGradGuard no_grad;
  const bool is_first = place.empty();
  for (std::size_t v = 0; v < values.size(); ++v)
    if (is_first)
      place.push_back(values[v].defined()
                          ? values[v].detach().requires_grad_(values[v].requires_grad())
                          : values[v]);
    else if (values[v].defined())
      place[v].copy_(values[v]);
}

void settle_in(Tensors& memory, Tensors& values) {
  const at::NoGradGuard no_grad;
  if (memory.empty())
    for (const at::Tensor& value : values)
      memory.push_back(value.defined() ? at::empty_like(value) : value);
  bool fit = memory.size() == values.size();
  for (std::size_t v = 0; fit && v < values.size(); ++v)
    fit = fits(memory[v], values[v]);
  if (!fit)
    throw plan::InputError(
        "a microbatch differs in size or type from the captured one: leave training.cuda_graphs "
        "out");
  for (std::size_t v = 0; v < values.size(); ++v)
    if (values[v].defined() && !values[v].is_alias_of(memory[v])) {
      memory[v].copy_(values[v]);
      values[v] = memory[v].detach().requires_grad_(values[v].requires_grad());
    }
}

}  // namespace

void CapturedSlot::settle(const std::vector<Tensors*>& held) {
  memory_.resize(held.size());
  for (std::size_t place = 0; place < held.size(); ++place)
    if (!held[place]->empty())
      settle_in(memory_[place], *held[place]);
}

const Computed& CapturedSlot::perform(plan::InstructionKind kind, BackwardKind backward,
                                      const std::function<Computed()>& part) {
  Part& own = parts_[{kind, backward}];
  if (!own.work)
    own.work = capturer_->capture([&own, part] {
      const Computed computed = part();
      put(own.computed.values, computed.values);
      put(own.computed.gradients, computed.gradients);
    });
  own.work->replay();
  return own.computed;
}

}  // namespace pipewright::exec
