#pragma once

// Reads the weights in a Hugging Face folder: model.safetensors, or the files named in
// model.safetensors.index.json. Files are mapped and only their headers are read; numbers are read
// when a tensor is copied.

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
  /// and what is wrong: it is missing or truncated, has no valid header, or lacks a tensor of the
  /// index.
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
    at::Tensor bytes;  // of the whole file
    StoredPlace place;
  };
  explicit WeightFolder(std::filesystem::path folder) : folder_(std::move(folder)) {}
  void add_file(const std::string& name);
  void add_indexed(const std::map<std::string, std::string>& files);

  std::filesystem::path folder_;
  std::map<std::string, Tensor> tensors_;
};

}  // namespace pipewright::exec
