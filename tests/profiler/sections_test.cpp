// Division of a model into sections for its profile, and selection of the layers to measure.

#include "pipewright/profiler/sections/sections.hpp"

#include <ATen/ATen.h>

#include <algorithm>

#include "exec/support/sharded_gpt.hpp"
#include "exec/support/small_transformers.hpp"
#include "pipewright/profiler/profile/profile.hpp"
#include "profiler/support/small_model.hpp"
#include "support/catch.hpp"

namespace sections_test {

using namespace pipewright;
using namespace pipewright::profiler;
using plan::Bytes;

/// Makes layers of these sizes in bytes. Equal letters are equivalent layers; a dot is like no
/// other. The loss is last.
std::vector<LayerOutline> outlines(const std::string& kinds, const std::vector<int>& sizes) {
  std::vector<LayerOutline> all(kinds.size());
  for (std::size_t layer = 0; layer < kinds.size(); ++layer) {
    all[layer].alike = kinds[layer] == '.' ? "" : std::string(1, kinds[layer]);
    all[layer].training = {layer < sizes.size() ? sizes[layer] : 0};
  }
  return all;
}

using Sections = std::vector<std::pair<int, int>>;

Sections cut(const std::vector<LayerOutline>& layers, int copies, std::int64_t budget) {
  Sections bounds;
  for (const Section& section : sections_of(layers, copies, {budget}))
    bounds.emplace_back(section.first, section.last);
  return bounds;
}

TEST_CASE("Sections have as many layers as fit, and a large layer is a section alone",
          "[profiler][sections]") {
  const auto layers = outlines("abcdel", {10, 10, 50, 10, 10});
  CHECK(cut(layers, 1, 90) == Sections{{0, 5}});
  CHECK(cut(layers, 1, 70) == Sections{{0, 3}, {3, 5}});
  CHECK(cut(layers, 1, 20) == Sections{{0, 2}, {2, 3}, {3, 5}});
  CHECK(cut(layers, 2, 40) == Sections{{0, 2}, {2, 3}, {3, 5}});  // two copies
  CHECK(cut(layers, 1, 0) == Sections{{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}});
}

TEST_CASE("The first, the middle and the last of equivalent layers are measured",
          "[profiler][sections]") {
  const auto wanted = [](const std::string& kinds, const std::vector<bool>& known = {}) {
    std::string places;
    for (const bool is_wanted : wanted_places(outlines(kinds, {}), known))
      places += is_wanted ? 'x' : '-';
    return places;
  };
  CHECK(wanted("abbbbbbhl") == "xx--x-xxx");
  CHECK(wanted("abbhl") == "xxxxx");
  CHECK(wanted(".....") == "xxxxx");
  CHECK(wanted("abbbbbbhl", {false, true, true, true, true, true, true, false, false}) ==
        "x------xx");
  CHECK(is_wanted({1, 2}, {false, false, true}) == true);  // the loss belongs to the last layer
  CHECK(is_wanted({0, 1}, {false, false, true}) == false);
}

TEST_CASE("Layers are equivalent if their kinds and inputs are equal", "[profiler][sections]") {
  const auto setup = test::small_setup();
  const auto all = outlines_of(LayerBench(setup));
  REQUIRE(all.size() == 7);
  CHECK(all[1].alike == all[4].alike);
  CHECK(all[1].keeps_shape);
  CHECK_FALSE(all[0].keeps_shape);
  for (const std::size_t other : {0, 5, 6})
    CHECK(all[other].alike != all[1].alike);
  const std::int64_t numbers = 12 * 16 * 16 + 13 * 16;
  CHECK(all[1].training == Bytes{numbers * 16});  // weight, gradient, two moments
  CHECK_FALSE(all[0].input_has_gradient);
  CHECK(all[1].input_has_gradient);
  const auto kinds = alike_layers(all);
  REQUIRE(kinds.size() == 4);
  CHECK(kinds[1].layers == std::vector<int>{1, 2, 3, 4});
  // These layers have no kind.
  const test::Fixed data{at::ones({2, 4})};
  const auto own = test::setup_of({test::linear("a", 4, 4), test::linear("b", 4, 4)}, data);
  for (const LayerOutline& outline : outlines_of(LayerBench(own)))
    CHECK(outline.alike.empty());
}

/// Returns the costs without times, which differ between measurements.
plan::LayerCost without_times(plan::LayerCost cost) {
  static_cast<plan::LayerTimes&>(cost) = {};
  cost.contended = {};
  cost.spread = 0;
  cost.selective_forward = {};
  return cost;
}

void check_same_memory(const exec::TrainingSetup& setup, const ShardSeat& seat = {}) {
  const ProfileRequest one{.settings = {0, 1, 1, 1e9}};
  ProfileRequest many = one;
  many.budget = {0};
  LayerBench in_one(setup, {}, seat), in_many(setup, {}, seat);
  const Profiled whole = profile_layers(in_one, one), cut = profile_layers(in_many, many);
  CHECK(whole.sections == 1);
  CHECK(cut.sections == static_cast<int>(setup.layers.size()));
  REQUIRE(cut.costs.layers.size() == whole.costs.layers.size());
  for (std::size_t layer = 0; layer < cut.costs.layers.size(); ++layer) {
    CAPTURE(layer);
    plan::LayerCost found = without_times(cut.costs.layers[layer]);
    found.expert_loads = whole.costs.layers[layer].expert_loads;  // each has a different router
    CHECK(found == without_times(whole.costs.layers[layer]));
    CHECK(cut.costs.layers[layer].forward.value > 0);
    CHECK((cut.costs.layers[layer].input_gradient.value > 0) == (layer > 0));
    CHECK(cut.costs.layers[layer].optimizer_step.value > 0);
  }
  CHECK(without_times(cut.costs.loss) == without_times(whole.costs.loss));
  CHECK(cut.costs.input == whole.costs.input);
  CHECK(cut.costs.target == whole.costs.target);
  CHECK(cut.costs.load.value > 0);
}

TEST_CASE("Profile: layers have the same memory, all-reduces and sizes in sections as in one",
          "[profiler][sections]") {
  check_same_memory(test::small_setup());
  check_same_memory(test::sharded_setup(2), {.index = 1, .count = 2, .groups = 2});
  check_same_memory(test::small_setup_of(test::small_llama()));
  check_same_memory(test::small_setup_of(test::small_biased_mixture()));
  auto half = test::small_setup();
  half.precision = at::kBFloat16;
  check_same_memory(half);
}

TEST_CASE("Profile: equivalent layers have equal times, and their places are compared",
          "[profiler][sections]") {
  auto setup = test::small_setup();
  setup.layers =
      engine::gpt_layers({.blocks = 9, .hidden = 16, .heads = 2, .sequence = 8, .vocabulary = 32});
  LayerBench bench(setup);
  const Profiled found = profile_layers(bench, {.settings = {0, 2, 2, 1e9}, .budget = {0}});
  REQUIRE(found.alike.size() == 1);
  CHECK(found.alike[0].layers == std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8, 9});
  CHECK(found.alike[0].measured == std::vector<int>{1, 5, 9});
  CHECK(found.alike[0].within > 0);
  for (int block = 2; block <= 9; ++block) {
    const auto& cost = found.costs.layers[static_cast<std::size_t>(block)];
    CHECK(cost.name == "block" + std::to_string(block - 1));
    CHECK(cost.forward == found.costs.layers[1].forward);
    CHECK(cost.parameters == found.costs.layers[1].parameters);
  }
}

