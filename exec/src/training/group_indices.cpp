#include "pipewright/exec/training/group_indices.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "pipewright/exec/data/dataset.hpp"
#include "pipewright/exec/training/cut_parameter.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::exec {

GroupIndices indices_in_group(const at::Tensor& indices, std::int64_t vocabulary, int group,
                              int groups) {
  const std::int64_t begin = border_of_part(vocabulary, group, groups);
  const std::int64_t end = border_of_part(vocabulary, group + 1, groups);
  const at::Tensor elsewhere = (indices < begin).logical_or_(indices >= end);
  return {(indices - begin).masked_fill_(elsewhere, 0), elsewhere};
}

void require_in_vocabulary(const char* what, const at::Tensor& indices, std::int64_t vocabulary,
                           bool may_be_ignored) {
  if (!indices.is_cpu() || indices.numel() == 0)
    return;
  const auto [least, most] =
      (may_be_ignored ? indices.masked_fill(indices == ignored_target, 0) : indices).aminmax();
  if (least.item<std::int64_t>() < 0 || most.item<std::int64_t>() >= vocabulary)
    throw plan::InputError(fmt::format("{} from {} to {} are not all in a vocabulary of {}", what,
                                       least.item<std::int64_t>(), most.item<std::int64_t>(),
                                       vocabulary));
}

}  // namespace pipewright::exec
