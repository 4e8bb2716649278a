#pragma once

// Custom models: a user's program declares a model's sizes, layers, data and loss in one place.
// From then on its kind can be named in scenarios and is known to every command
// (pipewright/cli/command_line.hpp) and every function of the loop:
//
//   struct StackShape {
//     static constexpr auto kind = "stack";
//     int depth = 4;
//     friend bool operator==(const StackShape&, const StackShape&) = default;
//   };
//   template <plan::MaybeConst<StackShape> Struct, class Visit>
//   void visit_fields(Struct& s, Visit&& visit) {
//     visit("depth", s.depth, plan::within({.least = 1, .most = 99}), "How many layers.");
//   }
//   PIPEWRIGHT_OWN_MODEL(StackShape, {.layers = stack_layers, .data = stack_data, .loss =
//   squares});
//
// Write the macro outside of all namespaces, in exactly one source file.

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "pipewright/engine/models/model_builder.hpp"
#include "pipewright/plan/model/declare_model.hpp"

namespace pipewright::loop {

/// The declaration of a custom model. `layers`, `data` and `loss` are required.
template <class Shape>
struct CustomModel {
  /// A sentence for the help text and the schema.
  const char* meaning = "A model of this program's own.";
  std::vector<exec::LayerSpec> (*layers)(const Shape&) = nullptr;
  /// Opens the file or folder that a scenario's `data.path` or `data.evaluation` names. Throws
  /// InputError that names it.
  std::unique_ptr<exec::Dataset> (*data)(const Shape&, const std::filesystem::path&,
                                         const exec::BatchShape&) = nullptr;
  /// The loss of a microbatch: a mean, or a sum of several losses.
  exec::Loss loss{};
  const char* unit = "samples";          // the unit of throughput
  int (*units)(const Shape&) = nullptr;  // units per sample; null means 1
  /// True if the shapes of boundary tensors may differ from microbatch to microbatch.
  bool dynamic_shapes = false;
  /// Returns why the layers cannot be partitioned into `parts` tensor-parallel ranks, and which
  /// numbers would do. Null if no layer has a `build_shard`.
  std::vector<std::string> (*faults_of_cut)(const Shape&, int parts) = nullptr;
  /// Checks what no single field can: records an error for a shape that cannot be built.
  void (*check)(const Shape&, plan::JsonObject&) = nullptr;
};

/// Returns what planning needs to know of the layers: names, parameters and tied weights. Times and
/// output sizes are measured. Allocates no tensors.
plan::Model described(const std::string& name, const std::vector<exec::LayerSpec>& layers);

/// Registers a model as a kind. Throws InputError if the kind already exists.
template <class Shape>
class RegisteredModel {
 public:
  explicit RegisteredModel(const CustomModel<Shape>& own) : own_(own) {
    descriptor = plan::declare_model<Shape>(
        {.meaning = own.meaning,
         .data = {.name = Shape::kind, .meaning = "what this model reads"},
         .unit = own.unit,
         .layers = nullptr,
         .sample = nullptr,
         .estimate = [](const Shape&, const plan::Layer&) { return plan::LayerEstimate{}; },
         .check = own.check,
         .faults_of_cut = own.faults_of_cut});
    descriptor.layers = [this](const plan::ModelShape& shape) { return model(shape.as<Shape>()); };
    descriptor.sample = [units = own.units](const plan::ModelShape& shape) {
      plan::Sample sample;
      sample.units = units == nullptr ? 1 : units(shape.as<Shape>());
      return sample;
    };
    plan::add_model_kind(descriptor);
    engine::add_builder(
        descriptor,
        {.layers = [own](const plan::ModelShape& shape,
                         const engine::LayerChoice&) { return own.layers(shape.as<Shape>()); },
         .open =
             [own](const plan::ModelShape& shape, const std::filesystem::path& path,
                   const exec::BatchShape& batch) {
               return own.data(shape.as<Shape>(), path, batch);
             },
         .loss = [loss = own.loss](const plan::ModelShape&) { return loss; },
         .dynamic_shapes = own.dynamic_shapes});
  }
  RegisteredModel(const RegisteredModel&) = delete;
  RegisteredModel& operator=(const RegisteredModel&) = delete;

  plan::ModelDescriptor descriptor;

 private:
  /// Caches the newest model, because it is requested often and counting parameters builds all
  /// layers.
  plan::Model model(const Shape& shape) {
    const std::lock_guard lock(mutex_);
    if (!known_ || !(known_->first == shape))
      known_.emplace(shape, described(Shape::kind, own_.layers(shape)));
    return known_->second;
  }

  CustomModel<Shape> own_;
  std::mutex mutex_;
  std::optional<std::pair<Shape, plan::Model>> known_;
};

}  // namespace pipewright::loop

#define PIPEWRIGHT_JOINED_AS(a, b) a##b
#define PIPEWRIGHT_JOINED(a, b) PIPEWRIGHT_JOINED_AS(a, b)

#define PIPEWRIGHT_OWN_MODEL(Shape, ...)                                                      \
  template <>                                                                                 \
  const ::pipewright::plan::ModelDescriptor& ::pipewright::plan::descriptor_of<Shape>() {     \
    static const ::pipewright::loop::RegisteredModel<Shape> model(                            \
        ::pipewright::loop::CustomModel<Shape> __VA_ARGS__);                                  \
    return model.descriptor;                                                                  \
  }                                                                                           \
  [[maybe_unused]] static const auto& PIPEWRIGHT_JOINED(pipewright_own_model_, __COUNTER__) = \
      ::pipewright::plan::descriptor_of<Shape>()
