#pragma once

// Replans a training that has lost devices, or has slow ones: the remaining devices, and the data
// that ranks must read for the new plan.

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pipewright/search/drafts/draft_search.hpp"

namespace pipewright::search {

/// Lost and slow devices by rank of the job, as numbered by plan::topology_of.
struct DeviceTrouble {
  std::vector<int> lost{};
  std::vector<std::pair<int, double>> slow{};  // rank, and its speed relative to the others
};

/// The usable devices, in the order of the job's ranks.
struct DevicesLeft {
  std::vector<int> ranks;      // their ranks in the old job
  std::vector<double> speeds;  // of each
};
/// Returns the remaining devices. Throws plan::InputError for a rank that the job does not have, a
/// rank both lost and slow, a speed that is not between 0 and 1, or if no rank is left.
DevicesLeft devices_left(const plan::Scenario& scenario, const DeviceTrouble& trouble);

/// The data that a rank of the new plan must read because its device did not hold them.
struct RankMove {
  int rank = 0;             // in the new job
  int was = 0;              // in the old job
  std::vector<int> layers;  // which it did not have
  plan::Bytes bytes;        // their parameters and optimizer state
};
/// Returns the moves by rank of the new job. `after` must be a plan that was searched among `left`.
std::vector<RankMove> moves_to(const Draft& before, const DraftPlan& after,
                               const DevicesLeft& left);

/// The newest folder of checkpoints that has a manifest. Only reading it proves that it is
/// complete.
struct StoredStep {
  std::filesystem::path folder;
  int step = 0;
  plan::Bytes bytes;
};
/// Returns nothing if there is none. Throws plan::InputError if the folder cannot be read.
std::optional<StoredStep> newest_step(const std::filesystem::path& checkpoints);

}  // namespace pipewright::search
