#pragma once

// Reads the weights in a Hugging Face folder. As in transformers, they are in the first of these
// files that the folder has: model.safetensors, the files named in model.safetensors.index.json,
// pytorch_model.bin, the files named in pytorch_model.bin.index.json. Files are mapped and only
// their headers are read; numbers are read when a tensor is copied.

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "pipewright/exec/checkpoint/safetensors.hpp"

namespace pipewright::plan {
class JsonDocument;
}

namespace pipewright::exec {

/// Returns the file of each tensor. Throws InputError if the index is malformed.
std::map<std::string, std::string> parse_weight_index(const plan::JsonDocument& document);

class WeightFolder {
 public:
  /// Opens a folder; returns nothing if it has no weights. Throws InputError that names the file
  /// and what is wrong: it is missing or truncated, has no valid header, lacks a tensor of the
  /// index, or is the folder's only file of weights and in a format that is not supported.
  static std::optional<WeightFolder> open(const std::filesystem::path& folder);

  const std::filesystem::path& folder() const { return folder_; }
  std::vector<std::string> names() const;
  /// Returns null if there is no such tensor.
  const TensorShape* find(const std::string& name) const;
  /// Returns the file of an existing tensor.
  std::filesystem::path file_of(const std::string& name) const;
  /// Returns a read-only view of the mapped file.
  at::Tensor tensor(const std::string& name) const;

 private:
  struct Tensor {
    std::string file;
    TensorShape shape;
    at::Tensor values;  // a view of the mapped file
  };
  explicit WeightFolder(std::filesystem::path folder) : folder_(std::move(folder)) {}
  void add_file(const std::string& name);
  void add(const std::string& file, TensorShape shape, at::Tensor values);
  void add_indexed(const std::string& index);

  std::filesystem::path folder_;
  std::map<std::string, Tensor> tensors_;
};

}  // namespace pipewright::exec
