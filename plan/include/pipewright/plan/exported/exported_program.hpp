#pragma once

// Reader for torch.export.save files (.pt2 archives of schema 8): a graph of operators on tensors,
// and the file positions of its weights. It runs no code and reads no pickle.

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "pipewright/plan/exported/operator_argument.hpp"

namespace pipewright::plan {

/// A tensor of the graph, with the batch size of the export.
struct ExportedTensor {
  std::string name;
  std::string dtype = "float32";
  std::vector<std::int64_t> sizes{};
  friend bool operator==(const ExportedTensor&, const ExportedTensor&) = default;
};
std::int64_t count_of(const ExportedTensor& tensor);
std::int64_t bytes_of(const ExportedTensor& tensor);
/// Returns 0 for an unsupported type.
int bytes_of_dtype(const std::string& dtype);

/// One result of an operator: a tensor, or a list of tensors. -1: an unused tensor.
struct OperatorOutput {
  bool is_list = false;
  std::vector<int> values;
  friend bool operator==(const OperatorOutput&, const OperatorOutput&) = default;
};

/// A call of an operator.
struct ExportedNode {
  std::string name;      // within the graph, such as "linear_3"
  std::string op;        // such as "aten::linear"
  std::string overload;  // such as "Tensor"; empty: the default
  std::vector<OperatorArgument> arguments{};
  std::vector<OperatorOutput> outputs{};
  bool with_gradient = true;  // false within torch.no_grad
  std::string module;         // qualified name of the submodule whose forward called it
  std::string place;          // source line in the user's code: `model.py:12: x = x + y`
  friend bool operator==(const ExportedNode&, const ExportedNode&) = default;
};

/// A parameter, buffer or constant.
struct ExportedWeight {
  int value = 0;  // the tensor's number in the graph
  std::string name;
  bool is_parameter = false;
  bool is_trained = false;
  /// Byte range of its data in the file, and the layout of the data. Weights with the same `begin`
  /// are one weight with several names.
  std::int64_t begin = 0, end = 0;
  std::vector<std::int64_t> strides{};
  std::int64_t offset = 0;  // in elements
  friend bool operator==(const ExportedWeight&, const ExportedWeight&) = default;
};

/// The graph of a torch.export archive.
struct ExportedProgram {
  std::vector<ExportedTensor> values;
  std::vector<ExportedNode> nodes;  // topologically sorted
  std::vector<ExportedWeight> weights;
  std::vector<int> inputs;   // values that a call receives, except the targets
  std::vector<int> targets;  // inputs of the loss only; empty if the graph has no loss
  std::vector<int> outputs;
  std::vector<int> marks;  // nodes directly after a call of `pipe_split`
  /// The classes of the submodules whose forward was called, by qualified name, such as
  /// "torch.nn.modules.linear.Linear".
  std::map<std::string, std::string> classes{};
  friend bool operator==(const ExportedProgram&, const ExportedProgram&) = default;
};

/// Reads such an archive. Throws InputError that names the file and each unsupported operator with
/// the user's source line: data-dependent control flow, data-dependent sizes, or weights stored in
/// a pickle.
ExportedProgram read_exported(const std::filesystem::path& file);
/// Reads an archive from memory; `name` is the file's name in messages.
ExportedProgram exported_from_bytes(std::string_view bytes, const std::string& name);

}  // namespace pipewright::plan
