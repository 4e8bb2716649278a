#pragma once

// Runs microbatches forward and backward through the layers of a stage, segment by segment. A
// segment has one autograd graph. A stage is one segment, or several if layers are recomputed in
// groups or observed one by one.

#include <vector>

#include "microbatch_state.hpp"
#include "pipewright/exec/stage/pass.hpp"
#include "pipewright/exec/stage/stage_layers.hpp"

namespace pipewright::exec {

class LayerPasses {
 public:
  /// Keeps references to its arguments. `pass` is the current one.
  LayerPasses(const StageSpec& spec, const StageLayers& layers, const Pass& pass);

  /// Begins a pass. With `captured`, its work will be replayed for other microbatches.
  void begin(bool captured);

  /// Returns the stage's outputs, or the loss on the last stage. If a Recompute follows, keeps only
  /// the inputs of the groups of layers that it recomputes.
  Tensors forward(MicrobatchState& held);
  /// Recomputes the last group of layers; the backward recomputes the others. Returns nothing.
  Tensors recompute(MicrobatchState& held);
  /// Both functions return the gradients of the stage's inputs.
  Tensors backward(MicrobatchState& held);
  Tensors input_gradient(MicrobatchState& held);
  /// Returns nothing.
  Tensors weight_gradient(MicrobatchState& held);

  /// Returns the outputs as leaves, for the graph of the next stage.
  Tensors take_outputs(MicrobatchState& held) const;
  /// Returns the outputs by microbatch of the pass; empty if the pass does not keep them.
  std::vector<Tensors>& kept_outputs() { return kept_outputs_; }

 private:
  /// The leaves that get a gradient: none, those whose value is in a graph that needs one, or all
  /// that can have one. A segment that will be recomputed has no graph yet, so it uses `OfAll`.
  enum class Gradients { None, OfGraph, OfAll };
  static Tensors leaves_of(const Tensors& values, Gradients wanted);
  Gradients gradients_before(const MicrobatchState& held, int layer) const;

  const std::vector<int>& bounds(const MicrobatchState& held) const {
    return held.backward.recomputed && spec_.recompute_layers > 0 ? recompute_bounds_
                                                                  : graph_bounds_;
  }
  int group_begin(int layer) const;
  template <class Work>
  void observe(const MicrobatchState& held, plan::InstructionKind part, std::size_t segment,
               const Work& work) const;
  CallContext context_of(const MicrobatchState& held, int layer) const;
  Tensors run_segment(const MicrobatchState& held, plan::InstructionKind part, std::size_t segment,
                      Tensors values);
  Tensors run_without_graph(MicrobatchState& held);
  Tensors run_with_graph(MicrobatchState& held);
  void build_graphs(MicrobatchState& held, std::size_t first, std::size_t last);
  void recompute_group(MicrobatchState& held, std::size_t last);

  const StageSpec& spec_;
  const StageLayers& layers_;
  const Pass& pass_;
  // The layers at which segments begin, followed by the end of the last one: without recomputation,
  // and with recomputation in groups.
  std::vector<int> graph_bounds_, recompute_bounds_;
  bool captured_ = false;
  std::vector<Tensors> kept_outputs_;
};

}  // namespace pipewright::exec
