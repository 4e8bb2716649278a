#pragma once

// Where the parameters of our layers lie in a folder of Hugging Face, by family.

#include <cstdint>
#include <string>
#include <vector>

#include "pipewright/exec/tensors.hpp"
#include "pipewright/plan/model/hugging_face_shape.hpp"

namespace pipewright::engine {

/// A parameter, or what it has for one expert, and the tensor that has its numbers: rows
/// [begin, begin + rows) of it, once it is turned.
struct FolderLink {
  std::string parameter;
  std::string tensor;
  std::vector<std::int64_t> sizes{};  // of the whole tensor
  int expert = -1;                    // none
  bool turned = false;                // it is [in, out], as GPT-2's are
  std::int64_t begin = 0, rows = 0;

  /// The numbers, as a view of the whole tensor.
  at::Tensor part_in(const at::Tensor& whole) const;
};

/// Those of layer `layer` of `transformer_layers`: the embedding, the decoder's layers, the head.
std::vector<FolderLink> folder_links(const plan::HuggingFaceShape& shape, int layer);

/// Whether a tensor that no layer asks for is known to be of no use: buffers that older folders
/// have, the head where it is the embedding, modules that predict further tokens.
bool is_left_over(const plan::HuggingFaceShape& shape, const std::string& tensor);

}  // namespace pipewright::engine
