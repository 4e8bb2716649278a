#include "pipewright/exec/rank/reductions.hpp"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "stage/gradient_sums.hpp"
#include "stage/scattered_gradients.hpp"

namespace pipewright::exec {
namespace {

/// Tensors with a row of labels each, which say what they are.
struct Labeled {
  std::vector<std::int64_t> labels;  // `width` for each tensor
  Tensors tensors;

  Tensors packed(std::int64_t width) const {
    const auto rows = static_cast<std::int64_t>(tensors.size());
    Tensors all{at::tensor(labels, at::kLong).view({rows, width})};
    all.insert(all.end(), tensors.begin(), tensors.end());
    return all;
  }
};

/// Calls `visit(labels, tensor)` for each tensor of a packed list.
template <class Visit>
void unpack(const Tensors& packed, const Visit& visit) {
  const auto width = packed.front().size(1);
  const auto* const labels = packed.front().const_data_ptr<std::int64_t>();
  for (std::size_t t = 1; t < packed.size(); ++t)
    visit(labels + (static_cast<std::int64_t>(t) - 1) * width, packed[t]);
}

/// Adds `value` to a running sum without changing `value`.
void add_to(at::Tensor& sum, const at::Tensor& value) {
  if (sum.defined())
    sum.add_(value);
  else
    sum = value.clone();
}

/// A weight of a local stage that other layers share. It is identified by the key that all these
/// layers have and its place among the weights with that key.
struct TiedWeight {
  Stage* stage;
  std::int64_t parameter;
  std::pair<std::int64_t, std::int64_t> shared;
};

/// Returns where the layers that share the weights of `owner` lie, given that some are on `stage`.
TiesOf ties_of(int owner, const Stage& stage, const TrainingSetup& setup) {
  const StageSpec& own = stage.spec();
  for (int layer = 0; layer < static_cast<int>(setup.layers.size()); ++layer)
    if (tied_owner(setup.layers, layer) == owner && (layer < own.first || layer >= own.last))
      return TiesOf::SeveralStages;
  return TiesOf::OneStage;
}

/// Returns the weights of these stages that are tied in the way `of` says. Appends their gradients
/// to `parts`, labeled with key, place, layer and group.
std::vector<TiedWeight> tied_weights(const std::vector<Stage*>& stages, TiesOf of,
                                     const TrainingSetup& setup, Labeled& parts) {
  std::vector<TiedWeight> weights;
  for (Stage* const stage : stages)
    for (std::size_t p = 0; p < stage->layers().trained().size(); ++p) {
      const auto& [value, layer, name, cut, tied] = stage->layers().trained()[p];
      if (!tied)
        continue;
      const auto parameter = static_cast<std::int64_t>(p), place = static_cast<std::int64_t>(*tied);
      const int key = tied_owner(setup.layers, layer);
      if (ties_of(key, *stage, setup) != of)
        continue;
      weights.push_back({stage, parameter, {key, place}});
      for (const GradientPart& part : stage->gradients().parts()) {
        if (part.parameter != parameter)
          continue;
        parts.labels.insert(parts.labels.end(), {key, place, layer, part.group});
        parts.tensors.push_back(part.value);
      }
    }
  return weights;
}

/// The sum over layers, in the order of layers, by key, place and group.
using TiedSums = std::map<std::array<std::int64_t, 3>, at::Tensor>;

TiedSums sums_over_layers(const std::vector<Tensors>& gathered) {
  std::map<std::array<std::int64_t, 4>, at::Tensor> parts;
  for (const Tensors& packed : gathered)
    unpack(packed, [&](const std::int64_t* label, const at::Tensor& value) {
      parts[{label[0], label[1], label[3], label[2]}] = value;  // by key, place, group, layer
    });
  TiedSums sums;
  for (const auto& [name, value] : parts)
    add_to(sums[{name[0], name[1], name[2]}], value);
  return sums;
}

}  // namespace

void reduce_tied(const std::vector<Stage*>& stages, TiesOf of, const TrainingSetup& setup,
                 const Members& members) {
  const at::NoGradGuard no_grad;
  Labeled mine;
  const std::vector<TiedWeight> weights = tied_weights(stages, of, setup, mine);
  const TiedSums sums = sums_over_layers(members.all_gather(mine.packed(4)));
  members.all_gather({});  // a barrier: all have read
  for (const TiedWeight& weight : weights) {
    std::vector<GradientPart> replaced;
    for (const auto& [name, sum] : sums)
      if (std::pair(name[0], name[1]) == weight.shared)
        replaced.push_back({weight.parameter, name[2], sum});
    weight.stage->gradients().replace(std::move(replaced));
  }
}

namespace {

/// Returns what a member reduces: its slices of all gradient parts of this rank, labeled with
/// parameter and group.
Tensors shard_of_parts(const std::vector<GradientPart>& parts, const std::vector<Slice>& slices) {
  Labeled theirs;
  for (const Slice& slice : slices)
    for (const GradientPart& part : parts)
      if (part.parameter == static_cast<std::int64_t>(slice.parameter)) {
        theirs.labels.insert(theirs.labels.end(), {part.parameter, part.group});
        theirs.tensors.push_back(slice.of(part.value));
      }
  return theirs.packed(2);
}

/// Returns the sum over all replicas for each of a shard's slices, in the order of groups. If
/// several replicas have a part of one group, which exact mode excludes, these are added in the
/// order of replicas.
Tensors sums_over_copies(const std::vector<Tensors>& received, const std::vector<Slice>& slices) {
  std::map<std::pair<std::int64_t, std::int64_t>, at::Tensor> parts;  // by parameter, group
  for (const Tensors& packed : received)
    unpack(packed, [&](const std::int64_t* label, const at::Tensor& value) {
      at::Tensor& part = parts[{label[0], label[1]}];
      part = part.defined() ? part + value : value;
    });
  Tensors sums;
  for (const Slice& slice : slices) {
    at::Tensor& sum = sums.emplace_back();
    const auto parameter = static_cast<std::int64_t>(slice.parameter);
    for (auto part = parts.lower_bound({parameter, 0});
         part != parts.end() && part->first.first == parameter; ++part)
      add_to(sum, part->second);
  }
  return sums;
}

}  // namespace

void reduce_copies(Stage& stage, const Members& members, SumOf wanted, CopiesOf of) {
  const auto count = static_cast<int>(members.ranks.size());
  const CopiedParameters& copied = stage.optimizer().copied();
  const auto chosen = copied.with(of);
  if (count == 1 || chosen.empty())
    return;
  const at::NoGradGuard no_grad;
  GradientSums& gradients = stage.gradients();
  std::vector<std::vector<Slice>> slices_of;
  for (int member = 0; member < count; ++member)
    slices_of.push_back(copied.slices(of, {member, count}));
  const auto self = static_cast<std::size_t>(members.index());
  const auto mine = gradients.own_parts();
  std::vector<Tensors> outgoing;
  for (const std::vector<Slice>& slices : slices_of)
    outgoing.push_back(shard_of_parts(mine, slices));

  const Tensors sums = sums_over_copies(
      members.transport->all_to_all(members.ranks, members.self, outgoing, Lane::Beside),
      slices_of[self]);

  // After this gather all members have read the values that the sums replace.
  const auto all = members.all_gather(wanted == SumOf::Whole ? sums : Tensors{});
  const auto replace_totals = [&](std::size_t member, const Tensors& values) {
    const std::vector<Slice>& slices = slices_of[member];
    for (std::size_t s = 0; s < slices.size(); ++s)
      slices[s].of(gradients.total(slices[s].parameter)).copy_(values.at(s));
  };
  if (wanted == SumOf::Shard)
    replace_totals(self, sums);
  for (std::size_t member = 0; wanted == SumOf::Whole && member < slices_of.size(); ++member)
    replace_totals(member, all[member]);
  gradients.are_total(chosen);
}

namespace {

/// Returns for each member its slices of a microbatch's gradients. Experts have one slice for each
/// pipeline whose tokens they processed, in the order of pipelines.
std::vector<Tensors> slices_for_each(Stage& stage, int members, CopiesOf of,
                                     const Tensors& gradients, std::size_t pipelines) {
  std::vector<Tensors> for_each;
  for (int member = 0; member < members; ++member) {
    const auto slices = stage.optimizer().copied().slices(of, {member, members});
    Tensors& theirs = for_each.emplace_back();
    for (std::size_t pipeline = 0; pipeline < pipelines; ++pipeline)
      for (const Slice& slice : slices)
        theirs.push_back(
            slice.of(gradients[stage.scattered().gradients_of(slice.parameter)[pipeline]]));
  }
  return for_each;
}

/// Sums this member's slices over all members, in the type in which gradients accumulate and in the
/// order of pipelines. `sums` has one entry for each slice of the stage; those with parameters of
/// kind `of` are set.
void sum_microbatch(Stage& stage, const Members& members, CopiesOf of, const Tensors& gradients,
                    Tensors& sums) {
  const auto chosen = stage.optimizer().copied().with(of);
  if (chosen.empty())
    return;
  const std::size_t pipelines = stage.scattered().gradients_of(chosen.front()).size();
  const auto outgoing = slices_for_each(stage, seat_in(members).count, of, gradients, pipelines);
  const auto received =
      members.ranks.size() == 1
          ? outgoing
          : members.transport->all_to_all(members.ranks, members.self, outgoing, Lane::Beside);
  const std::size_t each = received.front().size() / pipelines;
  // Sums into the memory of the first member's slices, which no other member reads.
  Tensors own = at::TensorList(received.front()).slice(0, each).vec();
  const auto places = stage.optimizer().own_places(of);
  for (std::size_t s = 0; s < each; ++s)
    own[s] = own[s].to(stage.optimizer().gradients()[places[s]].scalar_type());
  for (std::size_t from = 1; from < received.size() * pipelines && each > 0; ++from)
    at::_foreach_add_(
        own, at::TensorList(received[from / pipelines]).slice(from % pipelines * each, each));
  for (std::size_t s = 0; s < each; ++s)
    sums[places[s]] = own[s];
}

}  // namespace

void scatter_copies(Stage& stage, const Members& members, const Members& of_experts, int microbatch,
                    Tensors gradients) {
  const at::NoGradGuard no_grad;
  {
    Tensors sums(stage.optimizer().gradients().size());
    sum_microbatch(stage, members, CopiesOf::Rest, gradients, sums);
    sum_microbatch(stage, of_experts, CopiesOf::Experts, gradients, sums);
    stage.scattered().add(microbatch, sums);
  }
  members.all_gather({});  // a barrier: all have read
}

void gather_shards(Stage& stage, const Members& members, CopiesOf of) {
  if (members.ranks.size() == 1 || stage.optimizer().copied().with(of).empty())
    return;
  const at::NoGradGuard no_grad;
  const bool sharded = stage.spec().shard.parameters;
  const auto all = members.all_gather(stage.optimizer().own_slices(of));
  for (std::size_t member = 0; member < all.size(); ++member) {
    if (static_cast<int>(member) == members.index() && !sharded)
      continue;
    const Tensors places = stage.optimizer().slices(static_cast<int>(member), of);
    for (std::size_t s = 0; s < places.size(); ++s)
      places[s].copy_(all[member].at(s));
  }
  members.all_gather({});  // a barrier: all have read
}

}  // namespace pipewright::exec
