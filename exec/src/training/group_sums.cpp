#include "pipewright/exec/training/group_sums.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/custom_function.h>

#include <utility>

#include "pipewright/exec/training/cut_parameter.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::exec {
namespace {

using torch::autograd::AutogradContext;

/// Returns the sum over groups [first, last) by adding halves, down to ranges for which `leaf`
/// returns a sum. Calls `is_leaf` and `leaf` from the first group to the last.
template <class IsLeaf, class Leaf>
at::Tensor sum_of(int first, int last, const IsLeaf& is_leaf, const Leaf& leaf) {
  if (is_leaf(first, last))
    return leaf(first, last);
  const int middle = first + (last - first) / 2;
  const at::Tensor low = sum_of(first, middle, is_leaf, leaf);
  const at::Tensor high = sum_of(middle, last, is_leaf, leaf);
  // The sum of a range that is not a leaf owns its memory, so it can be changed.
  return is_leaf(first, middle) ? low + high : low.add_(high);
}

int own_groups(const TensorParallelPlace& place) { return place.groups / place.count; }

int shard_of(int group, const TensorParallelPlace& place) { return group / own_groups(place); }

bool is_of_one_shard(int first, int last, const TensorParallelPlace& place) {
  return shard_of(first, place) == shard_of(last - 1, place);
}

/// Appends those terms of the sum over [first, last) that this rank alone can compute, each as
/// large as possible.
void add_subtotals(int first, int last, const Tensors& own, const TensorParallelPlace& place,
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

/// Returns the sum of all ranks' subtotals, where each rank's are the rows of one tensor.
at::Tensor sum_of_shards(const Tensors& all, const TensorParallelPlace& place) {
  std::vector<std::int64_t> next(all.size(), 0);
  return sum_of(
      0, place.groups, [&](int a, int b) { return is_of_one_shard(a, b, place); },
      [&](int group, int) {
        const auto shard = static_cast<std::size_t>(shard_of(group, place));
        return all[shard][next[shard]++];
      });
}

/// Returns the sum over all ranks for this rank's tokens only.
at::Tensor own_tokens_added_up(const Tensors& own, const TensorParallelPlace& place) {
  const std::int64_t tokens = own.front().size(1);
  if (tokens % place.groups != 0)
    throw plan::InputError(
        fmt::format("{} tokens cannot be divided equally among {} groups (training.tensor_groups)",
                    tokens, place.groups));
  if (place.count == 1)
    return added_up(own, place);
  Tensors subtotals, pieces;
  add_subtotals(0, place.groups, own, place, subtotals);
  for (const at::Tensor& piece : at::stack(subtotals).chunk(place.count, 2))
    pieces.push_back(piece.contiguous());
  return sum_of_shards(place.group->all_to_all(pieces), place);
}

/// Returns the tokens of all tensor-parallel ranks.
at::Tensor all_tokens(const at::Tensor& own, const TensorParallelPlace& place) {
  return place.count == 1 ? own : at::cat(from_all(own, place), 1);
}

/// Returns the sum over groups, and the input of products, for a value of which this rank has these
/// tokens.
at::Tensor sum_for(Tokens tokens, const Tensors& own, const TensorParallelPlace& place) {
  return tokens == Tokens::Cut ? own_tokens_added_up(own, place) : added_up(own, place);
}
at::Tensor whole_of(Tokens tokens, const at::Tensor& own, const TensorParallelPlace& place) {
  return tokens == Tokens::Cut ? all_tokens(own, place) : own;
}

struct KeptPlace final : torch::CustomClassHolder {
  KeptPlace(TensorParallelPlace p, Tokens t) : place(std::move(p)), tokens(t) {}
  TensorParallelPlace place;
  Tokens tokens;
};

c10::IValue kept(const TensorParallelPlace& place, Tokens tokens) {
  return c10::IValue::make_capsule(c10::make_intrusive<KeptPlace>(place, tokens));
}

c10::intrusive_ptr<KeptPlace> kept_in(AutogradContext* context) {
  return c10::static_intrusive_pointer_cast<KeptPlace>(context->saved_data["place"].toCapsule());
}

/// Autograd function whose arguments are places and lists of tensors. Autograd does not see tensors
/// in a std::vector, so lists are TensorLists.
struct ForOwnGroups : torch::autograd::Function<ForOwnGroups> {
  static Tensors forward(AutogradContext* context, const TensorParallelPlace& place, Tokens tokens,
                         const at::Tensor& value) {
    context->saved_data["place"] = kept(place, tokens);
    const at::Tensor all = whole_of(tokens, value, place);
    Tensors values;
    for (int group = 0; group < own_groups(place); ++group)
      values.push_back(all.detach());
    return values;
  }

  static Tensors backward(AutogradContext* context, const Tensors& gradients) {
    const auto where = kept_in(context);
    return {at::Tensor(), at::Tensor(), sum_for(where->tokens, gradients, where->place)};
  }
};

struct SumOverGroups : torch::autograd::Function<SumOverGroups> {
  static at::Tensor forward(AutogradContext* context, const TensorParallelPlace& place,
                            Tokens tokens, const at::TensorList& own) {
    context->saved_data["place"] = kept(place, tokens);
    return sum_for(tokens, own.vec(), place);
  }

  static Tensors backward(AutogradContext* context, const Tensors& gradients) {
    const auto where = kept_in(context);
    Tensors results(2);  // place and tokens have no gradient
    results.resize(2 + static_cast<std::size_t>(own_groups(where->place)),
                   whole_of(where->tokens, gradients.front(), where->place));
    return results;
  }
};

}  // namespace

at::Tensor added_up(const Tensors& own, const TensorParallelPlace& place) {
  Tensors subtotals;
  add_subtotals(0, place.groups, own, place, subtotals);
  if (place.count == 1)
    return subtotals.front();
  const auto sizes = own.front().sizes();
  const at::Tensor mine =  // one row for each subtotal
      (subtotals.size() == 1 ? subtotals.front().unsqueeze(0) : at::stack(subtotals)).flatten(1);
  if (place.count == 2)
    return sum_of_shards(from_all(mine, place), place).view(sizes);
  Tensors pieces;  // the piece that each rank sums
  for (int shard = 0; shard < place.count; ++shard) {
    const std::int64_t begin = border_of_part(mine.size(1), shard, place.count);
    const std::int64_t end = border_of_part(mine.size(1), shard + 1, place.count);
    pieces.push_back(mine.narrow(1, begin, end - begin).contiguous());
  }
  const at::Tensor piece = sum_of_shards(place.group->all_to_all(pieces), place).unsqueeze(0);
  return at::cat(from_all(piece, place), 1).view(sizes);
}

Tensors from_all(const at::Tensor& own, const TensorParallelPlace& place) {
  return place.group->all_to_all(Tensors(static_cast<std::size_t>(place.count), own.detach()));
}

Tensors for_own_groups(const at::Tensor& value, const TensorParallelPlace& place, Tokens tokens) {
  return place.groups == 1 ? Tensors{value} : ForOwnGroups::apply(place, tokens, value);
}

at::Tensor sum_over_groups(const Tensors& own, const TensorParallelPlace& place, Tokens tokens) {
  return place.groups == 1 ? own.front() : SumOverGroups::apply(place, tokens, at::TensorList(own));
}

}  // namespace pipewright::exec
