#include "pipewright/loop_torch/measured_partition.hpp"

#include "pipewright/loop_torch/custom_model.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/partition/partition.hpp"
#include "pipewright/plan/partitioners/layer_weights.hpp"
#include "pipewright/profiler/profile/profile.hpp"

namespace pipewright::loop {
namespace {

std::vector<int> measured_boundaries(const MeasuredBy& how,
                                     const std::vector<exec::LayerSpec>& layers, int stages) {
  // Every microbatch is the same example.
  const auto data = exec::dataset_of([&how](int, int) { return how.example; });
  exec::TrainingSetup setup;
  setup.layers = layers;
  setup.loss = how.loss;
  setup.data = data.get();
  setup.precision = how.precision;
  profiler::LayerBench bench(setup);
  const plan::LayerCosts costs = profiler::profile(bench, how.settings);
  const std::string method = "profile";
  return plan::boundaries_by(method, plan::weights_by(method, described("measured", layers), costs),
                             stages);
}

}  // namespace

engine::Partitioner by_measured_cost(MeasuredBy how, const Membership& members) {
  return [how = std::move(how), rank = members.rank(), &members](
             const std::vector<exec::LayerSpec>& layers, int stages) {
    if (!rank)
      return measured_boundaries(how, layers, stages);
    plan::Json found;
    if (members.is_first())
      found = measured_boundaries(how, layers, stages);
    return plan::Json::parse(members.from_first(found.dump())).get<std::vector<int>>();
  };
}

}  // namespace pipewright::loop
