#include <map>
#include <string>

#include "gui/support/tables.hpp"
#include "pipewright/gui/document/workspace.hpp"
#include "support/catch.hpp"

namespace heat_test {

using namespace pipewright;

std::map<std::string, int> classes_by_name(const plan::Timeline& measured,
                                           const plan::Timeline& predicted) {
  const plan::EventTable table = plan::table_of(measured);
  const auto classes = gui::heat_classes(table, plan::table_of(predicted));
  std::map<std::string, int> by_name;
  for (std::uint64_t event = 0; event < table.size(); ++event)
    by_name[table.name_at(event)] = classes[event];
  return by_name;
}

TEST_CASE("Heat shows an action's difference from its prediction", "[gui][document]") {
  const plan::Timeline predicted = test::small_pipeline();
  auto same = classes_by_name(predicted, predicted);
  CHECK(same["2F0"] == 4);
  auto slower = classes_by_name(test::small_pipeline(1.5), predicted);
  CHECK(slower["2F0"] == 7);  // half as long again
  CHECK(slower["2B5"] == 7);
  CHECK(slower["1F0"] == 4);
  CHECK(classes_by_name(test::small_pipeline(0.5), predicted)["2F0"] == 0);
  CHECK(classes_by_name(test::small_pipeline(1.1), predicted)["2F0"] == 5);
}

TEST_CASE("An action without a prediction counts as predicted", "[gui][document]") {
  plan::Timeline few = test::small_pipeline();
  few.ranks = 1;
  std::erase_if(few.spans, [](const plan::Span& span) { return span.rank > 0; });
  few.idle.clear();
  auto classes = classes_by_name(test::small_pipeline(3), few);
  CHECK(classes["2F0"] == 4);
  CHECK(classes["0F0"] == 4);
}

TEST_CASE("Equal names are matched in order of time", "[gui][document]") {
  plan::Timeline predicted{
      .name = "p", .ranks = 1, .length = plan::Seconds{4}, .spans = {}, .memory = {}};
  predicted.spans = {{0, plan::Row::Compute, "0F0", plan::Seconds{0}, plan::Seconds{1}},
                     {0, plan::Row::Compute, "0F0", plan::Seconds{1}, plan::Seconds{3}}};
  plan::Timeline measured = predicted;
  measured.spans[1].end = plan::Seconds{4};
  const auto classes = gui::heat_classes(plan::table_of(measured), plan::table_of(predicted));
  CHECK(classes == std::vector<std::uint8_t>{4, 7});
}

}  // namespace heat_test
