#include "pipewright/exec/transport/late_members.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace pipewright::exec {

std::vector<double> waits_for_late(Transport& transport, const std::vector<int>& group, int rank,
                                   const std::vector<double>& seconds) {
  const at::Tensor mine = at::tensor(seconds, at::kDouble);
  std::vector<double> least = seconds;
  for (const Tensors& theirs : transport.all_to_all(
           group, rank, std::vector<Tensors>(group.size(), Tensors{mine}), Lane::Compute)) {
    const at::Tensor& numbers = theirs.at(0);
    if (numbers.numel() != mine.numel())
      throw std::logic_error(fmt::format("rank {} had {} collectives with others that had {}", rank,
                                         seconds.size(), numbers.numel()));
    const double* const of_one = numbers.const_data_ptr<double>();
    for (std::size_t at = 0; at < least.size(); ++at)
      least[at] = std::min(least[at], of_one[at]);
  }
  for (std::size_t at = 0; at < least.size(); ++at)
    least[at] = least[at] < 0 ? 0 : seconds[at] - least[at];
  return least;
}

}  // namespace pipewright::exec
