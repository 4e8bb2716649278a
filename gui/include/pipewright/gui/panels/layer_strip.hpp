#pragma once

// The layers of a plan and their stages as a strip of so many pixels, as a value: what stands
// where, and to which layer a border goes that is dragged somewhere.

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
  double time_s = 0;      // that it holds its rank for one microbatch; the last one's with the loss
  double parameters = 0;  // bytes
  double standing = 0;    // bytes: parameters, their gradients and the optimizer's state
  double activation = 0;  // bytes that one microbatch keeps in it
};

struct StripStage {
  int first = 0;  // its layers are [first, last)
  int last = 0;
  int rank = 0;
  double time_s = 0;      // of one microbatch, at the speed of its rank
  double standing = 0;    // bytes
  double activation = 0;  // bytes of one microbatch
  bool slowest = false;
};

struct LayerStrip {
  std::vector<StripLayer> layers;
  std::vector<StripStage> stages;
  std::vector<int> boundaries;
};

/// Nothing where no plan is known, or none that was refused can be cut.
std::optional<LayerStrip> strip_of(const Workspace& workspace);

/// Where each layer begins, and the last ends: widths go by time, but none is below `least`, as far
/// as there is room.
std::vector<double> layer_places(const std::vector<StripLayer>& layers, double width, double least);
/// The layer whose beginning is nearest to `x`, from `first` to `last`.
int nearest_layer(const std::vector<double>& places, double x, int first, int last);
/// The layer at `x`; -1 beside the strip.
int layer_at(const std::vector<double>& places, double x);

}  // namespace pipewright::gui
