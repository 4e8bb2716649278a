// Measures waiting times of the window, offscreen at 1920 × 1080: for the first picture of millions
// of events, and for each frame while zooming and panning through all of them. Also measures the
// response times to a dragged boundary and to a slider. Prints one JSON line.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <QApplication>
#include <QProcess>
#include <QScrollBar>
#include <QSettings>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "pipewright/gui/window/main_window.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/timeline/event_file.hpp"
#include "support/large_timelines.hpp"
#include "support/temp_folder.hpp"
#include "trace/support/made_up_job.hpp"

namespace {

using namespace pipewright;
using Clock = std::chrono::steady_clock;

struct Options {
  std::uint64_t events = 10'000'000;
  int ranks = 64;
  int stages = 64;
  int microbatches = 256;
  int rounds = 40;
  std::uint64_t trace_mb = 350;
  int replicas = 512;  // of a whole job
  bool json = false;   // print nothing else
};

double seconds_of(const std::function<void()>& work) {
  const auto start = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Returns the value below which a share of all values lies.
double quantile(std::vector<double> values, double share) {
  if (values.empty())
    return 0;
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1,
                         static_cast<std::size_t>(share * static_cast<double>(values.size())))];
}

/// Returns the resident bytes of this process, including mapped files.
double resident() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmRSS:"))
      return std::stod(line.substr(6)) * 1024;
  return 0;
}

/// Paints everything that has changed, as the event loop would.
void paint(QWidget& window) {
  QApplication::sendPostedEvents();
  QEvent update(QEvent::UpdateRequest);
  QApplication::sendEvent(&window, &update);
}

/// Counts painted frames, so that every measured frame was really painted.
class Painted : public QObject {
 public:
  explicit Painted(gui::TimelineView& view) { view.viewport()->installEventFilter(this); }
  bool eventFilter(QObject*, QEvent* event) override {
    frames += event->type() == QEvent::Paint ? 1 : 0;
    return false;
  }
  int frames = 0;
};

std::unique_ptr<gui::MainWindow> open_window() {
  auto window = std::make_unique<gui::MainWindow>();
  window->resize(1920, 1080);
  window->show();
  QApplication::processEvents();
  return window;
}

/// Zooms from the whole timeline to single events at many places, and pans across the timeline at
/// each depth.
std::vector<double> frame_ms(gui::MainWindow& window) {
  gui::TimelineView& view = window.timeline();
  Painted painted(view);
  const double length = view.front()->length(), pixels = view.model().layout.plot_width();
  std::vector<double> frames;
  const auto frame = [&](gui::TimeScale scale) {
    if (scale == view.scale())
      return;
    frames.push_back(1e3 * seconds_of([&] {
                       view.set_scale(scale);
                       paint(window);
                     }));
  };
  for (int place = 0; place < 8; ++place) {
    gui::TimeScale scale = gui::fitted(0, length, pixels);
    for (; scale.per_pixel > 1e-7;
         scale = gui::zoomed(scale, 1.25, pixels * (place + 0.5) / 8, length, pixels))
      frame(scale);
  }
  for (double part = 1; part * length / pixels > 1e-7; part /= 3)
    for (int step = 0; step < 60; ++step) {
      const double first = (length - part * length) * step / 59.0;
      frame(gui::fitted(first, first + part * length, pixels));
      if (part == 1)
        frame(gui::fitted(first - length * 0.01 * (step + 1), length, pixels));
    }
  if (std::cmp_less(painted.frames, frames.size()))
    throw std::runtime_error("not every frame was painted");
  return frames;
}