/// A layer that counts how many layers of its type exist at once.
class Counted final : public exec::Layer {
 public:
  inline static int now = 0, most = 0, made = 0;
  Counted() : weight_(register_parameter("weight", at::ones({4, 4}))) {
    if (!weight_.is_meta())
      most = std::max(most, ++now), ++made;
  }
  ~Counted() override { now -= weight_.is_meta() ? 0 : 1; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  at::Tensor forward(const at::Tensor& input, const exec::CallContext&) override {
    return at::matmul(input, weight_);
  }

 private:
  at::Tensor weight_;
};

TEST_CASE("Profile: the number of layers that exist at once does not depend on the model's",
          "[profiler][sections]") {
  const test::Fixed data{at::ones({2, 4})};
  for (const int layers : {4, 12, 40}) {
    std::vector<exec::LayerSpec> specs;
    for (int layer = 0; layer < layers; ++layer)
      specs.push_back({.name = "layer" + std::to_string(layer),
                       .build = [] { return std::make_shared<Counted>(); },
                       .kind = "counted"});
    const auto setup = test::setup_of(specs, data);
    LayerBench bench(setup);
    Counted::most = Counted::made = 0;
    const Profiled found =
        profile_layers(bench, {.settings = {0, 1, 1, 1e9}, .budget = {2 * 16 * 16}});
    CHECK(found.sections == layers / 2);
    CHECK(Counted::most == 2);
    CHECK(Counted::made <= 8 + 2);  // four sections, and the layers run in between
    CHECK(Counted::now == 0);
  }
}

TEST_CASE("Profile: known layers are not measured", "[profiler][sections]") {
  const auto setup = test::small_setup();
  LayerBench bench(setup);
  int passes = 0, sections = 0;
  ProfileRequest request{.settings = {0, 1, 1, 1e9}, .report = [&](const Progress& progress) {
                           ++passes;
                           sections = progress.sections;
                         }};
  request.known.assign(7, true);
  const Profiled none = profile_layers(bench, request);
  CHECK(passes == 0);
  CHECK(none.costs.layers.size() == 6);
  CHECK(none.costs.load.value > 0);
  CHECK(none.costs.measured_over == plan::Seconds{});
  request.known[5] = false;
  request.budget = {0};
  const Profiled head = profile_layers(bench, request);
  CHECK(passes == 1);
  CHECK(sections == 1);
  CHECK(head.costs.layers[5].forward.value > 0);
  CHECK(head.costs.layers[4].forward.value == 0);
}

TEST_CASE("Profile: the given time is divided among the sections", "[profiler][sections]") {
  const auto setup = test::small_setup();
  LayerBench bench(setup);
  std::vector<int> of_section;
  const Profiled found =
      profile_layers(bench, {.settings = {0, 1'000'000, 1'000'000, 0},
                             .report =
                                 [&](const Progress& progress) {
                                   CHECK(progress.sections == 5);
                                   of_section.resize(static_cast<std::size_t>(progress.section));
                                   of_section.back() = progress.passes;
                                 },
                             .over = {0.2},
                             .budget = {0}});
  CHECK(of_section.size() == 5);  // the embedding, three of the blocks, the head
  CHECK(found.costs.measured_over.value >= 0.2);
}

}  // namespace sections_test
