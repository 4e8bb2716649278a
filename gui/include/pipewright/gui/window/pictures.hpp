#pragma once

// What the window shows as a figure in a file: SVG with the bytes that the command line writes, PDF
// and PNG of the same scene.

#include <filesystem>

#include "pipewright/draw/scene.hpp"
#include "pipewright/gui/document/workspace.hpp"

namespace pipewright::gui {

/// The picture of a plan is what `simulate --svg` draws, that of a run its timeline.svg, of
/// anything else its timeline. Throws InputError where there is nothing to draw, or more than a
/// figure can hold.
draw::Scene picture_of(const Workspace& workspace);

/// SVG, PDF or PNG, by the name. Throws InputError for another name, and what plan::write_file
/// does.
void save_picture(const draw::Scene& scene, const std::filesystem::path& file);

}  // namespace pipewright::gui
