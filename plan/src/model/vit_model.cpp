#include "pipewright/plan/model/vit_model.hpp"

#include <fmt/format.h>

#include "pipewright/plan/model/declare_model.hpp"
#include "pipewright/plan/model/model.hpp"
#include "planned_layer.hpp"

namespace pipewright::plan {

template <MaybeConst<VitShape> Struct, class Visit>
void visit_fields(Struct& s, Visit&& visit) {
  constexpr Range blocks_range{.least = 1, .most = 10'000};
  constexpr Range pixels_range{.least = 1, .most = 10'000};
  constexpr Range classes_range{.least = 10, .most = 1'000'000};  // CIFAR-10 has 10
  visit("blocks", s.blocks, within(blocks_range),
        "Transformer blocks. The model has two more layers, patches and head.");
  visit("hidden", s.hidden, within(size_range), "Width; a multiple of heads.");
  visit("heads", s.heads, within(size_range), "Heads of the attention.");
  visit("patch", s.patch, within(pixels_range), "Side of a patch in pixels.");
  visit("image_size", s.image_size, within(pixels_range),
        "Side to which the images are scaled; a multiple of patch.");
  visit("classes", s.classes, within(classes_range), "Number of image classes; CIFAR-10 has 10.");
}

namespace {

constexpr int colors = 3;

Model vit_model(const VitShape& shape) {
  const std::int64_t h = shape.hidden;
  const std::int64_t pixels = std::int64_t{colors} * shape.patch * shape.patch;
  Model model{.name = "vit", .layers = {}};
  model.layers.push_back(planned_layer(
      "patches", "patches", linear_parameters(pixels, h) + shape.patches() * h,
      2.0 * shape.patches() * static_cast<double>(pixels * h), {shape.patches(), shape.hidden}));
  for (int index = 0; index < shape.blocks; ++index)
    model.layers.push_back(
        planned_block(fmt::format("block{}", index), shape.patches(), shape.hidden));
  model.layers.push_back(planned_layer("head", "norm-and-head",
                                       norm_parameters(h) + linear_parameters(h, shape.classes),
                                       2.0 * shape.hidden * shape.classes, {shape.classes}));
  return model;
}

Sample image_in_patches(const VitShape& shape) {
  return {.input = {.shape = {colors, shape.image_size, shape.image_size}},
          .target = {.shape = {}, .is_index = true}};
}

/// The head multiplies the mean of its norm's outputs, the first layer a copy of the images.
LayerEstimate estimate_of_vit(const VitShape& shape, const Layer& layer) {
  if (layer.kind == "patches")
    return {.kept = 1.0 * colors * shape.image_size * shape.image_size};
  if (layer.kind == "norm-and-head")
    return {.kept = shape.hidden + 2.0 * shape.patches()};
  return {.kept = kept_by_block(shape.patches(), shape.hidden, shape.heads)};
}

void check_vit(const VitShape& shape, JsonObject& object) {
  check_heads(shape.heads, shape.hidden, object);
  if (shape.image_size % shape.patch != 0)
    object.error("patch",
                 fmt::format("images of {} pixels are not a whole number of patches of {}: {} "
                             "would do",
                             shape.image_size, shape.patch,
                             nearest_sizes(shape.patch, shape.image_size, [&](int side) {
                               return shape.image_size % side == 0;
                             })));
}

}  // namespace

std::vector<std::string> faults_of_vit_cut(const VitShape& shape, int parts) {
  return faults_of_head_cut(shape.heads, parts);
}

template <>
const ModelDescriptor& descriptor_of<VitShape>() {
  static const ModelDescriptor vit =
      declare_model<VitShape>({.meaning = "A vision transformer over the patches of images.",
                               .data = cifar10_data,
                               .unit = "images",
                               .layers = vit_model,
                               .sample = image_in_patches,
                               .estimate = estimate_of_vit,
                               .check = check_vit,
                               .faults_of_cut = faults_of_vit_cut});
  return vit;
}

}  // namespace pipewright::plan
