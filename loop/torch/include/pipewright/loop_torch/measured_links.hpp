#pragma once

// Measures links on this machine or within a job, through the transports that training uses.

#include <atomic>
#include <functional>
#include <vector>

#include "pipewright/loop_torch/membership.hpp"
#include "pipewright/profiler/links/link_bench.hpp"

namespace pipewright::loop {

struct LinkSettings {
  profiler::LinkLimits limits;  // for each kind of link
  int computing_ranks = 2;      // ranks that compute on a node during training
  profiler::LinkProgress progress{};
  const std::atomic<bool>* stop = nullptr;
};

/// Measures the links between ranks that are threads of this process, on the CPU. Throws Stopped.
plan::LinkSamples links_in_process(int ranks, const LinkSettings& settings);

/// Measures the links between the processes of a job: within the node of the first process if it
/// has several, and between nodes if there are several. The time limit is divided among the kinds.
/// Collective; only the first process gets the result. Throws Stopped.
std::vector<plan::LinkSamples> links_of_job(const Membership& members, const std::string& over,
                                            const exec::RankDevice& device,
                                            const LinkSettings& settings);

}  // namespace pipewright::loop
