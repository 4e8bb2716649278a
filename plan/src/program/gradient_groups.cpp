#include "pipewright/plan/program/gradient_groups.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <map>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/program/computation.hpp"

namespace pipewright::plan {
namespace {

/// Returns the pipeline and the direction of each microbatch of the batch, as one number.
std::vector<int> owners_of(const Program& program, int replicas) {
  const int routes = static_cast<int>(program.placement.routes.size());
  std::vector<int> owners;
  for (int replica = 0; replica < replicas; ++replica)
    for (int microbatch = 0; microbatch < program.microbatches; ++microbatch)
      owners.push_back(replica * routes + program.placement.route_of(microbatch));
  return owners;
}

std::vector<int> rounds_of(const Program& program, int replicas) {
  std::vector<int> rounds;
  for (int replica = 0; replica < replicas; ++replica)
    for (int microbatch = 0; microbatch < program.microbatches; ++microbatch)
      rounds.push_back(microbatch);
  return rounds;
}

}  // namespace

std::vector<int> gradient_groups(const Program& program, int replicas, int groups) {
  if (scatters_microbatches(program))
    return rounds_of(program, replicas);
  if (groups == 0)
    return owners_of(program, replicas);
  const int batch = replicas * program.microbatches;
  std::vector<int> of_microbatch;
  for (int microbatch = 0; microbatch < batch; ++microbatch)
    of_microbatch.push_back(static_cast<int>(std::int64_t{microbatch} * groups / batch));
  return of_microbatch;
}

void require_whole_groups(const Program& program, int replicas, int groups) {
  if (scatters_microbatches(program)) {
    if (groups != 0 && groups != replicas)
      throw InputError(fmt::format(
          "{} gradient groups under ZeRO stage 2 or 3, where each of the {} pipelines is one: say "
          "{}, or use stage 1",
          groups, replicas, replicas));
    return;
  }
  const std::vector<int> of_microbatch = gradient_groups(program, replicas, groups);
  const std::vector<int> owners = owners_of(program, replicas);
  const auto batch = static_cast<int>(owners.size());
  std::map<int, int> owner_of_group;
  for (std::size_t at = 0; at < owners.size(); ++at) {
    const int owner = owner_of_group.try_emplace(of_microbatch[at], owners[at]).first->second;
    if ((groups > 0 && batch % groups != 0) || owner != owners[at])
      throw InputError(fmt::format(
          "{} gradient groups for {} microbatches: each of the {} pipelines, and each direction "
          "of one, must own whole groups of equal size",
          groups, batch, replicas * static_cast<int>(program.placement.routes.size())));
  }
}

}  // namespace pipewright::plan
