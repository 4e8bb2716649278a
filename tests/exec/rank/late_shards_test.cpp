// Measures which ranks wait for a late tensor-parallel rank, and for how long.

#include <chrono>
#include <map>
#include <mutex>
#include <thread>

#include "exec/support/sharded_gpt.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "pipewright/exec/transport/in_process_transport.hpp"
#include "pipewright/exec/transport/late_members.hpp"
#include "support/error_of.hpp"

namespace late_shards_test {

using namespace pipewright;
using namespace pipewright::exec;

/// Returns the waits that the ranks 0 and 2 get.
std::map<int, std::vector<double>> told(const std::map<int, std::vector<double>>& seconds) {
  const auto transport = make_in_process_transport(3);
  std::map<int, std::vector<double>> waits{{0, {}}, {2, {}}};
  std::thread other([&] { waits[2] = waits_for_late(*transport, {0, 2}, 2, seconds.at(2)); });
  waits[0] = waits_for_late(*transport, {0, 2}, 0, seconds.at(0));
  other.join();
  return waits;
}

TEST_CASE("The last rank waits for none, and the others wait for the time beyond its own",
          "[exec]") {
  using Seconds = std::vector<double>;
  CHECK(told({{0, {5, 2, 1}}, {2, {1, 2, 3}}}) ==
        std::map<int, Seconds>{{0, {4, 0, 0}}, {2, {0, 0, 2}}});
  // If one rank does not know a time, no rank gets a wait.
  CHECK(told({{0, {5, 2}}, {2, {-1, 1}}}) == std::map<int, Seconds>{{0, {0, 1}}, {2, {0, 0}}});
  CHECK(told({{0, {}}, {2, {}}}) == std::map<int, Seconds>{{0, {}}, {2, {}}});
}

/// A layer in which rank 1 is late in the forward of microbatch 0.
class Late final : public Layer {
 public:
  explicit Late(const TensorParallelPlace& place) : place_(place) {}
  at::Tensor forward(const at::Tensor& input, const CallContext& context) override {
    if (place_.index == 1 && context.microbatch == 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    return input;
  }

 private:
  TensorParallelPlace place_;
};

TEST_CASE("A record contains how long a rank waited for a late tensor-parallel rank", "[exec]") {
  auto setup = test::sharded_setup(2);
  setup.layers[2] = {
      .name = "late",
      .build = [] { return std::make_shared<Late>(TensorParallelPlace{}); },
      .build_shard =
          [](const TensorParallelPlace& place) { return std::make_shared<Late>(place); }};
  for (const auto& schedule : {test::make("gpipe", 1, 2),  // and a schedule with interleaved pairs
                               plan::parse_csv("0F0,(0F1;0B0)OVERLAP_F_B,0B1\n", "pairs.csv")}) {
    const test::Sizes sizes{schedule, 1, 2};
    auto options = sizes.options();
    std::mutex mutex;
    std::map<std::string, std::map<int, plan::Seconds>> late;  // by action and rank
    options.observer = [&](const InstructionRecord& record) {
      const std::lock_guard lock(mutex);
      late[to_string(record.instruction)][record.rank] = record.late;
      CHECK(record.late <= record.shards);
      CHECK(record.late >= plan::Seconds{});
    };
    Executor executor(plan::lower(schedule, {.share_loss = true}), test::partition_for(schedule),
                      setup, options);
    executor.step(0);
    CHECK(late["0F0"][0] > late["0F0"][1]);
    for (const int rank : {0, 1})
      CHECK(late["0STEP"][rank] == plan::Seconds{});
  }
}

}  // namespace late_shards_test
