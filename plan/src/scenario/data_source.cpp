// The meaning of a scenario's data fields is derived from the models that learn from each kind of
// data.

#include <fmt/format.h>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/model/model_descriptor.hpp"
#include "scenario_fields.hpp"

namespace pipewright::plan {
namespace {

std::string learners_of(const DataKind& kind) {
  std::vector<std::string> names;
  for (const ModelDescriptor& model : model_kinds())
    if (model.data.name == kind.name)
      names.push_back(model.kind);
  return listed(names);
}

std::string folder_kinds() {
  std::vector<std::string> names;
  for (const DataKind& kind : data_kinds())
    if (kind.is_folder)
      names.emplace_back(kind.name);
  return listed(names);
}

}  // namespace

const std::vector<std::string>& data_kind_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const DataKind& kind : data_kinds())
      list.emplace_back(kind.name);
    return list;
  }();
  return names;
}

const std::string& data_kind_meaning() {
  static const std::string meaning = [] {
    std::vector<std::string> parts;
    for (const DataKind& kind : data_kinds())
      parts.push_back(fmt::format("{}: {}, for {}", kind.name, kind.meaning, learners_of(kind)));
    return fmt::format("{}.", fmt::join(parts, "; "));
  }();
  return meaning;
}

const std::string& data_path_meaning() {
  static const std::string meaning = fmt::format(
      "The file, or for {} the folder; relative to the folder of this file.", folder_kinds());
  return meaning;
}

}  // namespace pipewright::plan
