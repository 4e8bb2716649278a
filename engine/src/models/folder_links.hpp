#pragma once

// The mapping from our layers' parameters to the tensors of a Hugging Face folder, by model family.

#include <cstdint>
#include <string>
#include <vector>

#include "pipewright/exec/tensors.hpp"
#include "pipewright/plan/model/hugging_face_shape.hpp"

namespace pipewright::engine {

/// A parameter, or one expert's slice of it, and its source: rows [begin, begin + rows) of a
/// tensor, after transposition if `turned`.
struct FolderLink {
  std::string parameter;
  std::string tensor;
  std::vector<std::int64_t> sizes{};  // of the whole tensor
  int expert = -1;                    // -1: the parameter is not of a single expert
  bool turned = false;                // stored as [in, out], as in GPT-2
  std::int64_t begin = 0, rows = 0;

  /// Returns the parameter's elements as a view of the whole tensor.
  at::Tensor part_in(const at::Tensor& whole) const;
};

/// Returns the links of layer `layer` of `transformer_layers`: the embedding, a decoder layer, or
/// the head.
std::vector<FolderLink> folder_links(const plan::HuggingFaceShape& shape, int layer);

/// The name of the head's tensor in all families.
inline constexpr const char* head_tensor = "lm_head.weight";

/// Returns true if a tensor that no layer needs can be ignored: buffers in older folders, the head
/// if it is tied to the embedding, and modules that predict further tokens.
bool is_left_over(const plan::HuggingFaceShape& shape, const std::string& tensor);

}  // namespace pipewright::engine
