#pragma once

// What links take on this machine or in this job, through the transports that training uses.

#include <atomic>
#include <functional>
#include <vector>

#include "pipewright/loop_torch/membership.hpp"
#include "pipewright/profiler/links/link_bench.hpp"

namespace pipewright::loop {

struct LinkSettings {
  profiler::LinkLimits limits;  // of each kind
  int computing_ranks = 2;      // on a node, when it trains
  profiler::LinkProgress progress{};
  const std::atomic<bool>* stop = nullptr;
};

/// Between ranks that are threads of this process, on its CPU. Throws Stopped.
plan::LinkSamples links_in_process(int ranks, const LinkSettings& settings);

/// Between the processes of a job: within the first one's node where it has another, and between
/// nodes where there are several. All processes call it; the first has the answer. The time is
/// divided among the kinds. Throws Stopped.
std::vector<plan::LinkSamples> links_of_job(const Membership& members, const std::string& over,
                                            const exec::RankDevice& device,
                                            const LinkSettings& settings);

}  // namespace pipewright::loop
