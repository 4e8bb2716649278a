#include "pipewright/search/drafts/draft_history.hpp"

#include "search/support/drafts.hpp"
#include "support/error_of.hpp"

namespace draft_history_test {

using namespace pipewright;
using search::Draft;
using search::DraftHistory;
using test::shared_card;

TEST_CASE("Every step can be undone and redone, and is described by its change",
          "[loop][history]") {
  const Draft first = shared_card();
  DraftHistory history(first);
  CHECK_FALSE(history.can_undo());
  CHECK(history.undo_text().empty());
  history.set("pipeline.schedule=zbv");
  const Draft second = history.now();
  history.set("pipeline.microbatches=8");
  CHECK(history.undo_text() == "pipeline.microbatches from 16 to 8");
  CHECK(history.undo() == second);
  CHECK(history.undo_text() == "pipeline.schedule from 1f1b to zbv");
  CHECK(history.redo_text() == "pipeline.microbatches from 16 to 8");
  CHECK(history.undo() == first);
  CHECK(history.undo() == first);  // nothing is left to undo
  CHECK(history.redo() == second);
  CHECK(history.redo().scenario.pipeline.microbatches == 8);
  CHECK_FALSE(history.can_redo());
}

TEST_CASE("A change after an undo discards the undone steps", "[loop][history]") {
  DraftHistory history(shared_card());
  history.set("pipeline.microbatches=8");
  history.undo();
  history.set("pipeline.replicas=2");
  CHECK_FALSE(history.can_redo());
  CHECK(history.undo_text() == "pipeline.replicas from 4 to 2");
}

TEST_CASE("Dragging a slider is one step, until it is released", "[loop][history]") {
  const Draft first = shared_card();
  DraftHistory history(first);
  for (const int microbatches : {17, 18, 19})
    history.set(fmt::format("pipeline.microbatches={}", microbatches));
  CHECK(history.undo_text() == "pipeline.microbatches from 16 to 19");
  history.settle();
  history.set("pipeline.microbatches=32");
  CHECK(history.undo_text() == "pipeline.microbatches from 19 to 32");
  CHECK(history.undo().scenario.pipeline.microbatches == 19);
  CHECK(history.undo() == first);
}

TEST_CASE("A slider that ends at its first value leaves no step", "[loop][history]") {
  DraftHistory history(shared_card());
  history.set("pipeline.replicas=2");
  history.settle();
  history.set("pipeline.microbatches=8");
  history.set("pipeline.microbatches=16");
  CHECK(history.undo_text() == "pipeline.replicas from 4 to 2");
  history.set("pipeline.microbatches=16");  // no change at all
  CHECK(history.undo_text() == "pipeline.replicas from 4 to 2");
}

TEST_CASE("Moves of one boundary are one step, and moves of another one a separate step",
          "[loop][history]") {
  DraftHistory history(shared_card());
  const std::vector<int> boundaries{0, 2, 4, 6, 8};
  history.move_boundary(boundaries, 2, 5);
  history.move_boundary({0, 2, 5, 6, 8}, 2, 3);
  CHECK(history.undo_text() == "boundary 2 from layer 4 to 3");
  history.move_boundary({0, 2, 3, 6, 8}, 1, 1);
  CHECK(history.undo_text() == "boundary 1 from layer 2 to 1");
  CHECK(history.undo().scenario.pipeline.partition ==
        plan::PartitionChoice(std::vector{0, 2, 3, 6, 8}));
  CHECK(history.undo() == shared_card());
}

TEST_CASE("A rejected change has no effect", "[loop][history]") {
  DraftHistory history(shared_card());
  CHECK_FALSE(test::error_of([&] { history.set("pipeline.ranks=99"); }).empty());
  CHECK_FALSE(history.can_undo());
  Draft other = shared_card({"pipeline.ranks=2"});
  history.replace(other, "open another scenario");
  CHECK(history.undo_text() == "open another scenario");
  CHECK(history.now() == other);
}

}  // namespace draft_history_test
