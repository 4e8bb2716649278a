#pragma once

// A vision transformer, planned layer by layer; engine/src/models/vit.cpp builds it.

#include "pipewright/plan/model/model_shape.hpp"

namespace pipewright::plan {

/// Image patches, pre-norm blocks over them, and a classifier of the mean of all patches
/// (Dosovitskiy et al., arXiv 2010.11929; the mean as in Zhai et al., 2106.04560). Layer 0 embeds
/// the patches, the last layer is norm and head.
struct VitShape {
  static constexpr auto kind = "vit";
  int blocks = 6;
  int hidden = 192;
  int heads = 3;
  int patch = 4;        // side of a patch, in pixels
  int image_size = 32;  // side of an image; a multiple of the patch's side
  int classes = 10;
  friend bool operator==(const VitShape&, const VitShape&) = default;

  int patches() const { return (image_size / patch) * (image_size / patch); }
};
template <>
const ModelDescriptor& descriptor_of<VitShape>();

/// Returns why the heads cannot be partitioned into `parts` parts, and the nearest numbers that
/// work.
std::vector<std::string> faults_of_vit_cut(const VitShape& shape, int parts);

}  // namespace pipewright::plan
