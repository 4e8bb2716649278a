#pragma once

// The weights in a folder of Hugging Face: model.safetensors, or the files that
// model.safetensors.index.json names. Files are mapped and their headers read; numbers are read
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

/// Which file each tensor lies in. Throws InputError for an index that does not say so soundly.
std::map<std::string, std::string> parse_weight_index(const plan::JsonDocument& document);

class WeightFolder {
 public:
  /// Nothing where the folder has no weights. Throws InputError that names the file and what is
  /// wrong: it is missing or cut off, its header is none, or it lacks what the index says.
  static std::optional<WeightFolder> open(const std::filesystem::path& folder);

  const std::filesystem::path& folder() const { return folder_; }
  std::vector<std::string> names() const;
  /// Null where there is no such tensor.
  const TensorShape* find(const std::string& name) const;
  /// Of a tensor that is there.
  std::filesystem::path file_of(const std::string& name) const;
  /// A view of the mapped file, which is not written to.
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
