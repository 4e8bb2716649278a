#pragma once

// A vision transformer, planned layer by layer; engine/src/models/vit.cpp builds it.

#include "pipewright/plan/model/model_shape.hpp"

namespace pipewright::plan {

/// Images in patches, pre-norm blocks over them, and the mean of all patches classified
/// (Dosovitskiy et al., arXiv 2010.11929; the mean as in Zhai et al., 2106.04560). Layer 0 makes
/// the patches, the last one is norm and head.
struct VitShape {
  static constexpr auto kind = "vit";
  int blocks = 6;
  int hidden = 192;
  int heads = 3;
  int patch = 4;        // side of a patch, in pixels
  int image_size = 32;  // side of an image; a multiple of the patch's
  int classes = 10;
  friend bool operator==(const VitShape&, const VitShape&) = default;

  int patches() const { return (image_size / patch) * (image_size / patch); }
};
template <>
const ModelDescriptor& descriptor_of<VitShape>();

/// Why its heads cannot be shared out in so many parts, and how many would do.
std::vector<std::string> faults_of_vit_cut(const VitShape& shape, int parts);

}  // namespace pipewright::plan
