#pragma once

// The ranks of a forward-only model, connected in a ring: each has its stages and sends to the next
// rank, and the last one sends to the first.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "message_line.hpp"
#include "pipewright/engine/forward_options.hpp"
#include "pipewright/engine/pipeline_module.hpp"
#include "pipewright/exec/checkpoint/checkpoint.hpp"
#include "pipewright/exec/device/stream.hpp"
#include "pipewright/exec/stage/stage.hpp"
#include "pipewright/exec/training/training_setup.hpp"

namespace pipewright::engine {

struct ForwardRank {
  int rank = 0, count = 1;
  exec::Stage* stage = nullptr;
  const exec::Stream* stream = nullptr;
  /// Connections from the previous and to the next rank. Empty if there is only one rank.
  std::optional<MessageLine> in{}, out{};

  bool is_first() const { return rank == 0; }
  bool is_last() const { return rank == count - 1; }
};

class ForwardRanks {
 public:
  /// Throws InputError if the module has data or tensor parallelism.
  ForwardRanks(PipelineModule module, ForwardOptions options);
  ForwardRanks(const ForwardRanks&) = delete;
  ForwardRanks& operator=(const ForwardRanks&) = delete;

  void restore(const exec::Checkpoint& checkpoint);
  void take_weights(const exec::Snapshot& training);

  int count() const { return module_.pipeline_ranks(); }
  const exec::TrainingSetup& setup() const { return setup_; }
  std::vector<exec::Stage*> stages();

  /// Runs `body` for each rank of this process, on a thread and a stream of its own. The first
  /// exception aborts the other ranks and is rethrown.
  void run(const std::function<void(ForwardRank&)>& body);

 private:
  struct Own {
    std::unique_ptr<exec::Stage> stage;
    exec::Stream stream;
  };
  exec::RankDevice device_of(int rank) const;
  void connect(ForwardRank& rank, exec::Transport& transport);

  PipelineModule module_;
  ForwardOptions options_;
  exec::TrainingSetup setup_;
  std::map<int, Own> own_;
  std::map<int, ForwardRank> in_job_;  // with connections that persist between runs
};

}  // namespace pipewright::engine
