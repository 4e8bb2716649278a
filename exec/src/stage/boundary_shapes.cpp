#include "boundary_shapes.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipewright/exec/stage/stage_spec.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::exec {
namespace {

Tensors without_numbers(Tensors tensors) {
  for (at::Tensor& tensor : tensors)
    if (tensor.defined())
      tensor = at::empty(tensor.sizes(), tensor.options().device(at::kMeta));
  return tensors;
}

bool have_same_shape(const at::Tensor& a, const at::Tensor& b) {
  return a.defined() && b.defined() ? a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes()
                                    : a.defined() == b.defined();
}

std::string in_words(const at::Tensor& tensor) {
  return tensor.defined() ? fmt::format("{} [{}]", c10::toString(tensor.scalar_type()),
                                        fmt::join(tensor.sizes(), ", "))
                          : "undefined";
}

}  // namespace

void BoundaryShapes::expect(const Tensors& tensors) { expected_ = without_numbers(tensors); }

void BoundaryShapes::check(const StageSpec& stage, int microbatch, const char* what,
                           const Tensors& tensors) {
  if (stage.dynamic_shapes)
    return;
  const auto refuse = [&](const std::string& rest) {
    throw plan::InputError(
        fmt::format("stage {}, microbatch {}: {}; shapes that change from "
                    "microbatch to microbatch need `dynamic_shapes`",
                    stage.index, microbatch, rest));
  };
  if (of_pass_.empty())
    of_pass_ = without_numbers(tensors);
  if (of_pass_.size() != tensors.size())
    refuse(fmt::format("{} {}s, expected {}", tensors.size(), what, of_pass_.size()));
  for (std::size_t t = 0; t < tensors.size(); ++t)
    if (!have_same_shape(of_pass_[t], tensors[t]))
      refuse(fmt::format("{} {} is {}, expected {}", what, t, in_words(tensors[t]),
                         in_words(of_pass_[t])));
}

}  // namespace pipewright::exec
