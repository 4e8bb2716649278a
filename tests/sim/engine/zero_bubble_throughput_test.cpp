#include <map>

#include "sim/support/markdown.hpp"
#include "sim/support/zero_bubble_passes.hpp"

namespace zero_bubble_throughput_test {

// Zero Bubble's Table 4: measured iterations and memory peaks compared with the simulation of the
// profiled passes. `pipewright_sim_tests "[accuracy]"` prints the tables of docs/accuracy.md.

using namespace pipewright::plan;
using namespace pipewright::sim;
using namespace pipewright::test;

const std::vector<std::string> names{"1F1B", "1F1B-I", "ZB-1p", "ZB-2p"};

struct Pair {
  double predicted = 0, measured = 0;
  double error() const { return error_of_prediction(predicted, measured); }
};

struct Measurement {
  Pair seconds;
  Pair gigabytes;
  double passes = 0;  // of a rank per microbatch
};

/// By model and microbatches, then by schedule.
using Table4 = std::map<std::pair<std::string, int>, std::map<std::string, Measurement>>;

/// Returns the memory of a layer of Table 3's transformers (formulas.md, section 4), 18 bytes per
/// parameter. The vocabulary is not printed, so the first and the last stage lack theirs.
StageCost layer_memory(const ReferenceRow& model) {
  const auto number = [&](const char* column) { return std::stod(model.at(column)); };
  const double s = number("seq"), b = number("micro_batch"), h = number("hidden");
  const auto bytes = [](double count) { return Bytes{static_cast<std::int64_t>(count)}; };
  const double parameters = 12 * h * h + 13 * h;
  StageCost cost;
  cost.activation = cost.forward_peak = bytes(s * b * (34 * h + 5 * number("heads") * s));
  cost.freed_by_input_gradient = cost.activation - bytes(32 * s * b * h);
  cost.parameters = bytes(2 * parameters);
  cost.gradients = bytes(4 * parameters);
  cost.optimizer_state = bytes(12 * parameters);
  return cost;
}

/// Returns the stages of a schedule: equal times, but the first and the last have one layer less.
/// Each pass takes `launch_ms` longer.
std::vector<StageCost> stages_of(const ScheduleRequest& request, const ReferenceRow& model,
                                 double launch_ms) {
  const bool splits = request.name == "zb-auto";
  const int count = stage_count(request);
  const int layers = (std::stoi(model.at("layers")) + 2) / count;
  const StageCost layer = layer_memory(model);
  std::vector<StageCost> stages(static_cast<std::size_t>(count));
  for (int at = 0; at < count; ++at) {
    const int held = layers - (at == 0 || at == count - 1);
    StageCost& stage = stages[static_cast<std::size_t>(at)];
    stage.activation = stage.forward_peak = layer.activation * held;
    stage.freed_by_input_gradient = layer.freed_by_input_gradient * held;
    stage.parameters = layer.parameters * held;
    stage.gradients = layer.gradients * held;
    stage.optimizer_state = layer.optimizer_state * held;
    const Seconds launch{launch_ms * 1e-3};
    stage.forward = request.costs.of(0).forward * 1e-3 + launch;
    stage.input_gradient = request.costs.of(0).input_gradient * 1e-3 + launch;
    stage.weight_gradient =
        request.costs.of(0).weight_gradient * 1e-3 + (splits ? launch : Seconds{});
  }
  return stages;
}

Timeline predicted(const Schedule& schedule, const ScheduleRequest& request,
                   const ReferenceRow& model, double launch_ms) {
  Cluster cluster;
  cluster.devices_per_node = request.ranks;
  cluster.within_node.latency = request.costs.transfer * 1e-3;
  const auto outcome = simulate(lower(schedule), stages_of(request, model, launch_ms), cluster);
  return std::get<Completed>(outcome).timeline;
}

Table4 table4(double launch_ms = 0) {
  Table4 table;
  const auto profiled = profiled_passes();
  std::map<std::string, ReferenceRow> models;
  for_each_row("papers/zb_table3_models.csv",
               [&](const ReferenceRow& row) { models[row.at("model")] = row; });
  for_each_row("papers/zb_table4_throughput_memory.csv", [&](const ReferenceRow& row) {
    const int m = std::stoi(row.at("m"));
    const auto request =
        zero_bubble_request(row.at("schedule"), passes_of(profiled, row.at("model"), m));
    const Schedule schedule = make_schedule(request);
    const Timeline timeline = predicted(schedule, request, models.at(row.at("model")), launch_ms);
    const auto peaks = peak_per_rank(timeline);
    table[{row.at("model"), m}][row.at("schedule")] = {
        {longest_span(timeline).value, std::stod(row.at("iter_s_derived"))},
        {static_cast<double>(std::max_element(peaks.begin(), peaks.end())->value) * 1e-9,
         std::stod(row.at("memory_gb"))},
        static_cast<double>(schedule.ranks.front().size()) / m};
  });
  return table;
}

/// Returns one line per model and number of microbatches, one column per schedule.
template <class Cell>
std::string lines(const Table4& table, const Cell& cell, std::size_t first_name = 0) {
  std::vector<std::vector<std::string>> rows{{"model", "M"}};
  rows[0].insert(rows[0].end(), names.begin() + static_cast<std::ptrdiff_t>(first_name),
                 names.end());
  for (const auto& [at, row] : table) {
    rows.push_back({at.first, std::to_string(at.second)});
    for (std::size_t name = first_name; name < names.size(); ++name)
      rows.back().push_back(cell(row, names[name]));
  }
  return markdown_table(rows);
}
using Line = std::map<std::string, Measurement>;

std::string iterations(const Table4& table) {
  return lines(table, [](const Line& line, const std::string& name) {
    const Pair& at = line.at(name).seconds;
    return fmt::format("{:.3f}, {:.3f}: {}", at.predicted, at.measured, percent(at.error()));
  });
}

Pair gain(const Line& line, const std::string& name) {
  const Pair &one = line.at("1F1B").seconds, &other = line.at(name).seconds;
  return {one.predicted / other.predicted, one.measured / other.measured};
}

std::string gains(const Table4& table) {
  return lines(
      table,
      [](const Line& line, const std::string& name) {
        const Pair at = gain(line, name);
        return fmt::format("{:.3f}, {:.3f}: {}", at.predicted, at.measured, percent(at.error()));
      },
      1);
}

std::string peaks(const Table4& table) {
  return lines(table, [](const Line& line, const std::string& name) {
    const Pair& at = line.at(name).gigabytes;
    return fmt::format("{:.1f}, {:.0f}: {}", at.predicted, at.measured, percent(at.error()));
  });
}

/// The measured time in addition to the prediction, as a line over the microbatches (least
/// squares).
struct Miss {
  double per_microbatch_ms = 0, per_iteration_ms = 0;
  double passes = 0;  // of a rank per microbatch
};
Miss miss_of(const Table4& table, const std::string& model, const std::string& name) {
  double passes = 0, n = 0, x = 0, y = 0, xx = 0, xy = 0;
  for (const auto& [at, row] : table)
    if (at.first == model) {
      const Pair& seconds = row.at(name).seconds;
      const double miss = 1e3 * (seconds.measured - seconds.predicted), m = at.second;
      passes = row.at(name).passes;
      n += 1, x += m, y += miss, xx += m * m, xy += m * miss;
    }
  const double slope = (n * xy - x * y) / (n * xx - x * x);
  return {slope, (y - slope * x) / n, passes};
}

std::string misses(const Table4& table) {
  std::vector<std::vector<std::string>> rows{{"model"}};
  rows[0].insert(rows[0].end(), names.begin(), names.end());
  for (const std::string model : {"1.5B", "6.2B"}) {
    rows.push_back({model});
    for (const std::string& name : names) {
      const Miss miss = miss_of(table, model, name);
      rows.back().push_back(fmt::format("{:.1f}, {:.1f} per pass; {}{:.0f}", miss.per_microbatch_ms,
                                        miss.per_microbatch_ms / miss.passes,
                                        miss.per_iteration_ms < 0 ? "−" : "",
                                        std::abs(miss.per_iteration_ms)));
    }
  }
  return markdown_table(rows);
}

template <class Of>
std::vector<double> errors(const Table4& table, const Of& of) {
  std::vector<double> all;
  for (const auto& [at, row] : table)
    for (const std::string& name : names)
      all.push_back(of(row, name).error());
  return all;
}

std::vector<double> time_errors(const Table4& table) {
  return errors(table,
                [](const Line& line, const std::string& name) { return line.at(name).seconds; });
}
std::vector<double> gain_errors(const Table4& table) {
  std::vector<double> all;
  for (const auto& [at, row] : table)
    for (std::size_t name = 1; name < names.size(); ++name)
      all.push_back(gain(row, names[name]).error());
  return all;
}
std::vector<double> memory_errors(const Table4& table) {
  return errors(table,
                [](const Line& line, const std::string& name) { return line.at(name).gigabytes; });
}

/// The cost of launching a pass, one figure for all rows: the errors above, per pass.
constexpr double launch_ms = 1.0;

TEST_CASE("Zero Bubble, Table 4: with 1 ms for launching each pass within 7 %, 3 % in the median",
          "[sim][reference]") {
  const Table4 table = table4(launch_ms);
  const auto errors = time_errors(table);
  CHECK(errors.size() == 24);
  for (const double error : errors)
    CHECK(std::abs(error) < 0.07);
  CHECK(median_size(errors) < 0.03);
  CHECK(accuracy_document().find(iterations(table)) != std::string::npos);
}

TEST_CASE("Zero Bubble, Table 4: docs/accuracy.md has these tables", "[.][accuracy]") {
  const Table4 table = table4();
  fmt::print(
      "Iteration, seconds: predicted, measured\n\n{}\nOver 1F1B\n\n{}\n"
      "Missing: ms per microbatch; ms per iteration\n\n{}\nPeak memory, GB\n\n{}\n",
      iterations(table), gains(table), misses(table), peaks(table));
  const Table4 launched = table4(launch_ms);
  fmt::print("With {} ms for launching each pass\n\n{}\nmedian {:.1f} %\n\n", launch_ms,
             iterations(launched), 100 * median_size(time_errors(launched)));
  fmt::print("medians: iteration {:.1f} %, gain {:.1f} %, memory {:.1f} %\n\n",
             100 * median_size(time_errors(table)), 100 * median_size(gain_errors(table)),
             100 * median_size(memory_errors(table)));
  SUCCEED();
}

// The profile contains only the passes, so measurements can only take longer.
TEST_CASE(
    "Zero Bubble, Table 4: predicted iterations are too short by 3 to 11 %, 7 % in the median",
    "[sim][reference]") {
  const Table4 table = table4();
  const auto errors = time_errors(table);
  CHECK(errors.size() == 24);
  for (const double error : errors) {
    CHECK(error < -0.03);
    CHECK(error > -0.11);
  }
  CHECK(median_size(errors) < 0.07);
}

TEST_CASE("Zero Bubble, Table 4: gains over 1F1B within 7 %, and ZB-2p the fastest everywhere",
          "[sim][reference]") {
  const Table4 table = table4();
  CHECK(gain_errors(table).size() == 18);
  for (const double error : gain_errors(table))
    CHECK(std::abs(error) < 0.07);
  CHECK(median_size(gain_errors(table)) < 0.045);
  for (const auto& [at, row] : table)
    for (const std::string& name : names) {
      INFO(at.first << ", M " << at.second << ", " << name);
      CHECK(row.at("ZB-2p").seconds.predicted <= row.at(name).seconds.predicted);
      CHECK(row.at("ZB-2p").seconds.measured <= row.at(name).seconds.measured);
    }
}

TEST_CASE("Zero Bubble, Table 4: peaks of memory within 5 %", "[sim][memory][reference]") {
  const auto errors = memory_errors(table4());
  CHECK(errors.size() == 24);
  for (const double error : errors)
    CHECK(std::abs(error) < 0.05);
}

TEST_CASE("docs/accuracy.md shows Zero Bubble's Table 4 as computed", "[sim][reference]") {
  const Table4 table = table4();
  const std::string document = accuracy_document();
  for (const std::string& text : {iterations(table), gains(table), misses(table), peaks(table)})
    CHECK(document.find(text) != std::string::npos);
}

}  // namespace zero_bubble_throughput_test
