#pragma once

// Reader for checkpoints of torch.distributed.checkpoint, which is also Megatron's torch_dist
// format. `.metadata` lists the chunks of each tensor with the byte range of each in a `.distcp`
// file, where torch.save wrote it. A whole tensor or any box of it (a range in each dimension) can
// be read, however the tensor was partitioned. Only the chunks that overlap the box are read.

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

/// A box of a tensor, and the part of a file that stores its elements.
struct DistributedChunk {
  std::vector<std::int64_t> offsets;  // where the box begins in the tensor, by dimension
  std::vector<std::int64_t> sizes;
  std::string file;        // in the checkpoint's folder
  std::int64_t begin = 0;  // bytes [begin, begin + length) of the file
  std::int64_t length = 0;
};

struct DistributedTensor {
  std::vector<std::int64_t> sizes;
  std::vector<DistributedChunk> chunks;
};

/// Returns the tensors, by name, that the contents `bytes` of `.metadata` describe. Values of other
/// kinds are ignored. Throws InputError if chunks lie outside their tensor, do not cover it or are
/// in no file, and if the pickle is not such metadata. The message names `file` and, if possible,
/// an offset.
std::map<std::string, DistributedTensor> parse_distributed_metadata(std::string_view bytes,
                                                                    const std::string& file);

class DistributedCheckpoint {
 public:
  /// Reads `.metadata`, and checks that each chunk lies within its file. Throws InputError that
  /// names the file and what is wrong with it.
  static DistributedCheckpoint open(const std::filesystem::path& folder);

  const std::filesystem::path& folder() const { return folder_; }
  const std::map<std::string, DistributedTensor>& tensors() const { return tensors_; }
  /// Reads the tensor `name`, which must exist: all of it, or the box with sizes `sizes` that
  /// starts at `begin`. Throws InputError if a chunk is damaged or chunks overlap.
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
