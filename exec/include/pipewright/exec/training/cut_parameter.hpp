#pragma once

// Partitions a parameter among tensor-parallel and expert-parallel ranks, and joins the parts. The
// parts together have exactly the numbers of the whole. A length that does not divide evenly is cut
// at the next lower integers, so that lengths of parts differ by at most one.

#include <cstdint>
#include <optional>
#include <string>

#include "pipewright/exec/checkpoint/snapshot.hpp"
#include "pipewright/exec/tensors.hpp"
#include "pipewright/exec/training/shard_group.hpp"

namespace pipewright::exec {

class Layer;  // in layer.hpp

/// Returns how ranks partition the layer's parameter of this name; nothing if each has all of it.
std::optional<CutParameter> find_cut(const Layer& layer, const std::string& name);

/// Returns where part `index` of `count` begins in `length` numbers. For index `count`, returns
/// `length`.
inline std::int64_t border_of_part(std::int64_t length, int index, int count) {
  return length * index / count;
}

/// The part of a parameter that a rank has: part `index` of `count`. An expert parameter is first
/// partitioned among `experts` ranks; each of these has `count / experts` consecutive parts, one
/// for each of its tensor-parallel ranks.
struct PartIndex {
  int index = 0;
  int count = 1;
  int experts = 1;  // a divisor of `count`
};
PartIndex seat_of(const CutParameter& cut, const TensorParallelPlace& place);

/// Returns a rank's part of a whole parameter, or of a tensor of the same shape such as a gradient
/// or an optimizer state. The part may share the whole's memory. Throws InputError if the blocks do
/// not divide the dimension.
at::Tensor part_of(const at::Tensor& whole, const CutParameter& cut, const PartIndex& seat);

/// Joins the parts of all ranks, in order. Throws InputError if they are not the parts of one
/// tensor.
at::Tensor joined(const Tensors& parts, const CutParameter& cut, int experts = 1);
/// Returns the cut with which a part was stored.
CutParameter cut_of(const TensorPart& part);
/// Joins stored parts, one of which has the cut `part`. If that is the whole tensor, returns it.
at::Tensor joined(const Tensors& parts, const TensorPart& part);

/// Splits a tensor-parallel rank's part of a parameter into the parts of its tensor groups, over
/// which products are summed. Each one is contiguous and aligned like a tensor of its own, so that
/// results computed with it have the same bits on any number of ranks. Gradients flow back to
/// `of_shard`. `cut.whole` must be set.
Tensors group_parts(const at::Tensor& of_shard, const CutParameter& cut,
                    const TensorParallelPlace& place);

}  // namespace pipewright::exec
