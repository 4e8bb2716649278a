#pragma once

// One section of a model, built on each core and measured there.

#include <functional>
#include <vector>

#include "layers/walk.hpp"
#include "pipewright/profiler/sections/rehearsal.hpp"
#include "pipewright/profiler/sections/sections.hpp"

namespace pipewright::profiler {

/// What was measured of a layer.
struct MeasuredLayer {
  LayerSamples alone;
  LayerSamples contended;  // on all cores at once; empty: one only
  plan::LayerCost rest;    // all but the times
};

class SectionProfile {
 public:
  /// `benches`: of the cores that have a copy; `cores`: of those and others, none: the calling
  /// thread. All must outlive it.
  SectionProfile(const std::vector<LayerBench*>& benches, Cores* cores, const Section& section,
                 const exec::Tensors& inputs);

  /// One on the first core alone, one on all at once.
  void pass(bool counts);
  double spread() const;
  int passes() const { return static_cast<int>(whole_.size()); }
  /// Forward and backward of all its layers alone, by pass.
  const std::vector<double>& seconds() const { return whole_; }

  /// Where the section has the model's inputs, and where it has the loss; by pass.
  const std::vector<double>& load() const { return load_; }
  const std::vector<double>& target_load() const { return target_load_; }

  /// By layer of the section, the loss behind the model's last one. Moves the walk behind it.
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
