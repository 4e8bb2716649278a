#include "pipewright/exec/transport/rank_group.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "pipewright/plan/error.hpp"

namespace pipewright::exec {

int RankGroup::index() const {
  return static_cast<int>(std::lower_bound(ranks.begin(), ranks.end(), self) - ranks.begin());
}

std::vector<Tensors> RankGroup::all_gather(const Tensors& mine) const {
  return ranks.size() == 1 ? std::vector<Tensors>{mine} : transport->all_gather(ranks, self, mine);
}

Tensors RankGroup::sum(const Tensors& mine) const {
  Tensors sums;
  for (const Tensors& theirs : all_gather(mine))
    for (std::size_t t = 0; t < theirs.size(); ++t)
      if (sums.size() <= t)
        sums.push_back(theirs[t].clone());
      else
        sums[t].add_(theirs[t]);
  all_gather({});  // all have read
  return sums;
}

Tensors RankGroup::broadcast(const Tensors& mine, int from) const {
  const auto all = all_gather(index() == from ? mine : Tensors{});
  Tensors copies;
  for (const at::Tensor& tensor : all.at(static_cast<std::size_t>(from)))
    copies.push_back(tensor.clone());
  all_gather({});  // all have read
  return copies;
}

RankGroup group_of(const plan::RankGroups& groups, int self, Transport& transport) {
  for (const std::vector<int>& group : groups)
    if (std::find(group.begin(), group.end(), self) != group.end()) {
      RankGroup own{group, self, &transport};
      std::sort(own.ranks.begin(), own.ranks.end());
      return own;
    }
  throw plan::InputError(fmt::format("rank {} is in none of {} groups", self, groups.size()));
}

}  // namespace pipewright::exec
