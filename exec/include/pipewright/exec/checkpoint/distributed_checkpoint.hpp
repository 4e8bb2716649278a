#pragma once

// Reads checkpoints of torch.distributed.checkpoint, which are also Megatron's torch_dist format.
// `.metadata` says which parts of each tensor are at which place of the `.distcp` files; each part
// is a small torch.save. Whole tensors or boxes of them can be read however the tensor was
// partitioned; only the parts that overlap the box are read.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pipewright/exec/checkpoint/named_weights.hpp"

namespace pipewright::exec {

/// A box of a tensor, and the place of its numbers.
struct DistributedChunk {
  std::vector<std::int64_t> offsets;  // in the tensor
  std::vector<std::int64_t> sizes;
  std::string file;        // in the checkpoint's folder
  std::int64_t begin = 0;  // bytes [begin, begin + length) of the file
  std::int64_t length = 0;
};

struct DistributedTensor {
  std::vector<std::int64_t> sizes;
  std::vector<DistributedChunk> chunks;
};

/// Returns the tensors that `.metadata` describes; values of other kinds are ignored. Throws
/// InputError if chunks lie outside their tensor, do not cover it or have no place in a file, and
/// if the pickle is of another kind. The message names `file`, and if possible an offset.
std::map<std::string, DistributedTensor> parse_distributed_metadata(std::string_view bytes,
                                                                    const std::string& file);

class DistributedCheckpoint {
 public:
  /// Throws InputError that names the file and what is wrong with it.
  static DistributedCheckpoint open(const std::filesystem::path& folder);

  const std::filesystem::path& folder() const { return folder_; }
  const std::map<std::string, DistributedTensor>& tensors() const { return tensors_; }
  /// Reads an existing tensor: all of it, or the box with sizes `sizes` that starts at `begin`.
  at::Tensor read(const std::string& name) const;
  at::Tensor read(const std::string& name, const std::vector<std::int64_t>& begin,
                  const std::vector<std::int64_t>& sizes) const;

 private:
  at::Tensor chunk(const std::string& name, const DistributedChunk& chunk) const;

  std::filesystem::path folder_;
  std::map<std::string, DistributedTensor> tensors_;
  struct Files;
  std::shared_ptr<Files> files_;  // mapped on first use
};

NamedWeights weights_of(const DistributedCheckpoint& checkpoint);

}  // namespace pipewright::exec
