// Tests the messages about ranks that share a GPU; needs no GPU.
#include "pipewright/loop_torch/devices.hpp"

#include "pipewright/plan/json/json_document.hpp"
#include "support/catch.hpp"

namespace devices_test {

using namespace pipewright;

std::optional<loop::SharedGpu> shared(int ranks, int gpus, bool partitioned) {
  return loop::shared_gpu(exec::assign_gpus(ranks, gpus, partitioned));
}

TEST_CASE("A GPU is shared if there are more ranks than GPUs", "[loop][device]") {
  CHECK(shared(2, 2, false) == std::nullopt);
  CHECK(shared(2, 8, true) == std::nullopt);
  CHECK(loop::shared_gpu({}) == std::nullopt);  // the CPU
  CHECK(shared(4, 1, false) == loop::SharedGpu{4, false});
  CHECK(shared(4, 1, true) == loop::SharedGpu{4, true});
  CHECK(shared(5, 2, false) == loop::SharedGpu{3, false});
  CHECK(shared(3, 2, true) == loop::SharedGpu{2, true});  // the first GPU has one rank
}

TEST_CASE("A shared GPU is in the report and in a message that says when predictions do not hold",
          "[loop][device]") {
  CHECK(to_json(loop::SharedGpu{4, true}).dump() ==
        R"({"ranks_per_gpu":4,"own_multiprocessors":true})");
  CHECK(in_words(loop::SharedGpu{4, true}) ==
        "4 ranks share a GPU, each with its own multiprocessors");
  CHECK(in_words(loop::SharedGpu{2, false}) ==
        "2 ranks share a GPU and its multiprocessors, but each is predicted as if it had a GPU to "
        "itself: the iteration will take longer than that; --own-multiprocessors divides the GPU");
}

}  // namespace devices_test
