#include "commands/torch/supervise.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "commands/torch/job.hpp"
#include "exit_code.hpp"
#include "pipewright/exec/checkpoint/list_checkpoints.hpp"
#include "pipewright/exec/job/environment.hpp"
#include "pipewright/exec/job/local_job.hpp"
#include "pipewright/plan/error.hpp"
#include "print/console.hpp"
#include "process/interrupt.hpp"
#include "process/own_words.hpp"

namespace pipewright::cli {
namespace {

/// What ranks may take to end each other once one has failed: there is nothing to wait for.
constexpr std::chrono::seconds to_make_room{5};

/// The step of the newest checkpoint that is whole as far as its manifest tells; 0: of none.
int newest_step(const std::string& folder) {
  for (const exec::CheckpointInfo& found : exec::list_checkpoints(folder))
    if (found.damage.empty())
      return static_cast<int>(found.step);
  return 0;
}

/// `pipeline.ranks=N` for so many processes; replicas and shards stay. 0 ranks: too few.
int pipeline_ranks_of(const plan::Pipeline& pipeline, int processes) {
  return processes / (pipeline.replicas * pipeline.tensor);
}

std::string assignment_of(int pipeline_ranks) {
  return fmt::format("pipeline.ranks={}", pipeline_ranks);
}

/// What has become of a training under supervision.
class Supervision {
 public:
  explicit Supervision(const TrainOptions& options)
      : options_(options), scenario_(read_scenario(options.scenario)) {}

  int run() {
    catch_interrupts();
    while (true) {
      const int before = newest_step(options_.checkpoints);
      lost_.reset();
      const int code = start_once();
      if (interrupted())
        return Interrupted;
      if (code == Done || code == BadInput || code == CannotStart)
        return code;
      if (!goes_on_after(before))
        return code;
    }
  }

 private:
  int start_once() {
    std::vector<std::string> words = own_words();
    std::erase(words, "--processes");
    if (std::exchange(was_started_, true))
      std::erase(words, "--fresh");  // by now, layers have been measured
    if (given_up_ > 0)
      words.insert(words.end(),
                   {"--set", assignment_of(pipeline_ranks_of(scenario_.pipeline, ranks()))});
    return exec::run_local_job({.words = std::move(words),
                                .ranks = options_.processes ? ranks() : 1,
                                .alone = !options_.processes,
                                .grace = to_make_room,
                                .stop = &interrupted(),
                                .stopped = milliseconds_of(options_.limits.timeout_s),
                                .say = say,
                                .lost = [this](int rank) { lost_ = lost_.value_or(rank); }});
  }

  /// Counts and tells a failure. False where there is nothing more to be tried.
  bool goes_on_after(int step_before) {
    const int step = newest_step(options_.checkpoints);
    if (step >= scenario_.training.steps)
      return false;  // all are done: what has failed comes behind them
    if (step > step_before) {
      failures_ = 0;
      times_lost_.clear();
    }
    if (++failures_ >= options_.tries) {
      say(fmt::format("gives up: {} without a checkpoint after step {}",
                      failures_ == 1 ? "a failure" : fmt::format("{} failures", failures_), step));
      return false;
    }
    if (lost_ && options_.replan && options_.processes && ++times_lost_[*lost_] >= 2 &&
        give_up_rank(step))
      return true;
    say(fmt::format("goes on from step {}, after {} of {} failures without a newer checkpoint",
                    step, failures_, options_.tries));
    return true;
  }

  int ranks() const {
    const int all = plan::ranks_of_job(scenario_.pipeline) - given_up_;
    const int copies = scenario_.pipeline.replicas * scenario_.pipeline.tensor;
    return all / copies * copies;
  }

  /// One that was lost twice at the same place. False where the rest cannot do without.
  bool give_up_rank(int step) {
    ++given_up_;
    if (ranks() == 0) {
      --given_up_;
      return false;
    }
    times_lost_.clear();
    failures_ = 0;
    say(fmt::format("gives up rank {}: goes on from step {} with {}", *lost_, step,
                    assignment_of(pipeline_ranks_of(scenario_.pipeline, ranks()))));
    return true;
  }

  const TrainOptions& options_;
  const plan::Scenario scenario_;
  std::optional<int> lost_;  // the first in this try
  std::map<int, int> times_lost_;
  bool was_started_ = false;
  int failures_ = 0;  // without a newer checkpoint
  int given_up_ = 0;
};

}  // namespace

bool is_supervisor(const TrainOptions& options) {
  return options.supervise && !options.dry_run && !exec::job_from_environment() &&
         !exec::is_alone_in_local_job();
}

int supervise(const TrainOptions& options) { return Supervision(options).run(); }

TrainOptions for_ranks_of_launcher(const TrainOptions& options) {
  const auto job = exec::job_from_environment();
  if (!options.replan || !job)
    return options;
  const plan::Scenario scenario = read_scenario(options.scenario);
  if (job->size >= plan::ranks_of_job(scenario.pipeline))
    return options;
  const int ranks = pipeline_ranks_of(scenario.pipeline, job->size);
  const int copies = scenario.pipeline.replicas * scenario.pipeline.tensor;
  if (ranks * copies != job->size)
    throw plan::InputError(fmt::format(
        "--replan: {} processes cannot share a job of pipeline.replicas {} x pipeline.tensor {}: a "
        "multiple of {} is needed",
        job->size, scenario.pipeline.replicas, scenario.pipeline.tensor, copies));
  TrainOptions fitted = options;
  fitted.scenario.assignments.push_back(assignment_of(ranks));
  return fitted;
}

}  // namespace pipewright::cli
