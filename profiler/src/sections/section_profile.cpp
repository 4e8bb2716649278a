#include "section_profile.hpp"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <utility>

#include "layers/layer_memory.hpp"
#include "layers/layer_sums.hpp"
#include "layers/selective.hpp"
#include "pipewright/engine/models/expert_load_recorder.hpp"
#include "pipewright/plan/costs/expert_loads.hpp"
#include "pipewright/plan/statistics.hpp"
#include "section_pass.hpp"

namespace pipewright::profiler {

SectionProfile::SectionProfile(const std::vector<LayerBench*>& benches, Cores* cores,
                               const Section& section, const exec::Tensors& inputs)
    : benches_(benches), cores_(cores), section_(section), contended_(benches.size()) {
  for (const LayerBench* const bench : benches_)
    rehearsals_.push_back(section_pass(*bench, section, inputs));
}

void SectionProfile::pass(bool counts) {
  const auto play_first = [&] { rehearsals_.front().play(counts ? &alone_ : nullptr); };
  if (cores_ == nullptr)
    play_first();
  else
    cores_->alone(0, play_first);
  if (counts)
    note(rehearsals_.front());
  if (rehearsals_.size() == 1)
    return;
  cores_->together([&](int core) {
    const auto at = static_cast<std::size_t>(core);
    if (at < rehearsals_.size())
      rehearsals_[at].play(counts ? &contended_[at] : nullptr);
  });
}

double SectionProfile::spread() const { return plan::spread(whole_); }

/// Records the times of a pass: its first load, and a forward and backward in one go.
void SectionProfile::note(const Rehearsal& first) {
  const std::vector<double>& seconds = first.seconds();
  const std::vector<double>& targets = first.target_seconds();
  const double target = targets.empty() ? 0 : targets.front();
  if (!targets.empty())
    target_load_.push_back(target);
  if (section_.first == 0)
    load_.push_back(seconds[0] - target);
  whole_.push_back(seconds[1] + seconds[2]);
}

int SectionProfile::layer_end() const {
  return section_.last == benches_.front()->loss() ? section_.last + 1 : section_.last;
}

MeasuredLayer SectionProfile::measured_layer(int layer, const exec::Tensors& inputs,
                                             const exec::Tensors& targets) {
  const Trial trial{*benches_.front(), rehearsals_.front().stage(stage_of(section_)), layer, inputs,
                    targets};
  MeasuredLayer measured;
  const auto at = static_cast<std::size_t>(layer);
  if (!alone_.empty())  // empty if it was stopped before the first pass
    measured.alone = alone_[at];
  if (rehearsals_.size() > 1)
    for (const auto& of_core : contended_)
      if (!of_core.empty())
        measured.contended.append(of_core[at]);
  measured.rest.name = benches_.front()->name(layer);
  measure_memory(trial, measured.rest);
  measure_selective(trial, measured.rest);
  measured.rest.tensor_all_reduces = sums_of_shards(trial);
  return measured;
}

std::vector<MeasuredLayer> SectionProfile::measured(Walk& walk) {
  const exec::Stage& stage = rehearsals_.front().stage(stage_of(section_));
  std::vector<MeasuredLayer> layers;
  std::vector<exec::Tensors> values = walk.values();
  for (int layer = section_.first; layer < layer_end(); ++layer) {
    layers.push_back(measured_layer(layer, values.front(), walk.targets()));
    if (layer == benches_.front()->loss())
      break;
    const at::NoGradGuard no_grad;
    std::vector<std::vector<std::int64_t>> rows;  // tokens per expert in several steps
    for (exec::Tensors& of_step : values) {
      const engine::ExpertLoadRecorder routed;
      of_step = stage.layers().run(layer, of_step, {}, {});
      if (!routed.by_expert().empty())
        rows.push_back(routed.by_expert());
    }
    layers.back().rest.expert_loads = plan::expert_loads(rows);
  }
  walk.went_to(section_.last, std::move(values));
  return layers;
}

}  // namespace pipewright::profiler
