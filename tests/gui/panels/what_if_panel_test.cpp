#include "pipewright/gui/panels/what_if_panel.hpp"

#include <QComboBox>
#include <QLineEdit>
#include <QSlider>
#include <QStyleOptionSlider>
#include <QToolButton>

#include "gui/support/mouse.hpp"
#include "gui/support/opened_window.hpp"
#include "pipewright/gui/window/save_commands.hpp"
#include "pipewright/plan/generators/schedule_request.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "support/temp_folder.hpp"

namespace what_if_panel_test {

using namespace pipewright;

struct Opened : test::OpenedWindow {
  explicit Opened(const std::filesystem::path& path = test::opened_plan) : OpenedWindow(path) {}
  std::string field(const std::string& name) {
    return find<QLineEdit>(("what_if.field." + name).c_str()).text().toStdString();
  }
  void type(const std::string& name, const char* text) {
    auto& edit = find<QLineEdit>(("what_if.field." + name).c_str());
    edit.setFocus();
    edit.selectAll();
    QTest::keyClicks(&edit, text);
    QTest::keyClick(&edit, Qt::Key_Return);
  }
  QLabel& error(const std::string& name) { return find<QLabel>(("what_if.error." + name).c_str()); }
  const plan::Scenario& scenario() { return workspace().draft().scenario; }
};

TEST_CASE("Each field of the plan is shown with its value and unit", "[gui][panels]") {
  Opened opened;
  const std::vector<std::pair<std::string, std::string>> expected{
      {"pipeline.ranks", "4"},
      {"pipeline.microbatches", "16"},
      {"pipeline.chunks", "auto"},
      {"pipeline.replicas", "4"},
      {"training.microbatch_size", "4"},
      {"cluster.within_node.bandwidth_per_s", "100 GB/s"},
      {"cluster.within_node.latency_s", "2 µs"},
      {"cluster.between_nodes.bandwidth_per_s", "1.25 GB/s"},
      {"cluster.between_nodes.latency_s", "20 µs"},
      {"cluster.device.memory_bytes", "no limit"},
      {"cluster.rank_speeds", "1 ×"}};
  for (const auto& [name, value] : expected) {
    CAPTURE(name);
    CHECK(opened.field(name) == value);
  }
  const std::vector<std::pair<const char*, const char*>> choices{
      {"what_if.choice.pipeline.schedule", "1f1b"},
      {"what_if.choice.pipeline.partition", "balanced by time"},
      {"what_if.choice.training.recompute", "none"},
      {"what_if.choice.training.zero", "off"},
      {"what_if.choice.training.precision", "full"},
      {"what_if.choice.training.optimizer", "AdamW"}};
  for (const auto& [name, words] : choices)
    CHECK(opened.find<QComboBox>(name).currentText() == words);
}

/// Returns a scenario of eight nodes, in groups of two below a leaf and of four below a spine; the
/// last two are slower.
std::string scenario_of_levels(bool on_rails = true) {
  auto json = to_json(plan::scenario_from_json(plan::JsonDocument::read(test::opened_plan)));
  json["cluster"]["nodes"] = 8;
  json["cluster"]["fabric"] = plan::Json::parse(R"({"rails": true, "levels": [
    {"name": "leaf", "group_nodes": 2, "latency_s": 3e-5, "bandwidth_per_s": 1e9},
    {"name": "spine", "group_nodes": 4, "latency_s": 5e-5, "bandwidth_per_s": 1e9,
     "oversubscription": 4, "shared": true}]})");
  json["cluster"]["fabric"]["rails"] = on_rails;
  json["cluster"]["mixture"] = plan::Json::parse(R"({"kinds": [
    {"nodes": 6, "device": {"name": "H100", "memory_bytes": 85500000000}},
    {"nodes": 2, "device": {"name": "A100", "memory_bytes": 42900000000}, "speed": 0.4}]})");
  return json.dump(2);
}

