#include "model/folder_path.hpp"

#include <filesystem>

namespace pipewright::plan {

std::optional<std::string> path_beside(JsonObject& object, const std::string& path) {
  if (path.empty()) {
    object.error("path", "the path is empty");
    return {};
  }
  const auto beside = std::filesystem::path(object.diagnostics().document().name()).parent_path();
  return std::filesystem::absolute(beside / path).lexically_normal().string();
}

}  // namespace pipewright::plan
