#include "pipewright/search/drafts/draft_files.hpp"

#include "pipewright/plan/partitioners/layout.hpp"
#include "search/support/drafts.hpp"
#include "support/error_of.hpp"

namespace draft_files_test {

using namespace pipewright;
using namespace pipewright::search;
using test::answer_to;
using test::error_of;
using test::shared_card;

plan::Scenario read_back(const std::string& text, const std::string& name) {
  return plan::scenario_from_json(plan::JsonDocument::parse(text, name));
}

TEST_CASE("A draft is saved as an equal scenario, whichever folder the file is in",
          "[loop][files]") {
  search::Draft draft = shared_card({"pipeline.schedule=zbv", "training.zero=1"});
  const std::string text = scenario_text(draft);
  CHECK(read_back(text, "/elsewhere/s.json") == draft.scenario);
  CHECK(scenario_text({read_back(text, "/elsewhere/s.json")}) == text);

  const search::Answer answer = answer_to(draft);
  draft = with_boundaries(draft, answer.plan);
  const plan::Scenario pinned = read_back(scenario_text(draft), "s.json");
  CHECK(pinned == draft.scenario);
  CHECK(pinned.pipeline.partition == plan::PartitionChoice(answer.plan.partition.boundaries));
}

TEST_CASE("A draft's schedule is saved in torch's format", "[loop][files]") {
  const search::Answer answer =
      answer_to(shared_card({"pipeline.ranks=2", "pipeline.microbatches=2"}));
  CHECK(schedule_csv(answer.plan) == "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
  CHECK(plan::parse_csv(schedule_csv(answer.plan), "s.csv") == answer.plan.schedule);
}

TEST_CASE("A draft's partition is saved as Megatron's layout", "[loop][files]") {
  const search::Draft draft = shared_card({"pipeline.partition=[0,2,4,6,8]"});
  const std::string text = layout_text(draft, answer_to(draft).plan);
  CHECK(text == "Et|(tt|)*2,tL");
  CHECK(layout_boundaries(plan::parse_layout(text)) == std::vector{0, 2, 4, 6, 8});
  const search::Draft chunks =
      shared_card({"pipeline.schedule=megatron-interleaved", "pipeline.ranks=2",
                   "pipeline.chunks=2", "pipeline.partition=[0,2,4,6,8]"});
  CHECK(layout_text(chunks, answer_to(chunks).plan) == text);
}

TEST_CASE("A partition that no Megatron layout can express is rejected with an error message",
          "[loop][files]") {
  const auto refusal = [](const std::vector<std::string>& changes) {
    const search::Draft draft = shared_card(changes);
    return error_of([&] { layout_text(draft, answer_to(draft).plan); });
  };
  CHECK(refusal({"pipeline.ranks=2", "pipeline.schedule=zbv"}) ==
        "stage 2 is on rank 1, but Megatron assigns stages to ranks in turn and would place it "
        "on rank 0: use megatron-interleaved, for example");
  CHECK(refusal({"pipeline.ranks=2", "pipeline.schedule=dualpipe"}) ==
        "the schedule sends microbatches through the ranks in both directions, but Megatron's "
        "layouts have one direction");
  search::Draft images = shared_card({R"(model={"kind": "alexnet"})", "data.kind=cifar10"});
  images.costs.reset();
  CHECK(error_of([&] { layout_text(images, answer_to(images).plan); }) ==
        "Megatron's layouts are for GPT models, not for alexnet");
}

}  // namespace draft_files_test