std::filesystem::path write_scenario(const test::TempFolder& folder, const Options& options) {
  return folder.write(
      "scenario.json",
      fmt::format(R"({{"format": "pipewright/scenario/1", "name": "bench",
      "model": {{"kind": "gpt", "blocks": {}, "hidden": 1024, "heads": 16, "sequence": 1024}},
      "data": {{"kind": "text", "path": "text.txt"}},
      "cluster": {{"name": "c", "nodes": 1, "devices_per_node": {}, "device": {{"name": "d"}},
        "within_node": {{"latency_s": 1e-5, "bandwidth_per_s": 1e11}}}},
      "pipeline": {{"ranks": {}, "microbatches": {}, "schedule": "1f1b"}},
      "training": {{"steps": 1, "microbatch_size": 1}}}})",
                  4 * options.stages - 2, options.stages, options.stages, options.microbatches));
}

/// Moves boundaries back and forth, each to a new place.
std::vector<double> drag_ms(gui::MainWindow& window, int rounds) {
  gui::Workspace& workspace = window.workspace();
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) {
    const std::vector<int> at = workspace.answer()->plan.partition.boundaries;
    const auto stages = static_cast<int>(at.size()) - 1;
    const auto boundary = static_cast<std::size_t>(1 + round % (stages - 1));
    const int layer = at[boundary] + (at[boundary] - 1 > at[boundary - 1] ? -1 : 1);
    times.push_back(1e3 * seconds_of([&] {
                      workspace.move_boundary(static_cast<int>(boundary), layer);
                      paint(window);
                    }));
  }
  return times;
}

/// Sets numbers of microbatches that were not used before, so that each needs a new schedule.
std::vector<double> slider_ms(gui::MainWindow& window, int microbatches, int rounds) {
  std::vector<double> times;
  for (int round = 1; round <= rounds; ++round)
    times.push_back(1e3 * seconds_of([&] {
                      window.workspace().set(
                          fmt::format("pipeline.microbatches={}", microbatches - round));
                      paint(window);
                    }));
  if (!window.workspace().answer())
    throw std::runtime_error(window.workspace().refusal().text);
  return times;
}

void measure_events(const test::TempFolder& folder, const Options& options, nlohmann::json& line) {
  const auto file = folder.path() / "events.pwt";
  plan::write_event_file(file, test::made_up_events(options.events, options.ranks));
  auto window = open_window();
  const double before = resident();
  line["open_s"] = seconds_of([&] {
    window->open(file);
    paint(*window);
  });
  if (!window->timeline().front())
    throw std::runtime_error("the events were not opened");
  const auto events = static_cast<double>(window->timeline().front()->table().size());
  line["events"] = events;
  const std::vector<double> frames = frame_ms(*window);
  line["frame_p99_ms"] = quantile(frames, 0.99);
  line["bytes_per_event"] = (resident() - before) / events;
  if (!options.json)
    fmt::print(stderr, "{} frames: median {:.2f} ms, 90 % {:.2f} ms, longest {:.2f} ms\n",
               frames.size(), quantile(frames, 0.5), quantile(frames, 0.9), quantile(frames, 1));
}

double open_trace_s(const std::filesystem::path& file) {
  auto window = open_window();
  const double seconds = seconds_of([&] {
    window->open(file);
    paint(*window);
  });
  if (!window->timeline().front())
    throw std::runtime_error("the trace was not opened");
  return seconds;
}

void measure_trace(const test::TempFolder& folder, const Options& options, nlohmann::json& line) {
  const auto file = folder.path() / "trace.json";
  test::write_made_up_kineto(file, options.trace_mb * 1'000'000);
  line["trace_mb"] = static_cast<double>(std::filesystem::file_size(file)) / 1e6;
  line["trace_open_s"] = open_trace_s(file);
  if (QProcess::execute("gzip", {QString::fromStdString(file.string())}) != 0)
    throw std::runtime_error("the trace was not gzipped");
  const std::filesystem::path gzipped = file.string() + ".gz";
  line["trace_gz_mb"] = static_cast<double>(std::filesystem::file_size(gzipped)) / 1e6;
  line["trace_gz_open_s"] = open_trace_s(gzipped);
}

