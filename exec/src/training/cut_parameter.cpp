#include "pipewright/exec/training/cut_parameter.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <numeric>

#include "pipewright/exec/training/layer.hpp"
#include "pipewright/exec/training/own_memory.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::exec {
namespace {

/// Splits the cut dimension in two: blocks, and the elements of each block.
at::Tensor by_block(const at::Tensor& tensor, const CutParameter& cut) {
  if (cut.dimension >= tensor.dim() || tensor.size(cut.dimension) % cut.blocks != 0)
    throw plan::InputError(
        fmt::format("parameter {}: dimension {} of a tensor with {} dimensions cannot be divided "
                    "into {} equal blocks",
                    cut.name, cut.dimension, tensor.dim(), cut.blocks));
  return tensor.unflatten(cut.dimension, {cut.blocks, -1});
}

/// Joins the two dimensions that `by_block` has made.
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

PartIndex seat_of(const CutParameter& cut, const TensorParallelPlace& place) {
  const ExpertPlace of_experts = cut.experts > 0 ? place.experts : ExpertPlace();
  return {of_experts.index * place.count + place.index, of_experts.count * place.count,
          of_experts.count};
}

namespace {

/// Returns part `index` of `count` along a dimension.
at::Tensor between(const at::Tensor& tensor, std::int64_t dimension, int index, int count) {
  const std::int64_t length = tensor.size(dimension);
  const std::int64_t begin = border_of_part(length, index, count);
  return tensor.narrow(dimension, begin, border_of_part(length, index + 1, count) - begin);
}

at::Tensor joined_shards(const Tensors& parts, const CutParameter& cut) {
  Tensors blocks;
  std::vector<std::int64_t> found;
  for (const at::Tensor& part : parts) {
    blocks.push_back(by_block(part, cut));
    found.push_back(blocks.back().size(cut.dimension + 1));
  }
  const auto count = static_cast<int>(parts.size());
  const std::int64_t whole = std::accumulate(found.begin(), found.end(), std::int64_t{0});
  if (found != lengths_of_parts(whole, 0, count, count))
    throw plan::InputError(
        fmt::format("parameter {}: the sizes of {} tensors along dimension {} are not those of the "
                    "parts of a block of {} elements",
                    cut.name, count, cut.dimension, whole));
  return in_one(at::cat(blocks, cut.dimension + 1), cut);
}

}  // namespace

at::Tensor part_of(const at::Tensor& whole, const CutParameter& cut, const PartIndex& seat) {
  const int shards = seat.count / seat.experts;
  const at::Tensor of_experts =
      seat.experts == 1 ? whole : between(whole, 0, seat.index / shards, seat.experts);
  return in_one(between(by_block(of_experts, cut), cut.dimension + 1, seat.index % shards, shards),
                cut);
}

std::optional<CutParameter> find_cut(const Layer& layer, const std::string& name) {
  for (const CutParameter& cut : layer.cut_parameters())
    if (cut.name == name)
      return cut;
  return {};
}

at::Tensor joined(const Tensors& parts, const CutParameter& cut, int experts) {
  if (experts == 1)
    return joined_shards(parts, cut);
  const auto shards = parts.size() / static_cast<std::size_t>(experts);
  Tensors of_experts;
  for (auto first = parts.begin(); first != parts.end();
       first += static_cast<std::ptrdiff_t>(shards))
    of_experts.push_back(joined_shards({first, first + static_cast<std::ptrdiff_t>(shards)}, cut));
  return at::cat(of_experts);
}

CutParameter cut_of(const TensorPart& part) {
  return {"", part.dimension, part.blocks, part.length};
}

at::Tensor joined(const Tensors& parts, const TensorPart& part) {
  return part.count == 1 ? parts.front() : joined(parts, cut_of(part), part.experts);
}

Tensors group_parts(const at::Tensor& of_shard, const CutParameter& cut,
                    const TensorParallelPlace& place) {
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
