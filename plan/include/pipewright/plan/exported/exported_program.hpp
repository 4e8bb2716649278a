#pragma once

// What torch.export.save writes (a .pt2 archive of schema 8): a graph of operators on tensors, and
// where the numbers of its weights lie. Nothing of it is run, and no pickle in it is looked at.

#include <cstdint>
#include <filesystem>
#include <string>
#include <variant>
#include <vector>

#include "pipewright/plan/exported/operator_argument.hpp"

namespace pipewright::plan {

/// A tensor of the graph, with the batch that the module was exported with.
struct ExportedTensor {
  std::string name;
  std::string dtype = "float32";
  std::vector<std::int64_t> sizes{};
  friend bool operator==(const ExportedTensor&, const ExportedTensor&) = default;
};
std::int64_t count_of(const ExportedTensor& tensor);
std::int64_t bytes_of(const ExportedTensor& tensor);
/// 0 for a type that no tensor here has.
int bytes_of_dtype(const std::string& dtype);

/// One result of an operator: a tensor, or a list of them. -1: one that nobody uses.
struct OperatorOutput {
  bool is_list = false;
  std::vector<int> values;
  friend bool operator==(const OperatorOutput&, const OperatorOutput&) = default;
};

/// A call of an operator.
struct ExportedNode {
  std::string name;      // in the graph, such as "linear_3"
  std::string op;        // such as "aten::linear"
  std::string overload;  // such as "Tensor"; empty: the default
  std::vector<OperatorArgument> arguments{};
  std::vector<OperatorOutput> outputs{};
  bool with_gradient = true;  // false within torch.no_grad
  std::string module;         // the qualified name of the submodule whose forward called it
  std::string place;          // the user's line: `model.py:12: x = x + y`
  friend bool operator==(const ExportedNode&, const ExportedNode&) = default;
};

/// A parameter, buffer or constant.
struct ExportedWeight {
  int value = 0;  // the tensor that it is
  std::string name;
  bool is_parameter = false;
  bool is_trained = false;
  /// Its numbers in the file: where their memory begins and ends in it, and how they lie there.
  /// Weights with the same begin are one, under several names.
  std::int64_t begin = 0, end = 0;
  std::vector<std::int64_t> strides{};
  std::int64_t offset = 0;  // in numbers
  friend bool operator==(const ExportedWeight&, const ExportedWeight&) = default;
};

struct ExportedProgram {
  std::vector<ExportedTensor> values;
  std::vector<ExportedNode> nodes;  // each behind what it uses
  std::vector<ExportedWeight> weights;
  std::vector<int> inputs;   // values that a call is given, but for the targets
  std::vector<int> targets;  // what the loss is of; none where the graph has no loss
  std::vector<int> outputs;
  std::vector<int> marks;  // nodes before which `pipe_split` was called
  friend bool operator==(const ExportedProgram&, const ExportedProgram&) = default;
};

/// Reads such an archive. Throws InputError that names the file and each operator that cannot be
/// run here, with the line of the user's source that it comes from: control flow on data, sizes
/// that depend on data, numbers behind a pickle.
ExportedProgram read_exported(const std::filesystem::path& file);
/// The same of an archive's bytes; `name` stands for the file in messages.
ExportedProgram exported_from_bytes(std::string_view bytes, const std::string& name);

}  // namespace pipewright::plan
