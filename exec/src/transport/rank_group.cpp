#include "pipewright/exec/transport/rank_group.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

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
  all_gather({});  // a barrier: all have read
  return sums;
}

Tensors RankGroup::broadcast(const Tensors& mine, int from) const {
  const auto all = all_gather(index() == from ? mine : Tensors{});
  Tensors copies;
  for (const at::Tensor& tensor : all.at(static_cast<std::size_t>(from)))
    copies.push_back(tensor.clone());
  all_gather({});  // a barrier: all have read
  return copies;
}

std::vector<std::string> RankGroup::texts(const std::string& mine) const {
  const at::Tensor bytes = at::empty({static_cast<std::int64_t>(mine.size())}, at::kByte);
  std::copy(mine.begin(), mine.end(), static_cast<char*>(bytes.data_ptr()));
  std::vector<std::string> texts;
  for (const Tensors& theirs : all_gather({bytes}))
    texts.emplace_back(static_cast<const char*>(theirs.at(0).const_data_ptr()),
                       static_cast<std::size_t>(theirs.at(0).numel()));
  return texts;
}

RankGroup everybody(int size, int self, Transport& transport) {
  RankGroup all{std::vector<int>(static_cast<std::size_t>(size)), self, &transport};
  std::iota(all.ranks.begin(), all.ranks.end(), 0);
  return all;
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
