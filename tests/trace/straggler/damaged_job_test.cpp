// Damages traces of whole jobs event by event, in a reproducible way: the reader must return finite
// figures, or reject the file by name. (tests/fuzz/job_trace_fuzz.cpp damages their text.)

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/generators/schedule_request.hpp"
#include "pipewright/trace/straggler/straggler_report.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/temp_folder.hpp"
#include "trace/support/made_up_job.hpp"

namespace pipewright::trace::damaged_job_test {

using nlohmann::json;

/// Fields with values that no valid trace has there, and others that it may have.
const std::vector<std::pair<std::string, std::vector<json>>> odd_fields{
    {"/ts", {-1e9, 1e18, 1e300, -0.5, 0, nullptr, "soon", json::array()}},
    {"/dur", {-1, -1e-9, 1e18, 1e300, 0, nullptr, "long"}},
    {"/pid", {-1, 1, 7, 67'108'863, 2'147'483'647, 1e18, 0.5, "zero", nullptr}},
    {"/tid", {-1, 0, 3, 999'999'999, 4e9, 2.5, "row", nullptr}},
    {"/ph", {"M", "B", "i", "", 7, nullptr}},
    {"/name",
     {"", "forward-compute", "backward-compute", "forward-send", "backward-recv", "gc",
      "separate-grads-all-reduce", "params-all-gather", "thread_name", "optimizer", 7, nullptr}},
    {"/args/step", {-1, 0, 23, 99, 100'000'001, 1e300, 0.5, "first", nullptr}},
    {"/args/model_chunk", {-2, -1, 1, 2, 100'000'000, 1e300, 0.5, "all", nullptr}},
    {"/args/name",
     {"PP rank -1, TP rank 0, c", "PP rank -2, TP rank 0, c", "PP rank 3, TP rank 0, c",
      "PP rank 67108863, TP rank 0, c", "PP rank , TP rank 0", "PP rank 0", "", 0, nullptr}},
    {"/args", {nullptr, json::array(), "none", 1, json{{"step", json{{"step", 1}}}}}},
};

class Damage {
 public:
  explicit Damage(unsigned seed) : random_(seed) {}

  /// Applies one kind of damage.
  void damage(json& events) {
    if (events.empty())
      return;
    const auto at = static_cast<std::ptrdiff_t>(below(events.size()));
    const auto other = static_cast<std::ptrdiff_t>(below(events.size()));
    switch (below(12)) {
      case 0:  // truncated
        events.erase(events.begin() + at, events.end());
        return;
      case 1:  // some are lost
        events.erase(events.begin() + at,
                     std::min(events.end(), events.begin() + at + 1 + static_cast<int>(below(12))));
        return;
      case 2:
        events.push_back(events[static_cast<std::size_t>(at)]);
        return;
      case 3:
        std::swap(events[static_cast<std::size_t>(at)], events[static_cast<std::size_t>(other)]);
        return;
      case 4:  // all in another order
        std::shuffle(events.begin(), events.end(), random_);
        return;
      case 5:  // two operations exchange their begins, which may form a cycle
        swap_fields(events[static_cast<std::size_t>(at)], events[static_cast<std::size_t>(other)],
                    "ts");
        return;
      case 6:  // all events of an operation, a thread or a step
        drop_alike(events, events[static_cast<std::size_t>(at)]);
        return;
      default:
        make_odd(events);
    }
  }

  std::size_t below(std::size_t most) { return random_() % most; }

 private:
  static void swap_fields(json& a, json& b, const char* key) {
    if (a.contains(key) && b.contains(key))
      std::swap(a[key], b[key]);
  }

  void drop_alike(json& events, const json& like) {
    const char* const key = below(2) == 0 ? "name" : below(2) == 0 ? "tid" : "pid";
    const json value = like.value(key, json());
    json left = json::array();
    for (const json& event : events)
      if (event.value(key, json()) != value)
        left.push_back(event);
    events = std::move(left);
  }

  /// Changes an existing field; half of the time one of a thread's name, which determines
  /// everything about a worker.
  void make_odd(json& events) {
    json& event = below(2) == 0 ? any_thread(events) : events[below(events.size())];
    std::vector<std::size_t> known;
    for (std::size_t field = 0; field < odd_fields.size(); ++field)
      if (event.contains(json::json_pointer(odd_fields[field].first)))
        known.push_back(field);
    if (known.empty())
      return;
    const auto& [field, values] = odd_fields[known[below(known.size())]];
    event[json::json_pointer(field)] = values[below(values.size())];
  }

  json& any_thread(json& events) {
    std::vector<std::size_t> threads;
    for (std::size_t at = 0; at < events.size(); ++at)
      if (events[at].value("ph", json()) == "M")
        threads.push_back(at);
    return events[threads.empty() ? below(events.size()) : threads[below(threads.size())]];
  }

  std::mt19937 random_;
};

struct Told {
  int answers = 0, refusals = 0;
};

/// Explains the trace if possible.
void explain(const std::filesystem::path& file, Told& told) {
  std::vector<std::string> problems;
  try {
    const StragglerReport report = explain_stragglers(file, problems);
    ++told.answers;
    CHECK(std::isfinite(report.metrics.slowdown.all));
    for (const double measured : report.steps.measured)
      CHECK((std::isfinite(measured) && measured >= 0));
    CHECK_FALSE(document_of(report).dump().empty());
  } catch (const plan::InputError& error) {
    ++told.refusals;
    INFO(error.what());
    CHECK(std::string(error.what()).find(file.filename().string()) != std::string::npos);
  }
}

Told explain_damaged(const std::string& trace, unsigned rounds) {
  const test::TempFolder folder;
  const json sound = json::parse(trace);
  Told told;
  for (unsigned seed = 0; seed < rounds; ++seed) {
    INFO("seed " << seed);
    Damage damage(seed);
    json events = sound;
    for (std::size_t times = 1 + damage.below(3); times > 0; --times)
      damage.damage(events);
    std::string text = events.dump();
    if (seed % 16 == 0)
      text.resize(text.size() * damage.below(100) / 100);
    explain(folder.write("damaged.json", text), told);
  }
  return told;
}

TEST_CASE("A damaged trace of a job is explained, or rejected by name", "[loop][straggler]") {
  test::SyntheticJob job{.schedule = plan::make_schedule("1f1b", 2, 3)};
  job.seconds = [](const JobNode& node, int) { return is_compute(node.operation) ? 0.1 : 0.01; };
  const Told plain = explain_damaged(job.trace(), 250);
  CHECK(plain.answers > 50);
  CHECK(plain.refusals > 50);
  test::SyntheticJob chunks = job;
  plan::ScheduleRequest request;
  request.name = "interleaved-1f1b";
  request.ranks = request.microbatches = request.chunks = 2;
  chunks.schedule = plan::make_schedule(request);
  chunks.chunks = 2;
  chunks.sums_during_backwards = true;
  const Told interleaved = explain_damaged(chunks.trace(), 150);
  CHECK(interleaved.answers > 30);
  CHECK(interleaved.refusals > 30);
}

TEST_CASE("An event with a wrong step number is named, whichever it is", "[loop][straggler]") {
  // A single step: half of the events' step numbers occur once.
  test::SyntheticJob job{
      .schedule = plan::make_schedule("1f1b", 2, 2), .replicas = 1, .steps = {3}};
  job.seconds = [](const JobNode& node, int) { return is_compute(node.operation) ? 0.1 : 0.01; };
  const test::TempFolder folder;
  const json sound = json::parse(job.trace());
  std::vector<std::string> problems;
  int tried = 0;
  for (std::size_t at = 0; at < sound.size(); ++at) {
    if (sound[at]["ph"] != "X")
      continue;
    ++tried;
    json events = sound;
    events[at]["args"]["step"] = 0;
    const auto file = folder.write("job.json", events.dump());
    const std::string name = sound[at]["name"];
    INFO(name);
    const std::string why = "it has only one event, " + name + " of dp 0 stage ";
    try {
      const StragglerReport report = explain_stragglers(file, problems);
      REQUIRE(report.steps.left_out.size() == 1);
      CHECK(report.steps.left_out[0].number == 0);
      CHECK(report.steps.left_out[0].why.find(why) == 0);
    } catch (const plan::InputError& error) {
      CHECK(std::string(error.what()).find("step 0 was left out: " + why) != std::string::npos);
    }
  }
  CHECK(tried > 20);
}

TEST_CASE("A job without computes is rejected", "[loop][straggler]") {
  const test::TempFolder folder;
  const auto file = folder.write("job.json", R"([{"name":"thread_name","pid":0,"tid":0,"ph":"M",
    "args":{"name":"PP rank 0, TP rank 0, c"}},{"name":"thread_name","pid":0,"tid":5,"ph":"M",
    "args":{"name":"PP rank 1, TP rank 0, c"}},
    {"name":"optimizer","pid":0,"tid":0,"ts":0,"dur":5,"ph":"X","args":{"step":1}},
    {"name":"optimizer","pid":0,"tid":5,"ts":0,"dur":5,"ph":"X","args":{"step":1}}])");
  std::vector<std::string> problems;
  CHECK(test::error_of([&] {
          explain_stragglers(file, problems);
        }).find("no step has a forward-compute or backward-compute") != std::string::npos);
}

}  // namespace pipewright::trace::damaged_job_test
