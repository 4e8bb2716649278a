#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <limits>
#include <numeric>

#include "pipewright/plan/deepspeed.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/schedule_request.hpp"
#include "pipewright/plan/schedules.hpp"
#include "pipewright/plan/v_schedules.hpp"

namespace pipewright::plan {
namespace {

/// How many stages a rank a schedule can have.
enum class Chunks { One, Two, Even, Any };

struct Generator {
  std::string name;
  Chunks chunks;
  std::function<Schedule(const ScheduleRequest&)> make;  // chunks are set and legal
};

double mean(const std::vector<double>& list) {
  return std::accumulate(list.begin(), list.end(), 0.0) / static_cast<double>(list.size());
}

/// The V schedules know one cost of each kind: of unequal stages, the mean.
VCosts v_costs(const ActionTimes& times) {
  return {.forward = mean(times.forward),
          .input_gradient = mean(times.input_gradient),
          .weight_gradient = mean(times.weight_gradient),
          .transfer = times.transfer};
}

std::vector<Seconds> seconds(const std::vector<double>& list) {
  std::vector<Seconds> times;
  times.reserve(list.size());
  for (const double time : list)
    times.push_back({time});
  return times;
}

const std::vector<Generator>& generators() {
  using R = ScheduleRequest;
  static const std::vector<Generator> all{
      {"gpipe", Chunks::One, [](const R& r) { return make_gpipe(r.ranks, r.microbatches); }},
      {"1f1b", Chunks::One, [](const R& r) { return make_1f1b(r.ranks, r.microbatches); }},
      {"interleaved-1f1b", Chunks::Any,
       [](const R& r) { return make_interleaved_1f1b(r.ranks, r.microbatches, r.chunks); }},
      {"megatron-interleaved", Chunks::Any,
       [](const R& r) {
         return make_megatron_interleaved(r.ranks, r.microbatches, r.chunks, r.group);
       }},
      {"looped-bfs", Chunks::Any,
       [](const R& r) { return make_looped_bfs(r.ranks, r.microbatches, r.chunks); }},
      {"interleaved-zb", Chunks::Any,
       [](const R& r) { return make_interleaved_zb(r.ranks, r.microbatches, r.chunks); }},
      {"zb-h1", Chunks::One, [](const R& r) { return make_zb_h1(r.ranks, r.microbatches); }},
      {"zb-h2", Chunks::One, [](const R& r) { return make_zb_h2(r.ranks, r.microbatches); }},
      {"zb-auto", Chunks::One,
       [](const R& r) {
         return make_zb_auto(r.ranks, r.microbatches, zero_bubble_costs(r)).schedule;
       }},
      {"zbv", Chunks::Two, [](const R& r) { return make_zbv(r.ranks, r.microbatches); }},
      {"dualpipev", Chunks::Two,
       [](const R& r) { return make_dualpipev(r.ranks, r.microbatches); }},
      {"dualpipe", Chunks::One, [](const R& r) { return make_dualpipe(r.ranks, r.microbatches); }},
      {"chimera", Chunks::One, [](const R& r) { return make_chimera(r.ranks, r.microbatches); }},
      {"v-half", Chunks::Two,
       [](const R& r) { return make_v_half(r.ranks, r.microbatches, v_costs(r.times)); }},
      {"v-min", Chunks::Two,
       [](const R& r) { return make_v_min(r.ranks, r.microbatches, v_costs(r.times)); }},
      {"v-zb", Chunks::Two,
       [](const R& r) {
         return make_v_zb(r.ranks, r.microbatches, v_costs(r.times), r.memory_units);
       }},
      {"hanayo", Chunks::Even,
       [](const R& r) { return make_hanayo(r.ranks, r.microbatches, r.chunks / 2); }},
      {"pipedream", Chunks::One,
       [](const R& r) { return make_pipedream(r.ranks, r.microbatches); }},
      {"pipedream-2bw", Chunks::One,
       [](const R& r) {
         return make_pipedream_2bw(r.ranks, r.microbatches, lowering_of(r).step_every);
       }},
      {"inference", Chunks::Any,
       [](const R& r) { return make_inference(r.ranks, r.microbatches, r.chunks); }},
      {"deepspeed-train", Chunks::One,
       [](const R& r) { return to_schedule(deepspeed_train(r.ranks, r.microbatches)); }},
      {"deepspeed-inference", Chunks::One,
       [](const R& r) { return to_schedule(deepspeed_inference(r.ranks, r.microbatches)); }},
      {"data-parallel", Chunks::One,
       [](const R& r) { return make_data_parallel(r.ranks, r.microbatches); }},
  };
  return all;
}

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

const Generator& generator(const std::string& name) {
  const std::string wanted = lower_case(name);
  for (const Generator& entry : generators())
    if (entry.name == wanted)
      return entry;
  throw InputError(fmt::format("no schedule is called \"{}\"{} (known: {})", name,
                               did_you_mean(wanted, schedule_names()), listed(schedule_names())));
}

int least_chunks(Chunks chunks) { return chunks == Chunks::Two || chunks == Chunks::Even ? 2 : 1; }

void check_chunks(const Generator& entry, int chunks) {
  const auto refuse = [&](const std::string& rule) {
    throw InputError(
        fmt::format("{}: {} chunks a rank asked for, but {}", entry.name, chunks, rule));
  };
  if (chunks < 1)
    refuse(fmt::format("the least is {}", least_chunks(entry.chunks)));
  if (entry.chunks == Chunks::One && chunks != 1)
    refuse("it has 1; interleaved-1f1b and looped-bfs take more");
  if (entry.chunks == Chunks::Two && chunks != 2)
    refuse("it has 2, in a V");
  if (entry.chunks == Chunks::Even && chunks % 2 != 0)
    refuse(fmt::format("every wave has 2: {}",
                       chunks == 1 ? "2" : fmt::format("{} or {}", chunks - 1, chunks + 1)));
}

}  // namespace

ZeroBubbleCosts zero_bubble_costs(const ScheduleRequest& request) {
  return {.forward = seconds(request.times.forward),
          .input_gradient = seconds(request.times.input_gradient),
          .weight_gradient = seconds(request.times.weight_gradient),
          .transfer = {request.times.transfer},
          .memory_units =
              request.memory_units ? std::vector{*request.memory_units} : std::vector<int>{}};
}

const std::vector<std::string>& schedule_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const Generator& entry : generators())
      list.push_back(entry.name);
    return list;
  }();
  return names;
}

