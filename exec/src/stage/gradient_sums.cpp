#include "gradient_sums.hpp"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

namespace pipewright::exec {
GradientSums::GradientSums(std::vector<at::Tensor> parameters,
                           std::map<int, std::vector<int>> microbatches, bool exact,
                           GradientSources sources)
    : parameters_(parameters.size()), of_experts_(parameters.size(), false) {
  for (at::Tensor& parameter : parameters) {
    first_.push_back(parameter.grad());
    other_type_ = other_type_ || first_.back().scalar_type() != parameter.scalar_type();
    leaves_.push_back({std::move(parameter), leaves_.size(), 0});
  }
  add_leaves(sources);
  std::map<int, std::vector<int>> groups;
  for (auto& [group, members] : microbatches) {
    const int name = exact || groups.empty() ? group : groups.begin()->first;
    std::sort(members.begin(), members.end());
    for (const int microbatch : members) {
      groups[name].push_back(microbatch);
      group_of_microbatch_[microbatch] = name;
    }
  }
  for (auto& [name, members] : groups) {
    Tensors sums = first_;
    for (at::Tensor& sum : sums)
      if (!groups_.empty())
        sum = at::zeros_like(sum);
    groups_.emplace(name, OrderedSum(std::move(members), std::move(sums), exact));
  }
}

/// Adds the aliases as leaves. A parameter itself gets the first pipeline's gradient.
void GradientSums::add_leaves(const GradientSources& sources) {
  const int each = sources.groups_of_each;
  for (const GradientAlias& alias : sources.aliases) {
    of_experts_[alias.parameter] = true;
    leaves_[alias.parameter].shift = -sources.own * each;
    leaves_.push_back({alias.leaf, alias.parameter, (alias.source - sources.own) * each});
    first_.push_back(at::zeros_like(first_[alias.parameter]));
    leaves_.back().tensor.mutable_grad() = first_.back();
  }
}

OrderedSum& GradientSums::group_of(int microbatch) {
  return groups_.at(group_of_microbatch_.at(microbatch));
}

void GradientSums::point_at(const Tensors& sums) {
  for (std::size_t leaf = 0; leaf < leaves_.size(); ++leaf)
    leaves_[leaf].tensor.mutable_grad() = sums[leaf];
}

void GradientSums::begin(int microbatch) {
  const OrderedSum& group = group_of(microbatch);
  if (other_type_ || !group.comes_next(microbatch))
    begin_apart();
  else if (groups_.size() > 1)
    point_at(group.sums());
}

void GradientSums::end(int microbatch) {
  const at::NoGradGuard no_grad;
  OrderedSum& group = group_of(microbatch);
  if (other_type_ || !group.comes_next(microbatch))
    group.add(microbatch, take_apart(), OrderedSum::Memory::Stays);
  else
    group.was_added();
}

void GradientSums::begin_apart() { point_at(Tensors(leaves_.size())); }

Tensors GradientSums::take_apart() {
  Tensors taken;
  for (const Leaf& leaf : leaves_)
    taken.push_back(leaf.tensor.grad());
  point_at(first_);
  return taken;
}

void GradientSums::add(int microbatch, const Tensors& gradients) {
  const at::NoGradGuard no_grad;
  group_of(microbatch).add(microbatch, gradients, OrderedSum::Memory::IsReused);
}

std::vector<GradientPart> GradientSums::parts() const {
  std::vector<GradientPart> parts;
  for (std::size_t l = 0; l < leaves_.size(); ++l) {
    const auto parameter = static_cast<std::int64_t>(leaves_[l].parameter);
    const auto given = replaced_.lower_bound({parameter, 0});
    if (given != replaced_.end() && given->first.first == parameter)
      continue;
    for (const auto& [name, group] : groups_)
      parts.push_back({parameter, name + leaves_[l].shift, group.sums()[l]});
  }
  for (const auto& [key, value] : replaced_)
    parts.push_back({key.first, key.second, value});
  return parts;
}

std::vector<GradientPart> GradientSums::own_parts() const {
  auto own = parts();
  std::erase_if(own, [&](const GradientPart& part) {
    return !is_of_experts(static_cast<std::size_t>(part.parameter)) &&
           !groups_.contains(static_cast<int>(part.group));
  });
  return own;
}

void GradientSums::are_total(const std::vector<std::size_t>& parameters) {
  for (const std::size_t p : parameters) {
    const auto parameter = static_cast<std::int64_t>(p);
    std::erase_if(replaced_, [&](const auto& old) { return old.first.first == parameter; });
    replaced_[{parameter, 0}] = first_[p];
  }
}

void GradientSums::replace(std::vector<GradientPart> parts) {
  for (const GradientPart& part : parts)
    std::erase_if(replaced_, [&](const auto& old) { return old.first.first == part.parameter; });
  for (GradientPart& part : parts)
    replaced_[{part.parameter, part.group}] = std::move(part.value);
}

void GradientSums::finish() {
  const at::NoGradGuard no_grad;
  // Sorted by parameter and then by group; the first part of a parameter starts its sum.
  std::map<std::int64_t, at::Tensor> totals;
  auto all = parts();
  std::stable_sort(all.begin(), all.end(), [](const GradientPart& a, const GradientPart& b) {
    return std::pair(a.parameter, a.group) < std::pair(b.parameter, b.group);
  });
  for (const GradientPart& part : all) {
    at::Tensor& own = first_[static_cast<std::size_t>(part.parameter)];
    const auto [total, is_first] = totals.try_emplace(part.parameter, own);
    if (!is_first)
      own.add_(part.value);
    else if (!own.is_same(part.value))
      own.copy_(part.value);
  }
  replaced_.clear();
  for (auto& [name, group] : groups_) {
    group.restart();
    const bool is_first = name == groups_.begin()->first;  // its sums are the totals
    for (std::size_t leaf = is_first ? parameters_ : 0; leaf < leaves_.size(); ++leaf)
      group.sums()[leaf].zero_();
  }
  point_at(first_);
}

}  // namespace pipewright::exec
