#pragma once

// The scenario that ships, for who opens the window without a file.

#include <filesystem>
#include <optional>

namespace pipewright::gui {

/// scenarios/shared-card/scenario.json of the source tree that the program was built in, or of what
/// was installed beside it. `own` is the program's folder.
std::optional<std::filesystem::path> find_example(const std::filesystem::path& own);

}  // namespace pipewright::gui
