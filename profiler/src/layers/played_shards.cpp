#include "pipewright/profiler/layers/played_shards.hpp"

#include <ATen/ATen.h>

#include <chrono>
#include <utility>

#include "pipewright/exec/transport/late_members.hpp"

namespace pipewright::profiler {
namespace {

using Clock = std::chrono::steady_clock;

/// Returns the sizes of a tensor with `rows` rows.
std::vector<std::int64_t> rows_of(const at::Tensor& tensor, std::int64_t rows) {
  std::vector<std::int64_t> sizes = tensor.sizes().vec();
  sizes.front() = rows;
  return sizes;
}

}  // namespace

void PlayedShards::meet(exec::Transport& transport, const std::vector<int>& ranks, int self) {
  transport_ = &transport;
  ranks_ = ranks;
  self_ = self;
  met_.clear();
}

std::vector<double> PlayedShards::waits() {
  return exec::waits_for_late(*transport_, ranks_, self_, std::exchange(met_, {}));
}

exec::Tensors PlayedShards::all_to_all(const exec::Tensors& parts) {
  const auto begin = Clock::now();
  exec::Tensors all = is_alone() ? made_up(parts) : from_others(parts);
  ++passed_on_.times;
  for (int shard = 0; shard < seat_.count; ++shard)
    if (shard != seat_.index)
      passed_on_.bytes +=
          {static_cast<std::int64_t>(parts[static_cast<std::size_t>(shard)].nbytes())};
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  passed_on_.seconds += {seconds};
  if (!is_alone())
    met_.push_back(seconds);
  return all;
}

exec::Tensors PlayedShards::from_others(const exec::Tensors& parts) {
  std::vector<exec::Tensors> for_each;
  for (const at::Tensor& part : parts)
    for_each.push_back({part.detach()});
  exec::Tensors all;
  for (exec::Tensors& theirs : transport_->all_to_all(ranks_, self_, for_each, exec::Lane::Compute))
    all.push_back(std::move(theirs.at(0)));
  return all;
}

/// Returns simulated data from the other ranks. In a sum over more than two ranks
/// (exec/training/group_sums.hpp), each rank first receives the pieces that it adds. It then
/// receives the sums of all pieces, which may differ in length. If tokens are partitioned, a piece
/// is [rows, batch, tokens, …], and each rank keeps its sum.
exec::Tensors PlayedShards::made_up(const exec::Tensors& parts) {
  const at::Tensor own = parts.at(static_cast<std::size_t>(seat_.index)).detach();
  const bool are_pieces = !parts.front().is_same(parts.back());
  const bool are_sums = !are_pieces && !pieces_.empty() && own.dim() == 2 && own.size(0) == 1;
  exec::Tensors all;
  for (int shard = 0; shard < seat_.count; ++shard) {
    at::Tensor theirs = own;
    if (are_sums)
      theirs = own.new_zeros({1, pieces_[static_cast<std::size_t>(shard)]});
    else if (are_pieces)  // another rank may have more rows; this one has the first
      theirs = own.narrow(0, 0, 1).expand(rows_of(own, seat_.groups));
    else if (seat_.copies)
      theirs = own.clone();
    all.push_back(shard == seat_.index ? own : theirs);
  }
  pieces_.clear();
  for (std::size_t shard = 0; are_pieces && own.dim() == 2 && shard < parts.size(); ++shard)
    pieces_.push_back(parts[shard].size(1));
  return all;
}

}  // namespace pipewright::profiler
