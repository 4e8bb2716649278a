#pragma once

// Loads the weights of a Hugging Face folder into our layers.

#include <memory>
#include <vector>

#include "folder_links.hpp"
#include "pipewright/exec/checkpoint/weight_folder.hpp"
#include "pipewright/exec/training/layer.hpp"

namespace pipewright::engine {

class FolderWeights {
 public:
  /// Throws InputError that lists all faults: tensors that are missing, that have another shape or
  /// an unsupported data type, or that no layer needs, and a head that differs from the embedding
  /// to which it is tied.
  FolderWeights(const plan::HuggingFaceShape& shape, exec::WeightFolder folder);

  /// Reads the parameters of `layer`, or this tensor-parallel rank's part of them.
  void fill(int index, exec::Layer& layer, const exec::TensorParallelPlace& place) const;

 private:
  std::string name_in_folder(const std::string& tensor) const;
  void require_tensors() const;
  void require_tied_head() const;
  at::Tensor part(const FolderLink& link) const;

  plan::HuggingFaceShape shape_;
  exec::WeightFolder folder_;
  std::string left_out_{};  // prefix to remove from names: a folder of the bare model lacks
                            // "model."
};

}  // namespace pipewright::engine
