#include "commands/torch/supervise.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "commands/torch/job.hpp"
#include "exit_code.hpp"
#include "pipewright/exec/checkpoint/list_checkpoints.hpp"
#include "pipewright/exec/job/environment.hpp"
#include "pipewright/exec/job/local_job.hpp"
#include "pipewright/exec/job/rank_places.hpp"
#include "pipewright/exec/job/wait_as_spare.hpp"
#include "pipewright/plan/error.hpp"
#include "print/console.hpp"
#include "process/interrupt.hpp"
#include "process/own_words.hpp"

namespace pipewright::cli {
namespace {

/// The time that the other ranks have to exit once one has failed. A slow rank reports that it is
/// slow by its exit code, and it also exits slowly.
constexpr std::chrono::seconds to_make_room{15};

/// The environment variable in which a supervisor tells its ranks what happens to a slow rank's
/// place.
constexpr const char* variable_of_supervisor = "PIPEWRIGHT_SUPERVISOR";
constexpr std::array<std::pair<loop::SlowPlace, const char*>, 3> place_words{
    {{loop::SlowPlace::Stays, "leaves"},
     {loop::SlowPlace::IsReplaced, "replaces"},
     {loop::SlowPlace::IsLeftOut, "does without"}}};

const char* words_of(loop::SlowPlace place) {
  return std::ranges::find(place_words, place, [](const auto& each) { return each.first; })->second;
}

/// Returns the `pipeline.ranks` for this number of processes with unchanged replicas and
/// tensor-parallel ranks; 0: too few.
int pipeline_ranks_of(const plan::Pipeline& pipeline, int processes) {
  return processes / (pipeline.replicas * pipeline.tensor);
}

std::string assignment_of(int pipeline_ranks) {
  return fmt::format("pipeline.ranks={}", pipeline_ranks);
}

/// The state of a training under supervision.
class Supervision {
 public:
  explicit Supervision(const TrainOptions& options)
      : options_(options),
        scenario_(read_scenario(options.scenario)),
        places_(plan::ranks_of_job(scenario_.pipeline), options.spares,
                scenario_.pipeline.replicas * scenario_.pipeline.tensor) {}

  int run() {
    catch_interrupts();
    catch_calls();
    while (true) {
      const int before = newest_step();
      lost_.reset();
      slow_.reset();
      const int code = start_once();
      if (interrupted())
        return Interrupted;
      if (code == Done || code == BadInput || code == CannotStart)
        return code;
      if (called_at_)
        take_back();
      else if (!continues_after(before))
        return code;
    }
  }

 private:
  int newest_step() const { return exec::newest_step(options_.checkpoints); }

  int start_once() {
    std::vector<std::string> words = own_words();
    std::erase(words, "--processes");
    if (std::exchange(was_started_, true))
      std::erase(words, "--fresh");  // layers have been measured by now
    if (ranks() < plan::ranks_of_job(scenario_.pipeline))
      words.insert(words.end(), {"--set", assignment()});
    ::setenv(variable_of_supervisor, words_of(what_becomes_of_place()), /*overwrite=*/1);
    return exec::run_local_job({.main = main_of_ranks(options_.device),
                                .words = std::move(words),
                                .ranks = options_.processes ? ranks() : 1,
                                .places = places_.of_ranks(),
                                .alone = !options_.processes,
                                .grace = to_make_room,
                                .stop = [this] { return interrupted() || is_to_take_back(); },
                                .stopped = milliseconds_of(options_.limits.timeout_s),
                                .say = say,
                                .lost = [this](int rank) { lost_ = lost_.value_or(rank); },
                                .failed =
                                    [this](int rank, int code) {
                                      if (code == PermanentStraggler)
                                        slow_ = rank;
                                    }});
  }

  /// Returns what would happen to the place of a lost or slow rank.
  loop::SlowPlace what_becomes_of_place() const {
    if (!options_.processes)
      return loop::SlowPlace::Stays;
    if (!places_.spare().empty())
      return loop::SlowPlace::IsReplaced;
    return options_.replan ? loop::SlowPlace::IsLeftOut : loop::SlowPlace::Stays;
  }

  /// Returns true if SIGUSR1 was received and there is a newer checkpoint since.
  bool is_to_take_back() {
    if (was_called() && !called_at_) {
      if (places_.given_up().empty())
        say("no place was given up");
      else
        called_at_ = newest_step();
    }
    return called_at_ && newest_step() > *called_at_;
  }

  void take_back() {
    called_at_.reset();
    const std::vector<int> given_up = places_.given_up();
    places_.take_back();
    begin_anew();
    say(fmt::format("uses {} {} again: continues from step {} with {}",
                    given_up.size() == 1 ? "place" : "places", fmt::join(given_up, ", "),
                    newest_step(), assignment()));
  }