/// Shows eight stages and two steps, and scrolls from the first rows to the last, with another step
/// visible each time.
void measure_job(const test::TempFolder& folder, const Options& options, nlohmann::json& line) {
  const int slow = 4 * options.replicas + options.replicas / 3;
  auto job = test::noisy_job(options.replicas, 8, 8, {20, 25}, slow);
  job.every_s = 0.6;
  const auto file = folder.write("job.json", job.trace());
  line["job_workers"] = options.replicas * 8;
  line["job_mb"] = static_cast<double>(std::filesystem::file_size(file)) / 1e6;
  auto window = open_window();
  const auto begun = Clock::now();
  line["job_open_s"] = seconds_of([&] {
    window->open(file);
    paint(*window);
  });
  if (window->workspace().job() == nullptr)
    throw std::runtime_error("the job was not opened");
  while (window->workspace().is_explaining())
    QApplication::processEvents(QEventLoop::WaitForMoreEvents);
  line["job_explained_s"] = std::chrono::duration<double>(Clock::now() - begun).count();
  line["job_events"] = window->timeline().front()->table().size();

  gui::TimelineView& view = window->timeline();
  Painted painted(view);
  std::vector<double> frames;
  std::size_t most_rows = 0;
  const int last = view.verticalScrollBar()->maximum();
  constexpr int scrolls = 400;
  for (int at = 0; at < scrolls; ++at) {
    frames.push_back(1e3 * seconds_of([&] {
                       view.verticalScrollBar()->setValue(last * at / (scrolls - 1));
                       paint(*window);
                     }));
    most_rows = std::max(most_rows, view.painted().rows);
  }
  if (painted.frames < scrolls - 1)
    throw std::runtime_error("not every frame was painted");
  line["job_frame_p99_ms"] = quantile(frames, 0.99);
  line["job_rows_painted"] = most_rows;
  line["job_grouped_ms"] = 1e3 * seconds_of([&] {
                             window->workspace().arrange({gui::JobGroups::Replicas, {}});
                             paint(*window);
                           });
}

void measure_plan(const test::TempFolder& folder, const Options& options, nlohmann::json& line) {
  auto window = open_window();
  window->open(write_scenario(folder, options));
  if (!window->workspace().answer())
    throw std::runtime_error(window->workspace().refusal().text);
  paint(*window);
  const std::vector<double> drags = drag_ms(*window, options.rounds);
  const std::vector<double> slides = slider_ms(*window, options.microbatches, options.rounds);
  line["drag_ms"] = quantile(drags, 0.95);
  line["slider_ms"] = quantile(slides, 0.95);
  if (!options.json)
    fmt::print(stderr, "medians: drag {:.2f} ms, slider {:.2f} ms\n", quantile(drags, 0.5),
               quantile(slides, 0.5));
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Times the window");
  app.add_option("--events", options.events)->capture_default_str();
  app.add_option("--ranks", options.ranks)->capture_default_str();
  app.add_option("--stages", options.stages)->capture_default_str();
  app.add_option("--microbatches", options.microbatches)->capture_default_str();
  app.add_option("--rounds", options.rounds, "number of drags and of slider moves")
      ->capture_default_str();
  app.add_option("--trace-mb", options.trace_mb)->capture_default_str();
  app.add_option("--replicas", options.replicas, "replicas of a whole job, eight workers each")
      ->capture_default_str();
  app.add_flag("--json", options.json, "print only the JSON line");
  CLI11_PARSE(app, argc, argv);
  try {
    const test::TempFolder folder;
    const std::string home = folder.path().string();
    qputenv("QT_QPA_PLATFORM", "offscreen");
    qputenv("XDG_CONFIG_HOME", home.c_str());
    qputenv("XDG_RUNTIME_DIR", home.c_str());
    QApplication application(argc, argv);
    nlohmann::json line;
    measure_events(folder, options, line);
    measure_trace(folder, options, line);
    measure_plan(folder, options, line);
    measure_job(folder, options, line);
    fmt::print("{}\n", line.dump());
  } catch (const std::exception& failure) {
    fmt::print(stderr, "{}\n", failure.what());
    return 1;
  }
}
