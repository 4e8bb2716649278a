#pragma once

// A model of one's own, declared in one place of one's own program: its sizes as a scenario says
// them, its layers, its data and its loss. From then on its kind is one of those that scenarios
// name, for every command (pipewright/cli/command_line.hpp) and every function of the loop:
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
// The macro stands outside of all namespaces, in one source.

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "pipewright/engine/models/model_builder.hpp"
#include "pipewright/plan/model/declare_model.hpp"

namespace pipewright::loop {

/// What is declared of a shape of one's own. `layers`, `data` and `loss` must be there.
template <class Shape>
struct OwnModel {
  /// A sentence for the help and the schema.
  const char* meaning = "A model of this program's own.";
  std::vector<exec::LayerSpec> (*layers)(const Shape&) = nullptr;
  /// Opens what a scenario's `data.path`, or `data.evaluation`, names. Throws InputError that names
  /// it.
  std::unique_ptr<exec::Dataset> (*data)(const Shape&, const std::filesystem::path&,
                                         const exec::BatchShape&) = nullptr;
  /// Of a microbatch: the mean, or a sum of several.
  exec::Loss loss{};
  const char* unit = "samples";          // what speed is counted in
  int (*units)(const Shape&) = nullptr;  // of a sample; null: 1
  /// Tensors between layers may differ from microbatch to microbatch.
  bool dynamic_shapes = false;
  /// Why shards cannot share out the layers in so many parts, and how many would do. Null: no layer
  /// has a `build_shard`.
  std::vector<std::string> (*faults_of_cut)(const Shape&, int parts) = nullptr;
  /// What no field shows by itself: records an error for a shape that cannot be built.
  void (*check)(const Shape&, plan::JsonObject&) = nullptr;
};

/// What planning needs to know of layers: names, parameters and what is tied. Times and sizes of
/// what they hand on are measured. Nothing is allocated.
plan::Model described(const std::string& name, const std::vector<exec::LayerSpec>& layers);

/// Puts a model into the lists of kinds. Throws InputError when the kind is known already.
template <class Shape>
class RegisteredModel {
 public:
  explicit RegisteredModel(const OwnModel<Shape>& own) : own_(own) {
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
  /// The newest is kept: it is asked for again and again, and counting builds all layers.
  plan::Model model(const Shape& shape) {
    const std::lock_guard lock(mutex_);
    if (!known_ || !(known_->first == shape))
      known_.emplace(shape, described(Shape::kind, own_.layers(shape)));
    return known_->second;
  }

  OwnModel<Shape> own_;
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
        ::pipewright::loop::OwnModel<Shape> __VA_ARGS__);                                     \
    return model.descriptor;                                                                  \
  }                                                                                           \
  [[maybe_unused]] static const auto& PIPEWRIGHT_JOINED(pipewright_own_model_, __COUNTER__) = \
      ::pipewright::plan::descriptor_of<Shape>()
