#pragma once

// A checkpoint that torch.distributed.checkpoint has written, which is Megatron's torch_dist
// format, too: `.metadata` says of each tensor which parts of it lie where in the `.distcp` files,
// each a small torch.save. However it was cut, whole tensors or boxes of them are read, and only
// the parts that have a share in them.

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

/// A box of a tensor, and where its numbers lie.
struct DistributedChunk {
  std::vector<std::int64_t> offsets;  // in the tensor
  std::vector<std::int64_t> sizes;
  std::string file;        // in the checkpoint's folder
  std::int64_t begin = 0;  // bytes [begin, begin + length) of it
  std::int64_t length = 0;
};

struct DistributedTensor {
  std::vector<std::int64_t> sizes;
  std::vector<DistributedChunk> chunks;
};

/// What `.metadata` says of tensors; values of other kinds are left out. Throws InputError that
/// names `file`, and where it can an offset, for chunks that are not in their tensor, are not all
/// of it, or lie nowhere, and for a pickle of anything else.
std::map<std::string, DistributedTensor> parse_distributed_metadata(std::string_view bytes,
                                                                    const std::string& file);

class DistributedCheckpoint {
 public:
  /// Throws InputError that names the file and what is wrong with it.
  static DistributedCheckpoint open(const std::filesystem::path& folder);

  const std::filesystem::path& folder() const { return folder_; }
  const std::map<std::string, DistributedTensor>& tensors() const { return tensors_; }
  /// Of a tensor that is there, the box of these sizes from `begin` on; without either all of it.
  at::Tensor read(const std::string& name) const;
  at::Tensor read(const std::string& name, const std::vector<std::int64_t>& begin,
                  const std::vector<std::int64_t>& sizes) const;

 private:
  at::Tensor chunk(const std::string& name, const DistributedChunk& chunk) const;

  std::filesystem::path folder_;
  std::map<std::string, DistributedTensor> tensors_;
  struct Files;
  std::shared_ptr<Files> files_;  // mapped when they are first needed
};

NamedWeights weights_of(const DistributedCheckpoint& checkpoint);

}  // namespace pipewright::exec
