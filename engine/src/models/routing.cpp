#include "routing.hpp"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "pipewright/engine/models/expert_load_recorder.hpp"

namespace pipewright::engine {
namespace {

using torch::autograd::AutogradContext;

/// Gathers rows with a deterministic backward: LibTorch's own uses atomic additions on a GPU.
struct InOrderOfExperts : torch::autograd::Function<InOrderOfExperts> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& tokens,
                            const at::Tensor& order, const at::Tensor& places,
                            std::int64_t choices) {
    context->save_for_backward({places});
    context->saved_data["choices"] = choices;
    return tokens.index_select(0, at::div(order, choices, "floor"));
  }

  static exec::Tensors backward(AutogradContext* context, const exec::Tensors& gradients) {
    const at::Tensor places = context->get_saved_variables().front();
    const at::Tensor rows = gradients.front().index_select(0, places);
    return {sum_of_choices(rows.unflatten(0, {-1, context->saved_data["choices"].toInt()})),
            at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

struct InOrderOfTokens : torch::autograd::Function<InOrderOfTokens> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& rows,
                            const at::Tensor& order, const at::Tensor& places) {
    context->save_for_backward({order});
    return rows.index_select(0, places);
  }

  static exec::Tensors backward(AutogradContext* context, const exec::Tensors& gradients) {
    const at::Tensor order = context->get_saved_variables().front();
    return {gradients.front().index_select(0, order), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

Routing routing_of(const at::Tensor& chosen, int experts) {
  const at::Tensor rows = chosen.flatten();
  const at::Tensor order = at::argsort(rows, /*stable=*/true);
  const at::Tensor counts = at::bincount(rows, {}, experts).cpu();
  const auto* const first = counts.const_data_ptr<std::int64_t>();
  ExpertLoadRecorder::note({first, first + experts});
  return {.counts = {first, first + experts},
          .choices = chosen.size(-1),
          .order = order,
          .places = at::argsort(order)};
}

at::Tensor in_order_of_experts(const at::Tensor& tokens, const Routing& routing) {
  return InOrderOfExperts::apply(tokens, routing.order, routing.places, routing.choices);
}

at::Tensor in_order_of_tokens(const at::Tensor& rows, const Routing& routing) {
  return InOrderOfTokens::apply(rows, routing.order, routing.places)
      .unflatten(0, {-1, routing.choices});
}

at::Tensor sum_of_choices(const at::Tensor& rows) {
  const auto choices = rows.unbind(1);
  at::Tensor sum = choices.front();
  for (std::size_t choice = 1; choice < choices.size(); ++choice)
    sum = sum + choices[choice];
  return sum;
}

}  // namespace pipewright::engine
