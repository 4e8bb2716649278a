#pragma once

// What a shard has of a parameter, and the way back: the numbers of a shard are those of the whole.
// A length that does not divide evenly is cut at the nearest numbers below, so that parts differ by
// one at most.

#include <cstdint>
#include <optional>
#include <string>

#include "pipewright/exec/checkpoint/snapshot.hpp"
#include "pipewright/exec/tensors.hpp"
#include "pipewright/exec/training/shard_group.hpp"

namespace pipewright::exec {

class Layer;  // in layer.hpp

/// How shards share out the layer's parameter of this name; nothing: each has all of it.
std::optional<CutParameter> find_cut(const Layer& layer, const std::string& name);

/// Where part `index` of `count` begins in so many numbers. For the one behind the last, their end.
inline std::int64_t border_of_part(std::int64_t length, int index, int count) {
  return length * index / count;
}

/// Which of how many parts of it a rank has. Those of a parameter of experts are shared out among
/// `experts` ranks first, each of which stands for equally many parts in a row: its shards'.
struct PartSeat {
  int index = 0;
  int count = 1;
  int experts = 1;  // a divisor of `count`
};
PartSeat seat_of(const CutParameter& cut, const ShardPlace& place);

/// What a rank has of a whole parameter, or of what has its shape: gradients, states. It may share
/// the whole's memory. Throws InputError when the blocks do not divide it.
at::Tensor part_of(const at::Tensor& whole, const CutParameter& cut, const PartSeat& seat);

/// The whole of what all have, in their order. Throws InputError when they are not parts of one.
at::Tensor joined(const Tensors& parts, const CutParameter& cut, int experts = 1);
/// The cut that a stored part says.
CutParameter cut_of(const TensorPart& part);
/// The same of stored parts, of which `part` is one. Of one, that.
at::Tensor joined(const Tensors& parts, const TensorPart& part);

/// Of what a shard has: the parts in which products are added up, as many as are its own. Each is
/// contiguous and lies as a tensor of its own would, so that what is computed with it has the same
/// bits on whatever shard. Gradients find their way back. `cut.whole` is known.
Tensors group_parts(const at::Tensor& of_shard, const CutParameter& cut, const ShardPlace& place);

}  // namespace pipewright::exec