  /// Counts and reports a failure. Returns false if there is no further try.
  bool continues_after(int step_before) {
    const int step = newest_step();
    if (step >= scenario_.training.steps)
      return false;  // all steps are done: the failure came after them
    if (step > step_before)
      begin_anew();
    if (slow_ && give_up(*slow_, step))
      return true;
    if (++failures_ >= options_.tries) {
      say(fmt::format("gives up: {} without a checkpoint after step {}",
                      failures_ == 1 ? "a failure" : fmt::format("{} failures", failures_), step));
      return false;
    }
    if (lost_ && ++times_lost_[*lost_] >= 2 && give_up(*lost_, step))
      return true;
    say(fmt::format("continues from step {}, after {} of {} failures without a newer checkpoint",
                    step, failures_, options_.tries));
    return true;
  }

  /// Gives up the rank's place. Returns false if the place has to stay.
  bool give_up(int rank, int step) {
    const loop::SlowPlace place = what_becomes_of_place();
    if (place == loop::SlowPlace::Stays || !places_.give_up(rank))
      return false;
    begin_anew();
    say(fmt::format(
        "gives up rank {}: continues from step {} with {}", rank, step,
        place == loop::SlowPlace::IsReplaced
            ? fmt::format("place {} instead", places_.of_ranks()[static_cast<std::size_t>(rank)])
            : assignment()));
    return true;
  }

  void begin_anew() {
    failures_ = 0;
    times_lost_.clear();
  }

  int ranks() const { return static_cast<int>(places_.of_ranks().size()); }
  std::string assignment() const {
    return assignment_of(pipeline_ranks_of(scenario_.pipeline, ranks()));
  }

  const TrainOptions& options_;
  const plan::Scenario scenario_;
  exec::RankPlaces places_;
  std::optional<int> lost_;       // the first in this attempt
  std::optional<int> slow_;       // in this attempt
  std::optional<int> called_at_;  // the newest step at SIGUSR1, after which all places are used
                                  // again
  std::map<int, int> times_lost_;
  bool was_started_ = false;
  int failures_ = 0;  // without a newer checkpoint
};

}  // namespace

bool is_supervisor(const TrainOptions& options) {
  return options.supervise && !options.dry_run && !exec::job_from_environment() &&
         !exec::is_alone_in_local_job();
}

int supervise(const TrainOptions& options) { return Supervision(options).run(); }

loop::SlowPlace place_of_slow() {
  const char* const told = std::getenv(variable_of_supervisor);
  for (const auto& [place, words] : place_words)
    if (told != nullptr && std::string_view(told) == words)
      return place;
  return loop::SlowPlace::Stays;
}

void check_spares(const TrainOptions& options) {
  if (constexpr int most = 1000; options.spares > most)
    throw plan::InputError(
        fmt::format("--spares {}: at most {} places are possible", options.spares, most));
  const bool has_supervisor = std::getenv(variable_of_supervisor) != nullptr;
  if (options.spares > 0 && !has_supervisor && !(options.supervise && options.processes))
    throw plan::InputError(
        "--spares needs --processes and --supervise; under another launcher, its surplus processes "
        "wait as spares");
}

TrainOptions for_ranks_of_launcher(const TrainOptions& options) {
  const auto job = exec::job_from_environment();
  if (!options.supervise || !job)
    return options;
  const plan::Scenario scenario = read_scenario(options.scenario);
  const int copies = scenario.pipeline.replicas * scenario.pipeline.tensor;
  const int all = plan::ranks_of_job(scenario.pipeline);
  if (!options.replan && job->size < all)
    return options;
  const int ranks = std::min(job->size / copies * copies, all);
  if (ranks == 0)
    throw plan::InputError(
        fmt::format("--replan: {} processes are too few for pipeline.replicas {} x pipeline.tensor "
                    "{}: at least {} are needed",
                    job->size, scenario.pipeline.replicas, scenario.pipeline.tensor, copies));
  if (ranks < job->size)
    exec::leave_job_to_first(ranks);
  TrainOptions fitted = options;
  if (ranks < all)
    fitted.scenario.assignments.push_back(
        assignment_of(pipeline_ranks_of(scenario.pipeline, ranks)));
  return fitted;
}

bool waited_as_spare() {
  const auto job = exec::job_from_environment();
  if (!job || job->rank < job->size)
    return false;
  say(fmt::format("process {} is a spare: the job has {} ranks", job->rank, job->size));
  exec::wait_as_spare(*job);
  return true;
}

}  // namespace pipewright::cli
