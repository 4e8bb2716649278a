#include "reductions.hpp"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace pipewright::exec {
namespace {

/// Tensors with a row of numbers each, which say what they are.
struct Labelled {
  std::vector<std::int64_t> labels;  // `width` a tensor
  Tensors tensors;

  Tensors packed(std::int64_t width) const {
    Tensors all{at::tensor(labels, at::kLong).view({-1, width})};
    all.insert(all.end(), tensors.begin(), tensors.end());
    return all;
  }
};

/// Calls `visit(labels, tensor)` for each tensor that was packed so.
template <class Visit>
void unpack(const Tensors& packed, const Visit& visit) {
  const auto width = packed.front().size(1);
  const auto* const labels = packed.front().const_data_ptr<std::int64_t>();
  for (std::size_t t = 1; t < packed.size(); ++t)
    visit(labels + (static_cast<std::int64_t>(t) - 1) * width, packed[t]);
}

/// A running sum that leaves what it adds up alone.
void add_to(at::Tensor& sum, const at::Tensor& value) {
  if (sum.defined())
    sum.add_(value);
  else
    sum = value.clone();
}

}  // namespace

int Members::index() const {
  return static_cast<int>(std::lower_bound(ranks.begin(), ranks.end(), self) - ranks.begin());
}

void reduce_tied(const std::vector<Stage*>& stages, const TrainingSetup& setup,
                 const Members& members) {
  const at::NoGradGuard no_grad;
  struct Own {
    Stage* stage;
    std::int64_t parameter, key;
  };
  std::vector<Own> own;
  Labelled mine;  // key, layer, group
  for (Stage* const stage : stages)
    for (int layer = stage->place().first; layer < stage->place().last; ++layer) {
      const auto tied = stage->tied_parameter(layer);
      if (!tied)
        continue;
      const auto parameter = static_cast<std::int64_t>(*tied);
      const std::int64_t key = tied_owner(setup.layers, layer);
      own.push_back({stage, parameter, key});
      for (const GradientPart& part : stage->gradients().parts()) {
        if (part.parameter != parameter)
          continue;
        mine.labels.insert(mine.labels.end(), {key, layer, part.group});
        mine.tensors.push_back(part.value);
      }
    }
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, at::Tensor> parts;
  for (const Tensors& packed : members.exchange(mine.packed(3)))
    unpack(packed, [&](const std::int64_t* label, const at::Tensor& value) {
      parts[{label[0], label[2], label[1]}] = value;  // by key, group, layer
    });
  std::map<std::pair<std::int64_t, std::int64_t>, at::Tensor> sums;  // by key, group
  for (const auto& [name, value] : parts)
    add_to(sums[{std::get<0>(name), std::get<1>(name)}], value);
  members.exchange({});  // all have read
  for (const Own& place : own) {
    std::vector<GradientPart> replaced;
    for (const auto& [name, sum] : sums)
      if (name.first == place.key)
        replaced.push_back({place.parameter, name.second, sum});
    place.stage->gradients().replace(std::move(replaced));
  }
}

void reduce_copies(Stage& stage, const Members& members) {
  if (members.ranks.size() == 1)
    return;
  const at::NoGradGuard no_grad;
  Labelled mine;  // parameter, group
  for (const GradientPart& part : stage.gradients().parts()) {
    mine.labels.insert(mine.labels.end(), {part.parameter, part.group});
    mine.tensors.push_back(part.value);
  }
  std::map<std::pair<std::int64_t, std::int64_t>, at::Tensor> parts;
  for (const Tensors& packed : members.exchange(mine.packed(2)))
    unpack(packed, [&](const std::int64_t* label, const at::Tensor& value) {
      parts[{label[0], label[1]}] = value;
    });
  std::map<std::int64_t, at::Tensor> sums;
  for (const auto& [name, value] : parts)
    add_to(sums[name.first], value);
  members.exchange({});  // all have read
  std::vector<GradientPart> replaced;
  for (const auto& [parameter, sum] : sums)
    replaced.push_back({parameter, 0, sum});
  stage.gradients().replace(std::move(replaced));
}

void gather_shards(Stage& stage, const Members& members) {
  if (members.ranks.size() == 1)
    return;
  const at::NoGradGuard no_grad;
  const auto all = members.exchange(stage.optimizer().slices());
  for (std::size_t member = 0; member < all.size(); ++member) {
    if (static_cast<int>(member) == members.index())
      continue;
    const Tensors places = stage.optimizer().slices(static_cast<int>(member));
    for (std::size_t s = 0; s < places.size(); ++s)
      places[s].copy_(all[member].at(s));
  }
  members.exchange({});  // all have read
}

}  // namespace pipewright::exec