TEST_CASE("Link levels and node kinds are shown, changed and saved", "[gui][panels]") {
  const test::TempFolder folder;
  const auto file = folder.write("scenario.json", scenario_of_levels());
  Opened opened(file);
  const std::vector<std::pair<std::string, std::string>> expected{
      {"cluster.fabric.levels.0.bandwidth_per_s", "1 GB/s"},
      {"cluster.fabric.levels.0.latency_s", "30 µs"},
      {"cluster.fabric.levels.0.oversubscription", "1 ×"},
      {"cluster.fabric.levels.1.oversubscription", "4 ×"},
      {"cluster.mixture.kinds.0.speed", "1 ×"},
      {"cluster.mixture.kinds.1.speed", "0.4 ×"},
      {"cluster.mixture.kinds.1.device.memory_bytes", "42.9 GB"}};
  for (const auto& [name, value] : expected) {
    CAPTURE(name);
    CHECK(opened.field(name) == value);
  }
  const QString words = opened.find<QLabel>("what_if.cluster").text();
  CHECK(words.contains("By rails"));
  CHECK(words.contains("level spine is shared"));

  // Saving an unchanged scenario gives the scenario that was opened.
  const plan::Scenario before = opened.scenario();
  REQUIRE(before.cluster.fabric);
  const auto saved = [&] {
    return plan::scenario_from_json(plan::JsonDocument::read(
        folder.write("saved.json", saved_text(opened.workspace(), gui::SavedAs::Scenario))));
  };
  CHECK(saved() == before);

  opened.type("cluster.fabric.levels.1.oversubscription", "8");
  opened.type("cluster.mixture.kinds.1.speed", "0.5");
  CHECK(opened.find<QLabel>("what_if.changes").text() ==
        "Oversubscription, spine 4 × → 8 ×\nSpeed, A100 0.4 × → 0.5 ×");
  CHECK(saved().cluster.fabric->levels[1].link.oversubscription == 8);
  CHECK(saved().cluster.fabric->levels[0] == before.cluster.fabric->levels[0]);
  CHECK(saved().cluster.mixture->kinds[1].speed == 0.5);
  opened.type("cluster.fabric.levels.1.oversubscription", "0.5");
  CHECK(opened.error("cluster.fabric.levels.1.oversubscription").text().contains("at least 1"));

  // Another cluster with the same rows has another description.
  opened.window.open(folder.write("no_rails.json", scenario_of_levels(/*on_rails=*/false)));
  const QString without = opened.find<QLabel>("what_if.cluster").text();
  CHECK_FALSE(without.contains("By rails"));
  CHECK(without.contains("level spine is shared"));

  // Another plan has other rows.
  opened.window.open(test::opened_plan);
  CHECK(opened.window.findChild<QLineEdit*>("what_if.field.cluster.mixture.kinds.1.speed") ==
        nullptr);
  CHECK(opened.field("pipeline.ranks") == "4");
}

TEST_CASE("A schedule file is chosen, drawn and named, and can be chosen again", "[gui][panels]") {
  const test::TempFolder folder;
  const plan::Schedule order = plan::make_schedule("gpipe", 4, 16);
  const auto file = folder.write("mine.csv", plan::to_csv(order));
  const plan::Scenario shipped =
      plan::scenario_from_json(plan::JsonDocument::read(test::opened_plan));
  const plan::Scenario own = plan::changed(shipped, "pipeline.schedule=" + file.string());
  test::OpenedWindow opened(folder.write("scenario.json", to_json(own).dump(2)));
  REQUIRE(opened.workspace().answer());
  CHECK(opened.workspace().answer()->plan.schedule == order);
  auto& combo = opened.find<QComboBox>("what_if.choice.pipeline.schedule");
  CHECK(combo.currentText() == "mine.csv");
  CHECK(opened.timeline().isVisible());
  combo.setCurrentIndex(combo.findText("1f1b"));
  CHECK(opened.workspace().draft().scenario.pipeline.schedule == "1f1b");
  CHECK(opened.find<QLabel>("what_if.changes").text() == "Schedule mine.csv → 1f1b");
  combo.setCurrentIndex(combo.findText("mine.csv"));
  CHECK(opened.workspace().answer()->plan.schedule == order);
  CHECK(opened.find<QLabel>("what_if.changes").text().startsWith("Nothing yet"));
}

