#include "pipewright/exec/training/group_sums.hpp"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <utility>

#include "pipewright/exec/training/cut_parameter.hpp"

namespace pipewright::exec {
namespace {

using torch::autograd::AutogradContext;

/// The sum over groups [first, last): halves are added up, down to what `leaf` knows by itself.
/// `is_leaf` and `leaf` are asked from the first group to the last.
template <class IsLeaf, class Leaf>
at::Tensor sum_of(int first, int last, const IsLeaf& is_leaf, const Leaf& leaf) {
  if (is_leaf(first, last))
    return leaf(first, last);
  const int middle = first + (last - first) / 2;
  const at::Tensor low = sum_of(first, middle, is_leaf, leaf);
  const at::Tensor high = sum_of(middle, last, is_leaf, leaf);
  // What is no leaf is this sum's own memory.
  return is_leaf(first, middle) ? low + high : low.add_(high);
}

int own_groups(const ShardPlace& place) { return place.groups / place.count; }

int shard_of(int group, const ShardPlace& place) { return group / own_groups(place); }

bool is_of_one_shard(int first, int last, const ShardPlace& place) {
  return shard_of(first, place) == shard_of(last - 1, place);
}

/// What is one shard's alone of the sum over [first, last), each the sum of as much as can be.
void add_subtotals(int first, int last, const Tensors& own, const ShardPlace& place,
                   Tensors& subtotals) {
  if (!is_of_one_shard(first, last, place)) {
    const int middle = first + (last - first) / 2;
    add_subtotals(first, middle, own, place, subtotals);
    add_subtotals(middle, last, own, place, subtotals);
  } else if (shard_of(first, place) == place.index) {
    const int begin = place.index * own_groups(place);
    subtotals.push_back(sum_of(
        first, last, [](int a, int b) { return b - a == 1; },
        [&](int group, int) { return own.at(static_cast<std::size_t>(group - begin)); }));
  }
}

/// The sum of all shards' subtotals, each shard's as the rows of one tensor.
at::Tensor sum_of_shards(const Tensors& all, const ShardPlace& place) {
  std::vector<std::int64_t> next(all.size(), 0);
  return sum_of(
      0, place.groups, [&](int a, int b) { return is_of_one_shard(a, b, place); },
      [&](int group, int) {
        const auto shard = static_cast<std::size_t>(shard_of(group, place));
        return all[shard][next[shard]++];
      });
}

struct KeptPlace final : torch::CustomClassHolder {
  explicit KeptPlace(ShardPlace p) : place(std::move(p)) {}
  ShardPlace place;
};

/// Its arguments are places and lists of tensors: in a vector autograd sees no tensors.
struct ForOwnGroups : torch::autograd::Function<ForOwnGroups> {
  static Tensors forward(AutogradContext* context, const ShardPlace& place,
                         const at::Tensor& value) {
    context->saved_data["place"] = c10::IValue::make_capsule(c10::make_intrusive<KeptPlace>(place));
    Tensors values;
    for (int group = 0; group < own_groups(place); ++group)
      values.push_back(value.detach());
    return values;
  }

  static Tensors backward(AutogradContext* context, const Tensors& gradients) {
    const auto kept =
        c10::static_intrusive_pointer_cast<KeptPlace>(context->saved_data["place"].toCapsule());
    return {at::Tensor(), added_up(gradients, kept->place)};
  }
};

struct SumOverGroups : torch::autograd::Function<SumOverGroups> {
  static at::Tensor forward(AutogradContext* context, const ShardPlace& place,
                            const at::TensorList& own) {
    context->saved_data["own"] = static_cast<std::int64_t>(own.size());
    return added_up(own.vec(), place);
  }

  static Tensors backward(AutogradContext* context, const Tensors& gradients) {
    const auto own = static_cast<std::size_t>(context->saved_data["own"].toInt());
    Tensors results(1);  // for the place there is none
    results.resize(1 + own, gradients.front());
    return results;
  }
};

}  // namespace

at::Tensor added_up(const Tensors& own, const ShardPlace& place) {
  Tensors subtotals;
  add_subtotals(0, place.groups, own, place, subtotals);
  if (place.count == 1)
    return subtotals.front();
  const auto sizes = own.front().sizes();
  const at::Tensor mine =  // one row for each
      (subtotals.size() == 1 ? subtotals.front().unsqueeze(0) : at::stack(subtotals)).flatten(1);
  if (place.count == 2)
    return sum_of_shards(from_all(mine, place), place).view(sizes);
  Tensors pieces;  // for each shard the one that it adds up
  for (int shard = 0; shard < place.count; ++shard) {
    const std::int64_t begin = border_of_part(mine.size(1), shard, place.count);
    const std::int64_t end = border_of_part(mine.size(1), shard + 1, place.count);
    pieces.push_back(mine.narrow(1, begin, end - begin).contiguous());
  }
  const at::Tensor piece = sum_of_shards(place.group->all_to_all(pieces), place).unsqueeze(0);
  return at::cat(from_all(piece, place), 1).view(sizes);
}

Tensors from_all(const at::Tensor& own, const ShardPlace& place) {
  return place.group->all_to_all(Tensors(static_cast<std::size_t>(place.count), own.detach()));
}

Tensors for_own_groups(const at::Tensor& value, const ShardPlace& place) {
  return place.groups == 1 ? Tensors{value} : ForOwnGroups::apply(place, value);
}

at::Tensor sum_over_groups(const Tensors& own, const ShardPlace& place) {
  return place.groups == 1 ? own.front() : SumOverGroups::apply(place, at::TensorList(own));
}

}  // namespace pipewright::exec
