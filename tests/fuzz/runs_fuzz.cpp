// Tables of runs: the parameters and times of an accepted run are finite numbers.

#include <cmath>
#include <string_view>

#include "pipewright/models/measured/measured_run.hpp"
#include "pipewright/models/transformer/transformer_times.hpp"
#include "pipewright/plan/error.hpp"
#include "reader.hpp"

namespace runs_fuzz {

using namespace pipewright::plan;
using namespace pipewright::models;
using pipewright::fuzz::demand;

void try_text(std::string_view text) {
  RunTable table;
  try {
    table = read_runs(text, "fuzz", RunTimes::Optional);
  } catch (const InputError&) {
    return;
  }
  ++pipewright::fuzz::values_read;
  Cluster cluster;
  cluster.devices_per_node = 8;
  cluster.device.flops_per_s = cluster.device.memory_bandwidth_per_s = 1e12;
  for (const MeasuredRun& run : table.runs) {
    demand(run.microbatches() > 0, "a run has a microbatch");
    demand(run.training.model.layers % run.cut.stages() == 0, "stages have whole layers");
    const auto work = transformer_work(cluster, run.training, run.cut);
    const auto times = transformer_times(work, {});
    demand(std::isfinite(times.layer.forward) && times.layer.forward > 0, "a layer takes time");
    demand(std::isfinite(times.head.backward) && std::isfinite(times.only_end_s),
           "times are numbers");
  }
}

const pipewright::fuzz::Reader reader("runs", try_text);

}  // namespace runs_fuzz
