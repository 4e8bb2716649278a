#pragma once

// Measures one section of a model, built on each core.

#include <functional>
#include <vector>

#include "layers/walk.hpp"
#include "pipewright/profiler/sections/rehearsal.hpp"
#include "pipewright/profiler/sections/sections.hpp"

namespace pipewright::profiler {

/// The measurements of a layer.
struct MeasuredLayer {
  LayerSamples alone;
  LayerSamples contended;  // on all cores at once; empty with one core
  plan::LayerCost rest;    // all except the times
};

class SectionProfile {
 public:
  /// `benches` are those of the cores that have a copy. `cores` are these cores and possibly
  /// others; null to use the calling thread. All must outlive this object.
  SectionProfile(const std::vector<LayerBench*>& benches, Cores* cores, const Section& section,
                 const exec::Tensors& inputs);

  /// Runs one pass on the first core alone and one on all cores at once.
  void pass(bool counts);
  double spread() const;
  int passes() const { return static_cast<int>(whole_.size()); }
  /// Returns the seconds of forward and backward of all its layers alone, by pass.
  const std::vector<double>& seconds() const { return whole_; }

  /// Loading times by pass: inputs if the section has the model's first layer, targets if it has
  /// the loss.
  const std::vector<double>& load() const { return load_; }
  const std::vector<double>& target_load() const { return target_load_; }

  /// Returns the measurements by layer of the section, with the loss after the model's last layer.
  /// Advances the walk past the section.
  std::vector<MeasuredLayer> measured(Walk& walk);

 private:
  int layer_end() const;
  void note(const Rehearsal& first);
  MeasuredLayer measured_layer(int layer, const exec::Tensors& inputs,
                               const exec::Tensors& targets);

  std::vector<LayerBench*> benches_;
  Cores* cores_;
  Section section_;
  std::vector<Rehearsal> rehearsals_;                 // by core
  std::vector<LayerSamples> alone_;                   // by layer of the model, the loss last
  std::vector<std::vector<LayerSamples>> contended_;  // by core and layer
  std::vector<double> load_, target_load_, whole_;
};

}  // namespace pipewright::profiler
