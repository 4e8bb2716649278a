#include "pipewright/sim/jitter/together.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <vector>

namespace pipewright::sim {
namespace {

/// A worker's compute seconds in each step, minus their mean.
struct WorkerDeviations {
  int replica = 0;
  int rank = 0;
  std::vector<double> seconds;
};

std::vector<WorkerDeviations> deviations_in(const models::RecordedSteps& record) {
  std::map<std::pair<int, int>, std::vector<double>> busy;
  for (const models::RecordedOperation& operation : record.operations) {
    if (!plan::traits_of(operation.instruction.kind).action)
      continue;
    auto& seconds = busy[{operation.replica, operation.rank}];
    seconds.resize(record.steps());
    for (std::size_t step = 0; step < record.steps(); ++step)
      seconds[step] += operation.seconds[step];
  }
  std::vector<WorkerDeviations> workers;
  for (auto& [worker, seconds] : busy) {
    const double mean =
        std::accumulate(seconds.begin(), seconds.end(), 0.0) / static_cast<double>(seconds.size());
    for (double& value : seconds)
      value -= mean;
    workers.push_back({worker.first, worker.second, std::move(seconds)});
  }
  return workers;
}

double product(const WorkerDeviations& a, const WorkerDeviations& b) {
  return std::inner_product(a.seconds.begin(), a.seconds.end(), b.seconds.begin(), 0.0);
}

/// Returns the pooled correlation of the pairs for which `belongs` is true.
template <class Belongs>
double correlation(const std::vector<WorkerDeviations>& workers, const Belongs& belongs) {
  double together = 0, all = 0;
  for (std::size_t a = 0; a < workers.size(); ++a)
    for (std::size_t b = a + 1; b < workers.size(); ++b)
      if (belongs(workers[a], workers[b])) {
        together += product(workers[a], workers[b]);
        all +=
            std::sqrt(product(workers[a], workers[a])) * std::sqrt(product(workers[b], workers[b]));
      }
  return all > 0 ? std::clamp(together / all, 0.0, 1.0) : 0.0;
}

}  // namespace

JitterCorrelation together_in(const models::RecordedSteps& record) {
  using Worker = WorkerDeviations;
  const auto workers = deviations_in(record);
  JitterCorrelation found;
  found.pipelines =
      correlation(workers, [](const Worker& a, const Worker& b) { return a.rank == b.rank; });
  found.ranks =
      std::max(found.pipelines, correlation(workers, [](const Worker& a, const Worker& b) {
                 return a.replica == b.replica;
               }));
  return found;
}

}  // namespace pipewright::sim
