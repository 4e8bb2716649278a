#include "pipewright/exec/training/group_cross_entropy.hpp"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <utility>

#include "pipewright/exec/data/dataset.hpp"
#include "pipewright/exec/training/group_indices.hpp"
#include "pipewright/exec/training/group_sums.hpp"

namespace pipewright::exec {
namespace {

using torch::autograd::AutogradContext;

/// The part of the vocabulary that a tensor-parallel rank has.
struct OwnWords final : torch::CustomClassHolder {
  OwnWords(std::int64_t v, const TensorParallelPlace& p) : vocabulary(v), place(p) {}

  GroupIndices indices(const at::Tensor& targets, std::size_t own) const {
    const int first = place.index * (place.groups / place.count);
    return indices_in_group(targets, vocabulary, first + static_cast<int>(own), place.groups);
  }

  std::int64_t vocabulary;
  TensorParallelPlace place;
};
using Words = c10::intrusive_ptr<OwnWords>;

/// Returns the largest logit of each token over all tensor-parallel ranks. A maximum does not
/// depend on the order.
at::Tensor largest(const Tensors& logits, const TensorParallelPlace& place) {
  at::Tensor found = logits.front().amax(-1);
  for (std::size_t own = 1; own < logits.size(); ++own)
    found = at::maximum(found, logits[own].amax(-1));
  if (place.count == 1)
    return found;
  const Tensors all = from_all(found, place);
  found = all.front();
  for (std::size_t shard = 1; shard < all.size(); ++shard)
    found = at::maximum(found, all[shard]);
  return found;
}

struct CrossEntropy : torch::autograd::Function<CrossEntropy> {
  static at::Tensor forward(AutogradContext* context, const Words& words, const at::Tensor& targets,
                            const at::TensorList& own_logits) {
    const Tensors logits = own_logits.vec();
    const at::Tensor highest = largest(logits, words->place);
    // One of each per group. Sums are those of the exponentials and of the target's logit.
    Tensors exponentials, sums;
    for (std::size_t own = 0; own < logits.size(); ++own) {
      exponentials.push_back((logits[own] - highest.unsqueeze(-1)).exp_());
      const auto [local, elsewhere] = words->indices(targets, own);
      const at::Tensor aimed_at =
          logits[own].gather(-1, local.unsqueeze(-1)).squeeze(-1).masked_fill_(elsewhere, 0);
      sums.push_back(at::stack({exponentials.back().sum(-1), aimed_at}));
    }
    const at::Tensor sum = added_up(sums, words->place);
    const at::Tensor counted = (targets != ignored_target).to(highest.scalar_type());
    Tensors kept = exponentials;
    kept.insert(kept.end(), {targets, sum[0], counted / counted.sum()});
    context->save_for_backward(kept);
    context->saved_data["words"] = c10::IValue::make_capsule(words);
    return ((sum[0].log() + highest - sum[1]) * counted).sum() / counted.sum();
  }

  static Tensors backward(AutogradContext* context, const Tensors& gradients) {
    const auto words =
        c10::static_intrusive_pointer_cast<OwnWords>(context->saved_data["words"].toCapsule());
    Tensors kept = context->get_saved_variables();
    const at::Tensor targets = kept[kept.size() - 3];
    const at::Tensor sum = kept[kept.size() - 2].unsqueeze(-1);
    const at::Tensor scale = gradients.front() * kept.back().unsqueeze(-1);
    Tensors results(2);  // words and targets have no gradient
    for (std::size_t own = 0; own + 3 < kept.size(); ++own) {
      const auto [local, elsewhere] = words->indices(targets, own);
      const at::Tensor hit = elsewhere.to(kept[own].scalar_type()).sub_(1);
      results.push_back(
          (kept[own] / sum).scatter_add_(-1, local.unsqueeze(-1), hit.unsqueeze(-1)).mul_(scale));
    }
    return results;
  }
};

}  // namespace

at::Tensor cross_entropy_over_groups(const Tensors& logits, const at::Tensor& targets,
                                     std::int64_t vocabulary, const TensorParallelPlace& place) {
  require_in_vocabulary("targets", targets, vocabulary, /*may_be_ignored=*/true);
  // Autograd needs each group's logits in the shape of their gradient.
  Tensors by_token;
  for (const at::Tensor& of_group : logits)
    by_token.push_back(of_group.flatten(0, -2));
  return CrossEntropy::apply(c10::make_intrusive<OwnWords>(vocabulary, place), targets.flatten(),
                             at::TensorList(by_token));
}

}  // namespace pipewright::exec
