#pragma once

// The pass times that the authors of Zero Bubble profiled (arXiv 2401.10241, Table 9), and their
// schedules under them. Times in milliseconds.

#include <cmath>
#include <string>
#include <vector>

#include "sim/support/equal_ranks.hpp"
#include "support/reference.hpp"

namespace pipewright::test {

struct ProfiledPasses {
  std::string model;
  int ranks = 0;
  int microbatches = 0;
  int chunks = 0;             // for 1F1B-I
  plan::ScheduleCosts costs;  // of one microbatch on all chunks of a rank

  double forward() const { return costs.of(0).forward.value; }
  double input_gradient() const { return costs.of(0).input_gradient.value; }
  double weight_gradient() const { return costs.of(0).weight_gradient.value; }
  double all() const { return forward() + input_gradient() + weight_gradient(); }
};

inline ProfiledPasses profiled_passes(const ReferenceRow& row) {
  const auto number = [&](const char* column) { return std::stod(row.at(column)); };
  return {row.at("model"), std::stoi(row.at("p")), std::stoi(row.at("m")),
          std::stoi(row.at("v_interleaved")),
          plan::equal_costs({number("T_F")}, {number("T_B")}, {number("T_W")}, {number("T_comm")})};
}

inline std::vector<ProfiledPasses> profiled_passes() {
  std::vector<ProfiledPasses> all;
  for_each_row("papers/zb_table5_table9_bubble_rates.csv",
               [&](const ReferenceRow& row) { all.push_back(profiled_passes(row)); });
  return all;
}

/// Returns the passes of a model and, if there are several, a number of microbatches.
inline const ProfiledPasses& passes_of(const std::vector<ProfiledPasses>& all,
                                       const std::string& model, int microbatches) {
  const ProfiledPasses* found = nullptr;
  for (const ProfiledPasses& passes : all)
    if (passes.model == model && (found == nullptr || passes.microbatches == microbatches))
      found = &passes;
  REQUIRE(found != nullptr);
  return *found;
}

/// Returns the request of "1F1B", "1F1B-I", "ZB-1p" or "ZB-2p", with the times of one chunk.
inline plan::ScheduleRequest zero_bubble_request(const std::string& name,
                                                 const ProfiledPasses& passes) {
  plan::ScheduleRequest request;
  request.ranks = passes.ranks;
  request.microbatches = passes.microbatches;
  request.costs = passes.costs;
  request.name = name == "1F1B" ? "1f1b" : name == "1F1B-I" ? "megatron-interleaved" : "zb-auto";
  if (name == "ZB-1p" || name == "ZB-2p")
    request.memory_units = (name == "ZB-1p" ? 2 : 4) * passes.ranks;
  if (name == "1F1B-I") {
    request.chunks = passes.chunks;
    plan::PassTimes& times = request.costs.stages.front();
    for (plan::Seconds* time : {&times.forward, &times.input_gradient, &times.weight_gradient})
      time->value /= passes.chunks;
  }
  return request;
}

}  // namespace pipewright::test
