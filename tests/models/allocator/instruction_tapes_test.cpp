#include "pipewright/models/allocator/instruction_tapes.hpp"

#include "pipewright/plan/error.hpp"
#include "support/catch.hpp"

namespace instruction_tapes_test {

using namespace pipewright::plan;
using namespace pipewright::models;

Instruction of(const char* words) { return parse_instruction(words).value(); }

/// F allocates 8 bytes for its B and 2 for itself. The first F of a step also allocates 1 byte,
/// which the first one of the next step frees. B frees all 8.
InstructionTapes learnt() {
  InstructionTapes tapes;
  tapes.learn({{0, of("0F0"), {{0, 8}, {1, 2}, {1, -2}, {2, 1}}},
               {0, of("0B0"), {{0, -8}}},
               {0, of("0F1"), {{3, 8}, {4, 2}, {4, -2}}},
               {0, of("0B1"), {{3, -8}}},
               {1, of("0F0"), {{2, -1}, {5, 8}, {6, 2}, {6, -2}, {7, 1}}},
               {1, of("0B0"), {{5, -8}}},
               {1, of("0F1"), {{8, 8}, {9, 2}, {9, -2}}},
               {1, of("0B1"), {{8, -8}}}});
  return tapes;
}

TEST_CASE("Recorded tapes give the stream of another order", "[plan][allocator]") {
  const auto streams =
      learnt().streams_of({{0, of("0F0")}, {0, of("0F1")}, {0, of("0B0")}, {0, of("0B1")}}, 2);
  CHECK(streams == std::vector<TensorStream>{{{0, 8},
                                              {1, 2},
                                              {1, -2},
                                              {2, 1},
                                              {3, 8},
                                              {4, 2},
                                              {4, -2},
                                              {0, -8},
                                              {3, -8},
                                              {2, -1},
                                              {5, 8},
                                              {6, 2},
                                              {6, -2},
                                              {7, 1},
                                              {8, 8},
                                              {9, 2},
                                              {9, -2},
                                              {5, -8},
                                              {8, -8}}});
  CHECK(counters_of(streams.front()).peak_allocated == 4 * 512);
}

TEST_CASE("A tensor belongs to the rank that allocates it, and is freed after its last use",
          "[plan][allocator]") {
  // Either stage 1's I or its W may be the last to use F's tensor.
  InstructionTapes tapes;
  tapes.learn({{0, of("0F0"), {{0, 8}}},
               {0, of("1I0"), {}},
               {0, of("1W0"), {{0, -8}, {1, 4}}},
               {0, of("0F1"), {{2, 8}}},
               {0, of("1I1"), {}},
               {0, of("1W1"), {{2, -8}, {3, 4}}}});
  tapes.learn({{0, of("0F0"), {{0, 8}}},
               {0, of("1W0"), {{1, 4}}},
               {0, of("1I0"), {{0, -8}}},
               {0, of("0F1"), {{2, 8}}},
               {0, of("1W1"), {{3, 4}}},
               {0, of("1I1"), {{2, -8}}}});
  const auto with = [&](const char* first, const char* second) {
    return tapes.streams_of({{0, of("0F0")}, {1, of(first)}, {1, of(second)}}, 1);
  };
  const std::vector<TensorStream> expected{{{0, 8}, {0, -8}}, {{0, 4}}};
  CHECK(with("1I0", "1W0") == expected);
  CHECK(with("1W0", "1I0") == expected);
}

TEST_CASE("Gradients that come too early wait for their turn", "[plan][allocator]") {
  InstructionTapes tapes;
  tapes.learn({{0, of("0B1"), {{0, 4}}}, {0, of("0B0"), {{1, 2}, {1, -2}, {0, -4}}}});
  tapes.learn({{0, of("0B0"), {{0, 2}, {0, -2}}}, {0, of("0B1"), {{1, 2}, {1, -2}}}});
  CHECK(tapes.streams_of({{0, of("0B2")}, {0, of("0B1")}, {0, of("0B0")}}, 1) ==
        std::vector<TensorStream>{{{0, 4}, {1, 4}, {2, 2}, {2, -2}, {1, -4}, {0, -4}}});
  CHECK(tapes.streams_of({{0, of("0B0")}, {0, of("0B2")}, {0, of("0B1")}}, 1) ==
        std::vector<TensorStream>{{{0, 2}, {0, -2}, {1, 4}, {2, 2}, {2, -2}, {1, -4}}});
}

TEST_CASE("Instructions that were not recorded are rejected, except transfers",
          "[plan][allocator]") {
  CHECK_THROWS_AS(learnt().streams_of({{0, of("0W0")}}, 1), InputError);
  CHECK(learnt().streams_of({{0, of("0SEND_F0")}}, 1) == std::vector<TensorStream>(1));
}

}  // namespace instruction_tapes_test
