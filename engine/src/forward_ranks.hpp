#pragma once

// The ranks of a model that only runs forward: a ring, in which each has its stage and sends to the
// one behind it, and the last one to the first.

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
  /// From the rank before and to the one behind; none where there is one rank.
  std::optional<MessageLine> in{}, out{};

  bool is_first() const { return rank == 0; }
  bool is_last() const { return rank == count - 1; }
};

class ForwardRanks {
 public:
  /// Throws InputError where the module is more than one pipeline of whole layers.
  ForwardRanks(PipelineModule module, ForwardOptions options);
  ForwardRanks(const ForwardRanks&) = delete;
  ForwardRanks& operator=(const ForwardRanks&) = delete;

  void restore(const exec::Checkpoint& checkpoint);
  void take_weights(const exec::Snapshot& training);

  int count() const { return module_.pipeline_ranks(); }
  const exec::TrainingSetup& setup() const { return setup_; }
  std::vector<exec::Stage*> stages();

  /// Runs `body` for each rank of this process, on a thread and a stream of its own. Throws what
  /// the first of them threw, which ends the others.
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
  std::map<int, ForwardRank> in_job_;  // with lines that go on from run to run
};

}  // namespace pipewright::engine
