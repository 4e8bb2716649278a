#include "pipewright/plan/program/early_transfers.hpp"

#include <sstream>

#include "pipewright/plan/generators/generators.hpp"
#include "pipewright/plan/generators/schedule_request.hpp"
#include "pipewright/plan/lower/lower.hpp"
#include "support/catch.hpp"

namespace early_transfers_test {

using namespace pipewright::plan;

/// Returns a Program of three stages on three ranks in which rank 1 has the given list; the others
/// do not matter.
Program middle(const std::string& line, CommunicatorLayout layout = CommunicatorLayout::Rank) {
  Program program;
  program.microbatches = 2;
  program.placement = one_route({0, 1, 2});
  program.communicators = layout;
  program.ranks.resize(3);
  std::istringstream words(line);
  for (std::string word; words >> word;)
    program.ranks[1].push_back(parse_instruction(word).value());
  return program;
}

std::vector<std::string> texts(const Program& program) {
  std::vector<std::string> texts;
  for (const EarlyTransfer& early : early_transfers(program))
    texts.push_back(to_string(early));
  return texts;
}

using Texts = std::vector<std::string>;

Program early(const Schedule& schedule, CommunicatorLayout layout) {
  return lower(schedule, {.communicators = layout, .receives = ReceivePlacement::WithSend});
}

TEST_CASE("A receive holds up later sends that do not need its data", "[plan][early]") {
  CHECK(texts(middle("1RECV_F0 1F0 1RECV_F1 1SEND_F0 1F1")) ==
        Texts{"rank 1: 1RECV_F1 holds up 1SEND_F0: 1F1 needs it only later"});
  CHECK(texts(middle("1RECV_F0 1F0 1SEND_F0 1RECV_F1 1F1")).empty());
  CHECK(texts(middle("1RECV_F0 1F0 1RECV_F1 1F1 1SEND_F0")).empty());  // the send is late
}

TEST_CASE("A receive holds up later receives that are needed before it", "[plan][early]") {
  CHECK(texts(middle("1RECV_F1 1RECV_F0 1F0 1F1")) ==
        Texts{"rank 1: 1RECV_F1 holds up 1RECV_F0: 1F1 needs it only later"});
  CHECK(texts(middle("1RECV_F0 1RECV_F1 1F0 1F1")).empty());
}

TEST_CASE("All transfers that a receive holds up are counted", "[plan][early]") {
  CHECK(texts(middle("1RECV_F1 1RECV_F0 1F0 1SEND_F0 1RECV_B0 1B0 1SEND_B0 1F1")) ==
        Texts{"rank 1: 1RECV_F1 holds up 1RECV_F0 and 3 more: 1F1 needs it only later"});
  CHECK(texts(middle("1RECV_B0 1SEND_F0 1I0")) ==
        Texts{"rank 1: 1RECV_B0 holds up 1SEND_F0: 1B0 needs it only later"});
}

TEST_CASE("Only transfers of the same queue are held up", "[plan][early]") {
  // Rank 0 sends microbatch 1 early; microbatch 0 goes to rank 2, and its gradient to rank 0.
  const std::string line = "1RECV_F0 1F0 1RECV_F1 1SEND_F0 1RECV_B0 1B0 1SEND_B0 1F1";
  CHECK(texts(middle(line, CommunicatorLayout::Rank)) ==
        Texts{"rank 1: 1RECV_F1 holds up 1SEND_F0 and 2 more: 1F1 needs it only later"});
  CHECK(texts(middle(line, CommunicatorLayout::Pair)) ==
        Texts{"rank 1: 1RECV_F1 holds up 1SEND_B0: 1F1 needs it only later"});
  CHECK(texts(middle(line, CommunicatorLayout::Edge)).empty());
}

TEST_CASE("Receives directly before their use hold up nothing, in any schedule and layout",
          "[plan][early]") {
  for (const std::string& name : schedule_names())
    for (const auto layout :
         {CommunicatorLayout::Edge, CommunicatorLayout::Pair, CommunicatorLayout::Rank}) {
      CAPTURE(name, to_string(layout));
      CHECK(texts(lower(make_schedule(name, 4, 8), {.communicators = layout})).empty());
    }
}

TEST_CASE("1F1B with early receives holds up its gradients where both directions share a queue",
          "[plan][early]") {
  CHECK(texts(early(make_1f1b(2, 4), CommunicatorLayout::Pair)) ==
        Texts{"rank 1: 1RECV_F1 holds up 1SEND_B0: 1F1 needs it only later",
              "rank 1: 1RECV_F2 holds up 1SEND_B1: 1F2 needs it only later",
              "rank 1: 1RECV_F3 holds up 1SEND_B2: 1F3 needs it only later"});
  CHECK(texts(early(make_1f1b(2, 4), CommunicatorLayout::Edge)).empty());
  CHECK(texts(early(make_gpipe(2, 4), CommunicatorLayout::Rank)).empty());
}

TEST_CASE("Finer queues hold up no more", "[plan][early]") {
  const auto held_up = [](const Schedule& schedule, CommunicatorLayout layout) {
    int all = 0;
    for (const EarlyTransfer& early : early_transfers(early(schedule, layout)))
      all += early.held_up;
    return all;
  };
  for (const std::string& name : schedule_names()) {
    const Schedule schedule = make_schedule(name, 4, 8);
    CAPTURE(name);
    CHECK(held_up(schedule, CommunicatorLayout::Edge) <=
          held_up(schedule, CommunicatorLayout::Pair));
    CHECK(held_up(schedule, CommunicatorLayout::Pair) <=
          held_up(schedule, CommunicatorLayout::Rank));
  }
}

}  // namespace early_transfers_test