Schedule make_schedule(const ScheduleRequest& request) {
  const Generator& entry = generator(request.name);
  if (request.group != 0 && entry.name != "megatron-interleaved" && entry.name != "pipedream-2bw")
    throw InputError(fmt::format(
        "{}: has no group size; megatron-interleaved and pipedream-2bw have one", entry.name));
  if (request.memory_units && entry.name != "zb-auto" && entry.name != "v-zb")
    throw InputError(fmt::format("{}: takes no memory limit; zb-auto and v-zb do", entry.name));
  if (!request.rank_of_stage.empty())
    return make_on_placement(entry.name, request.rank_of_stage, request.microbatches);
  ScheduleRequest whole = request;
  if (whole.chunks == 0)
    whole.chunks = least_chunks(entry.chunks);
  check_chunks(entry, whole.chunks);
  return entry.make(whole);
}

Schedule make_schedule(const std::string& name, int ranks, int microbatches) {
  ScheduleRequest request;
  request.name = name;
  request.ranks = ranks;
  request.microbatches = microbatches;
  return make_schedule(request);
}

Schedule make_training_schedule(const ScheduleRequest& request) {
  return oldest_weight_gradients_first(make_schedule(request));
}

int stage_count(const ScheduleRequest& request) {
  const Generator& entry = generator(request.name);
  if (!request.rank_of_stage.empty())
    return static_cast<int>(request.rank_of_stage.size());
  if (entry.name == "data-parallel")
    return 1;
  const int chunks = request.chunks == 0 ? least_chunks(entry.chunks) : request.chunks;
  const std::int64_t stages = std::int64_t{request.ranks} * chunks;
  if (stages > std::numeric_limits<int>::max())
    throw InputError(fmt::format("{} ranks with {} stages each are more stages than can be counted",
                                 request.ranks, chunks));
  return static_cast<int>(stages);
}

int microbatch_count(const ScheduleRequest& request) {
  if (generator(request.name).name != "data-parallel")
    return request.microbatches;
  const std::int64_t microbatches = std::int64_t{request.microbatches} * request.ranks;
  if (microbatches > std::numeric_limits<int>::max())
    throw InputError(
        fmt::format("{} ranks with {} microbatches each are more microbatches than can be counted",
                    request.ranks, request.microbatches));
  return static_cast<int>(microbatches);
}

namespace {

/// The least divisor of `number` that is at least `least`; `least` itself beyond the number.
int least_divisor(int number, int least) {
  if (least >= number)
    return least;
  int found = number;
  for (int small = 1; small <= number / small; ++small)
    if (number % small == 0)
      for (const int divisor : {small, number / small})
        if (divisor >= least)
          found = std::min(found, divisor);
  return found;
}

}  // namespace

LoweringOptions lowering_of(const ScheduleRequest& request) {
  LoweringOptions options;
  const std::string name = lower_case(request.name);
  if (name == "pipedream")
    options.step_every = 1;
  if (name == "pipedream-2bw") {
    // As many microbatches as are enough for two versions and divide the whole.
    const int fewest = least_divisor(request.microbatches, std::max(request.ranks, 1));
    options.step_every = request.group == 0 ? fewest : request.group;
  }
  return options;
}

namespace {

/// Their generators search or improve, which takes seconds for large schedules.
bool searches(const std::string& name) {
  return name == "zb-auto" || name == "v-half" || name == "v-min" || name == "v-zb";
}

}  // namespace

std::optional<std::string> known_name(const Schedule& schedule) {
  constexpr int most_to_search = 4096;
  const auto ranks = static_cast<int>(schedule.ranks.size());
  if (ranks == 0)
    return {};
  const int stages = stage_count(schedule);
  for (const Generator& entry : generators()) {
    if (searches(entry.name) && stages * schedule.microbatches > most_to_search)
      continue;
    ScheduleRequest request;
    request.name = entry.name;
    request.ranks = ranks;
    request.microbatches = schedule.microbatches / (entry.name == "data-parallel" ? ranks : 1);
    request.chunks = entry.name == "data-parallel" ? 1 : std::max(1, stages / ranks);
    try {
      if (make_schedule(request) != schedule)
        continue;
    } catch (const InputError&) {
      continue;  // the sizes are none of this schedule's
    }
    const std::string chunks =
        request.chunks > 1 ? fmt::format(", {} chunks a rank", request.chunks) : "";
    return fmt::format("{}, {} ranks, {} microbatches{}", entry.name, ranks, request.microbatches,
                       chunks);
  }
  return {};
}

}  // namespace pipewright::plan
