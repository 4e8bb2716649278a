#pragma once

// The layers of a plan and their stages as a strip of a given width, as a value: positions of
// layers, and the layer to which a dragged stage boundary snaps.

#include <QString>
#include <optional>
#include <string>
#include <vector>

#include "pipewright/gui/document/workspace.hpp"

namespace pipewright::gui {

struct StripLayer {
  std::string name;
  std::string kind;  // "transformer-block"
  double forward_s = 0;
  double backward_s = 0;
  double time_s = 0;      // compute time on its rank for one microbatch; the last layer's includes
                          // the loss
  double parameters = 0;  // bytes
  double standing = 0;    // bytes of parameters, gradients and optimizer state
  double activation = 0;  // bytes saved in it per microbatch
};

struct StripStage {
  int first = 0;  // its layers are [first, last)
  int last = 0;
  int rank = 0;
  double time_s = 0;      // of one microbatch, at its rank's speed
  double standing = 0;    // bytes
  double activation = 0;  // bytes per microbatch
  bool slowest = false;
};

struct LayerStrip {
  std::vector<StripLayer> layers;
  std::vector<StripStage> stages;
  std::vector<int> boundaries;
};

/// Returns nothing if no plan is known, or if a rejected plan has no stage boundaries.
std::optional<LayerStrip> strip_of(const Workspace& workspace);

/// Returns where each layer begins, and where the last ends. Widths are proportional to time, but
/// at least `least` if there is room.
std::vector<double> layer_places(const std::vector<StripLayer>& layers, double width, double least);
/// Returns the layer whose beginning is nearest to `x`, from `first` to `last`.
int nearest_layer(const std::vector<double>& places, double x, int first, int last);
/// Returns the layer at `x`; -1 outside of the strip.
int layer_at(const std::vector<double>& places, double x);

}  // namespace pipewright::gui
