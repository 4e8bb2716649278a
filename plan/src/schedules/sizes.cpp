#include "sizes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "pipewright/plan/error.hpp"

namespace pipewright::plan {
namespace {

bool rounds_are_even(int ranks, int microbatches) {
  return microbatches % std::max(1, microbatches / ranks) == 0;
}

}  // namespace

void check_sizes(const char* schedule, int ranks, int microbatches, int chunks) {
  const auto check = [&](const char* what, int given) {
    if (given < 1)
      throw InputError(fmt::format("{}: {} {} asked for, the least is 1", schedule, given, what));
  };
  check("ranks", ranks);
  check("microbatches", microbatches);
  check("chunks", chunks);
  constexpr double most_actions = 1e8;  // 2 GB of them
  if (3.0 * ranks * microbatches * chunks > most_actions)
    throw InputError(
        fmt::format("{}: {} ranks, {} microbatches and {} chunks have more than {:.0f} actions",
                    schedule, ranks, microbatches, chunks, most_actions));
}

void check_costs(const char* schedule, const ScheduleCosts& costs, int stages) {
  const std::size_t given = costs.stages.size();
  if (given != 1 && given != static_cast<std::size_t>(stages))
    throw InputError(
        fmt::format("{}: times of {} stages given for {}; possible are one for all, or one of each",
                    schedule, given, stages));
  const auto check = [&](const char* what, const std::string& where, Seconds time) {
    if (!std::isfinite(time.value) || time.value < 0)
      throw InputError(
          fmt::format("{}: the time of {}{} is {}; the least is 0, and it must be finite", schedule,
                      what, where, time.value));
  };
  for (std::size_t stage = 0; stage < given; ++stage) {
    const std::string where = given == 1 ? "" : fmt::format(" on stage {}", stage);
    check("F", where, costs.stages[stage].forward);
    check("I", where, costs.stages[stage].input_gradient);
    check("W", where, costs.stages[stage].weight_gradient);
  }
  check("a transfer", "", costs.transfer);
}

std::string nearest_multiples(int wrong, int unit, int least) {
  const int above = std::max(least, (wrong / unit + 1) * unit);
  const int below = std::min(wrong, above) / unit * unit;
  if (below < least || below == above)
    return fmt::format("{}", above);
  return fmt::format("{} or {}", below, above);
}

int round_size(const char* schedule, int ranks, int microbatches) {
  const int rounds = std::max(1, microbatches / ranks);
  if (rounds_are_even(ranks, microbatches))
    return microbatches / rounds;
  int below = microbatches, above = microbatches;
  while (!rounds_are_even(ranks, below))
    --below;
  while (!rounds_are_even(ranks, above))
    ++above;
  throw InputError(
      fmt::format("{}: {} microbatches cannot be cut into {} equal rounds (there is one round for "
                  "every {} microbatches): the nearest numbers that can are {} and {}",
                  schedule, microbatches, rounds, ranks, below, above));
}

}  // namespace pipewright::plan
