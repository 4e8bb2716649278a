#include "pipewright/plan/schedules/action.hpp"

#include "support/catch.hpp"

namespace action_test {

using namespace pipewright::plan;

TEST_CASE("An action's text is stage, letter, microbatch", "[plan][action]") {
  CHECK(to_string(Action{ActionKind::Forward, 2, 0}) == "2F0");
  CHECK(to_string(Action{ActionKind::Backward, 0, 31}) == "0B31");
  CHECK(to_string(Action{ActionKind::InputGradient, 15, 7}) == "15I7");
  CHECK(to_string(Action{ActionKind::WeightGradient, 1, 2}) == "1W2");
  CHECK(to_string(Action{ActionKind::Recompute, 3, 4}) == "3R4");
}

TEST_CASE("Every kind of action reads back as it was written", "[plan][action]") {
  for (const ActionKind kind :
       {ActionKind::Forward, ActionKind::Backward, ActionKind::InputGradient,
        ActionKind::WeightGradient, ActionKind::Recompute})
    for (const int number : {0, 1, 9, 10, 999'999}) {
      const Action action{kind, number, number / 3};
      CAPTURE(to_string(action));
      CHECK(parse_action(to_string(action)) == action);
    }
}

TEST_CASE("Text that is not an action gives nothing", "[plan][action]") {
  for (const char* text : {"", "F", "F0", "0F", "0", "0X1", "0f1", "-1F0", "0F-1", "+1F0", " 0F0",
                           "0F0 ", "0 F0", "0F0x", "0FF0", "0F0.5", "0SEND_F1"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_action(text).has_value());
  }
}

TEST_CASE("A stage or microbatch of seven digits is rejected as a typing error", "[plan][action]") {
  for (const char* text : {"1000000F0", "0F1000000", "2147483647F0", "0F2147483647",
                           "99999999999999999999F0", "0F99999999999999999999"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_action(text).has_value());
  }
}

TEST_CASE("A number with a sign is neither a stage nor a microbatch", "[plan][action]") {
  CHECK_FALSE(parse_action("-0F0"));
  CHECK_FALSE(parse_action("0F-0"));
}

}  // namespace action_test
