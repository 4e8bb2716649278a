#include <fstream>
#include <map>
#include <sstream>

#include "planners/calculon_search.hpp"
#include "planners/calculon_time.hpp"
#include "support/catch.hpp"

namespace calculon_test {

using namespace pipewright::planners;

const std::filesystem::path folder = PIPEWRIGHT_PLANNER_DATA;

/// A line of calculon-times.csv.
class Row {
 public:
  explicit Row(const std::string& line) {
    std::istringstream stream(line);
    for (std::string cell; std::getline(stream, cell, ',');)
      cells_.push_back(cell);
    cells_.resize(20);
  }

  const std::string& model() const { return cells_[0]; }
  bool is_possible() const { return !cells_[19].empty(); }
  double seconds() const { return std::stod(cells_[19]); }

  CalculonExecution execution() const {
    const std::map<std::string, CalculonRecompute> recompute{
        {"full", CalculonRecompute::Full},
        {"attn_only", CalculonRecompute::Attention},
        {"none", CalculonRecompute::None}};
    const std::map<std::string, CalculonExchange> exchange{
        {"ar", CalculonExchange::AllReduce},
        {"p2p_rs_ag", CalculonExchange::HalvesAtBorders},
        {"rs_ag", CalculonExchange::Halves}};
    const std::map<std::string, CalculonOverlap> overlap{{"none", CalculonOverlap::None},
                                                         {"ring", CalculonOverlap::Ring},
                                                         {"pipe", CalculonOverlap::Pipe}};
    const auto number = [&](std::size_t at) { return std::stoi(cells_[at]); };
    const auto flag = [&](std::size_t at) { return cells_[at] == "1"; };
    return {.tensor = number(1),
            .pipeline = number(2),
            .data = number(3),
            .tensor_network = number(4),
            .pipeline_network = number(5),
            .data_network = number(6),
            .batch = number(7),
            .microbatch = number(8),
            .chunks = number(9),
            .recompute = recompute.at(cells_[10]),
            .exchange = exchange.at(cells_[11]),
            .tensor_overlap = overlap.at(cells_[12]),
            .gather_again = flag(13),
            .shard_optimizer = flag(14),
            .data_overlap = flag(15),
            .offload_weights = flag(16),
            .offload_activations = flag(17),
            .offload_optimizer = flag(18)};
  }

 private:
  std::vector<std::string> cells_;
};

TEST_CASE("Our times of 240 executions equal Calculon's", "[planners]") {
  std::map<std::string, CalculonModel> models;
  for (const std::string name : {"turing-530b", "gpt3-175b", "megatron-22b"})
    models[name] = read_calculon_model(folder / ("calculon-" + name + ".json"));
  const auto machine = read_calculon_machine(folder / "calculon-a100-80g.json");
  std::ifstream stream(folder / "calculon-times.csv");
  std::string line;
  std::getline(stream, line);  // column names
  int possible = 0, impossible = 0;
  while (std::getline(stream, line)) {
    const Row row(line);
    const auto seconds = calculon_seconds(models.at(row.model()), machine, row.execution());
    CAPTURE(line);
    REQUIRE(seconds.has_value() == row.is_possible());
    ++(seconds ? possible : impossible);
    if (seconds)
      CHECK(*seconds == Approx(row.seconds()).epsilon(1e-12));
  }
  CHECK(possible == 200);
  CHECK(impossible == 40);
}

TEST_CASE("The search of Calculon's README tries the same number of executions", "[planners]") {
  const auto best =
      calculon_best(read_calculon_model(folder / "calculon-turing-530b.json"),
                    read_calculon_machine(folder / "calculon-a100-80g.json"),
                    {.devices = 5128, .most_batch = 2520, .stops_at_microbatch = true});
  CHECK(best.executions == 8112);
  CHECK(best.possible == 1080);
  CHECK(best.samples_per_s == Approx(111.1604995663596).epsilon(1e-14));
  CHECK(best.execution.tensor == 8);
  CHECK(best.execution.data == 641);
  CHECK(best.execution.microbatch == 3);
}

}  // namespace calculon_test
