#include "pipewright/gui/document/example.hpp"

namespace pipewright::gui {

std::optional<std::filesystem::path> find_example(const std::filesystem::path& own) {
  const std::filesystem::path example =
      std::filesystem::path("scenarios/shared-card/scenario.json");
  std::error_code absent;
  const auto installed = (own / "../share/pipewright" / example).lexically_normal();
  if (std::filesystem::exists(installed, absent))
    return installed;
  // build/bin/ is in the source tree.
  auto folder = std::filesystem::absolute(own, absent).lexically_normal();
  for (int up = 0; up < 4 && folder.has_relative_path(); ++up, folder = folder.parent_path())
    if (std::filesystem::exists(folder / example, absent))
      return folder / example;
  return {};
}

}  // namespace pipewright::gui
