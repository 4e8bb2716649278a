#include "pipewright/exec/training/cut_parameter.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <numeric>

#include "pipewright/plan/error.hpp"
#include "training/own_memory.hpp"

namespace pipewright::exec {
namespace {

/// The cut dimension as two: blocks, and what each of them holds.
at::Tensor by_block(const at::Tensor& tensor, const CutParameter& cut) {
  if (cut.dimension >= tensor.dim() || tensor.size(cut.dimension) % cut.blocks != 0)
    throw plan::InputError(
        fmt::format("parameter {}: dimension {} of a tensor with {} dimensions cannot hold {} "
                    "equal blocks",
                    cut.name, cut.dimension, tensor.dim(), cut.blocks));
  return tensor.unflatten(cut.dimension, {cut.blocks, -1});
}

/// The way back.
at::Tensor in_one(const at::Tensor& blocks, const CutParameter& cut) {
  return blocks.flatten(cut.dimension, cut.dimension + 1);
}

std::vector<std::int64_t> lengths_of_parts(std::int64_t whole, int first, int last, int count) {
  std::vector<std::int64_t> lengths;
  for (int part = first; part < last; ++part)
    lengths.push_back(border_of_part(whole, part + 1, count) - border_of_part(whole, part, count));
  return lengths;
}

}  // namespace

at::Tensor part_of(const at::Tensor& whole, const CutParameter& cut, int index, int count) {
  const at::Tensor blocks = by_block(whole, cut);
  const std::int64_t length = blocks.size(cut.dimension + 1);
  const std::int64_t begin = border_of_part(length, index, count);
  return in_one(
      blocks.narrow(cut.dimension + 1, begin, border_of_part(length, index + 1, count) - begin),
      cut);
}

at::Tensor joined(const Tensors& parts, const CutParameter& cut) {
  Tensors blocks;
  std::vector<std::int64_t> found;
  for (const at::Tensor& part : parts) {
    blocks.push_back(by_block(part, cut));
    found.push_back(blocks.back().size(cut.dimension + 1));
  }
  const auto count = static_cast<int>(parts.size());
  const std::int64_t whole = std::accumulate(found.begin(), found.end(), std::int64_t{0});
  if (found != lengths_of_parts(whole, 0, count, count))
    throw plan::InputError(fmt::format(
        "parameter {}: {} tensors are not the parts of one along dimension {}: a block of {} "
        "numbers is not cut so",
        cut.name, count, cut.dimension, whole));
  return in_one(at::cat(blocks, cut.dimension + 1), cut);
}

Tensors group_parts(const at::Tensor& of_shard, const CutParameter& cut, const ShardPlace& place) {
  const int own = place.groups / place.count;
  if (own == 1)
    return {place.groups == 1 ? of_shard : as_one_of_its_own(of_shard)};
  const auto lengths = lengths_of_parts(cut.whole / cut.blocks, place.index * own,
                                        (place.index + 1) * own, place.groups);
  Tensors parts;
  for (const at::Tensor& part :
       by_block(of_shard, cut).split_with_sizes(lengths, cut.dimension + 1))
    parts.push_back(as_one_of_its_own(in_one(part, cut)));
  return parts;
}

}  // namespace pipewright::exec
