#pragma once

// A training that has lost devices, or has slow ones, goes on by another plan: what is left of the
// job, and what it takes to get there.

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pipewright/search/drafts/draft_search.hpp"

namespace pipewright::search {

/// By rank of the job, as plan::topology_of says who is where.
struct DeviceTrouble {
  std::vector<int> lost{};
  std::vector<std::pair<int, double>> slow{};  // and how fast it is beside the others
};

/// What can be used from now on, in the order of the job's ranks.
struct DevicesLeft {
  std::vector<int> ranks;      // that they were
  std::vector<double> speeds;  // of each
};
/// Throws plan::InputError for a rank that the job does not have, a rank both lost and slow, a
/// speed that is not between 0 and 1, or when none is left.
DevicesLeft devices_left(const plan::Scenario& scenario, const DeviceTrouble& trouble);

/// A rank of the new plan reads what its device did not hold before.
struct RankMove {
  int rank = 0;             // of the new job
  int was = 0;              // of the old one
  std::vector<int> layers;  // that it had not
  plan::Bytes bytes;        // their parameters and optimizer's state
};
/// By rank of the new job. `after` is a plan that was searched among `left`.
std::vector<RankMove> moves_to(const Draft& before, const DraftPlan& after,
                               const DevicesLeft& left);

/// The newest folder of checkpoints that has a manifest: reading it is what proves it whole.
struct StoredStep {
  std::filesystem::path folder;
  int step = 0;
  plan::Bytes bytes;
};
/// Nothing where there is none. Throws plan::InputError where the folder cannot be read.
std::optional<StoredStep> newest_step(const std::filesystem::path& checkpoints);

}  // namespace pipewright::search