TEST_CASE("A typed value is planned, and its effect is shown", "[gui][panels]") {
  Opened opened;
  opened.type("pipeline.microbatches", "32");
  CHECK(opened.scenario().pipeline.microbatches == 32);
  CHECK(opened.find<QLabel>("what_if.changes").text() == "Microbatches 16 → 32");
  // A line for each figure that differs, each with its values in parentheses.
  const QStringList effect = opened.find<QLabel>("what_if.effect").text().split('\n');
  REQUIRE(effect.size() >= 2);
  CHECK(effect[0].startsWith("iteration +"));
  CHECK(effect[1].startsWith("bubble "));
  for (const QString& line : effect)
    CHECK(line.count('(') == line.count(')'));
  opened.find<QToolButton>("what_if.undo").click();
  CHECK(opened.scenario().pipeline.microbatches == 16);
  CHECK(opened.find<QLabel>("what_if.changes").text().startsWith("Nothing yet"));
}

TEST_CASE("A value can be entered in another unit", "[gui][panels]") {
  Opened opened;
  opened.type("cluster.within_node.bandwidth_per_s", "50000 MB/s");
  CHECK(opened.scenario().cluster.within_node.bandwidth_per_s == 50e9);
  CHECK(opened.field("cluster.within_node.bandwidth_per_s") == "50 GB/s");
  opened.type("cluster.within_node.latency_s", "3");  // in the unit that was shown
  CHECK(opened.scenario().cluster.within_node.latency.value == Approx(3e-6));
}

TEST_CASE("An invalid or impossible value is rejected next to its field", "[gui][panels]") {
  Opened opened;
  opened.type("pipeline.ranks", "many");
  CHECK(opened.error("pipeline.ranks").isVisible());
  CHECK(opened.error("pipeline.ranks").text() == "“many” is not a valid value. Example: 4");
  CHECK(opened.field("pipeline.ranks") == "4");
  opened.type("pipeline.ranks", "4096");
  CHECK(opened.error("pipeline.ranks").isVisible());
  CHECK(opened.error("pipeline.ranks").text().contains("4096"));
  CHECK(opened.scenario().pipeline.ranks == 4);
  opened.type("pipeline.ranks", "2");
  CHECK_FALSE(opened.error("pipeline.ranks").isVisible());
}

TEST_CASE("A choice and the speed of one rank are set", "[gui][panels]") {
  Opened opened;
  auto& recompute = opened.find<QComboBox>("what_if.choice.training.recompute");
  recompute.setCurrentIndex(recompute.findText("full"));
  CHECK(plan::to_string(opened.scenario().training.recompute) == "full");
  opened.type("cluster.rank_speeds", "0.5");
  CHECK(opened.scenario().cluster.rank_speeds == std::vector{0.5, 1.0, 1.0, 1.0});
  CHECK(opened.find<QLabel>("what_if.changes").text().contains("Speed, rank 0 1 × → 0.5 ×"));
}

TEST_CASE("A slider is dragged to its end", "[gui][panels]") {
  Opened opened;
  auto& slider = opened.find<QSlider>("what_if.slider.pipeline.ranks");
  REQUIRE(slider.isVisible());
  const int was = slider.value();
  QStyleOptionSlider option;
  option.initFrom(&slider);
  option.minimum = slider.minimum();
  option.maximum = slider.maximum();
  option.sliderPosition = option.sliderValue = was;
  const QRect handle =
      slider.style()->subControlRect(QStyle::CC_Slider, &option, QStyle::SC_SliderHandle, &slider);
  test::drag(slider, handle.center(), handle.center() - QPointF(200, 0));
  CHECK(slider.value() == slider.minimum());
  CHECK(opened.scenario().pipeline.ranks == 1);
  // The wheel scrolls the list of fields.
  test::wheel(slider, slider.rect().center(), 3);
  CHECK(opened.scenario().pipeline.ranks == 1);
}

}  // namespace what_if_panel_test
