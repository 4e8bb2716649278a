#pragma once

// Saves the window's content as a figure: SVG with the same bytes as the command line writes, or
// PDF or PNG of the same scene.

#include <filesystem>

#include "pipewright/draw/scene.hpp"
#include "pipewright/gui/document/workspace.hpp"

namespace pipewright::gui {

/// Returns the picture of a plan as `simulate --svg` draws it, that of a run as its timeline.svg,
/// and that of any other document as its timeline. Throws InputError if there is nothing to draw,
/// or more than fits in a figure.
draw::Scene picture_of(const Workspace& workspace);

/// Writes SVG, PDF or PNG according to the name. Throws InputError for another suffix, and the
/// exceptions of plan::write_file.
void save_picture(const draw::Scene& scene, const std::filesystem::path& file);

}  // namespace pipewright::gui
