#pragma once

// Weights between our layers and a folder of Hugging Face.

#include <memory>
#include <vector>

#include "folder_links.hpp"
#include "pipewright/exec/checkpoint/weight_folder.hpp"
#include "pipewright/exec/training/layer.hpp"

namespace pipewright::engine {

class FolderWeights {
 public:
  /// Throws InputError with all that is wrong: tensors that are missing, of another shape or of no
  /// type that weights have, or that no layer asks for.
  FolderWeights(const plan::HuggingFaceShape& shape, exec::WeightFolder folder);

  /// Reads what `layer`, or the shard's part of it, has.
  void fill(int index, exec::Layer& layer, const exec::ShardPlace& place) const;

 private:
  std::string name_in_folder(const std::string& tensor) const;
  void require_tensors() const;
  at::Tensor part(const FolderLink& link) const;

  plan::HuggingFaceShape shape_;
  exec::WeightFolder folder_;
  std::string left_out_{};  // of the names: a folder of the bare model lacks "model."
};

}  // namespace pipewright::engine
