#include "token_exchange.hpp"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <numeric>

namespace pipewright::engine {
namespace {

using torch::autograd::AutogradContext;

/// Sends each rank its rows and returns the rows received from all ranks.
at::Tensor exchanged(const at::Tensor& rows, const Counts& to_each,
                     exec::TensorParallelGroup& group) {
  exec::Tensors parts;
  for (const at::Tensor& part : rows.split_with_sizes(to_each))
    parts.push_back(part.contiguous());
  return at::cat(group.all_to_all(parts));
}

struct KeptGroup final : torch::CustomClassHolder {
  explicit KeptGroup(exec::TensorParallelGroup* g) : group(g) {}
  exec::TensorParallelGroup* group;
};

struct Exchanged : torch::autograd::Function<Exchanged> {
  static at::Tensor forward(AutogradContext* context, exec::TensorParallelGroup* group,
                            const Counts& sent, const Counts& received, const at::Tensor& rows) {
    context->saved_data["group"] = c10::IValue::make_capsule(c10::make_intrusive<KeptGroup>(group));
    context->saved_data["received"] = received;
    return exchanged(rows, sent, *group);
  }

  static exec::Tensors backward(AutogradContext* context, const exec::Tensors& gradients) {
    const auto kept =
        c10::static_intrusive_pointer_cast<KeptGroup>(context->saved_data["group"].toCapsule());
    return {
        at::Tensor(), at::Tensor(), at::Tensor(),
        exchanged(gradients.front(), context->saved_data["received"].toIntVector(), *kept->group)};
  }
};

std::int64_t sum_of(const Counts& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

}  // namespace

TokenExchange::TokenExchange(const exec::ExpertPlace& place, const Counts& counts,
                             at::Device device)
    : place_(place) {
  exec::Tensors parts;
  const auto each = static_cast<std::ptrdiff_t>(counts.size()) / place.count;
  for (int rank = 0; rank < place.count; ++rank) {
    const Counts theirs(counts.begin() + rank * each, counts.begin() + (rank + 1) * each);
    sent_.push_back(sum_of(theirs));
    parts.push_back(at::tensor(theirs, at::kLong).to(device));
  }
  for (const at::Tensor& of_source : place.group->all_to_all(parts)) {
    const at::Tensor numbers = of_source.cpu();
    const auto* const first = numbers.const_data_ptr<std::int64_t>();
    here_.emplace_back(first, first + each);
    received_.push_back(sum_of(here_.back()));
  }
}

at::Tensor TokenExchange::go(const at::Tensor& rows) const {
  return Exchanged::apply(place_.group, sent_, received_, rows);
}

at::Tensor TokenExchange::come_back(const at::Tensor& rows) const {
  return Exchanged::apply(place_.group, received_, sent_, rows);
}

}  // namespace pipewright::engine
