#pragma once

// Finds the example scenario for a window that is opened without a file.

#include <filesystem>
#include <optional>

namespace pipewright::gui {

/// Returns scenarios/shared-card/scenario.json of the source tree in which the program was built,
/// or of the program's installation. `own` is the program's folder.
std::optional<std::filesystem::path> find_example(const std::filesystem::path& own);

}  // namespace pipewright::gui
