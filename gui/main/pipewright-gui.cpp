// pipewright-gui [FILE | FOLDER]: opens the window.

#include <CLI/CLI.hpp>
#include <QApplication>
#include <QPixmap>
#include <QThread>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "pipewright/gui/window/main_window.hpp"

namespace {

struct Wanted {
  std::filesystem::path file;
  std::filesystem::path screenshot;
  std::string size = "1920x1080";
  std::string view = "timeline";
  std::string pick;
  bool dark = false;
};

/// Returns true if nothing of the opened document could be read, after printing the reasons to
/// stderr.
bool is_unreadable(const pipewright::gui::MainWindow& window) {
  const pipewright::gui::Document& document = window.workspace().document();
  const bool nothing = !document.scenario && !document.structure && !document.measured;
  for (const std::string& problem : document.problems)
    if (nothing)
      std::fprintf(stderr, "%s\n", problem.c_str());
  return nothing && !document.problems.empty();
}

/// Renders the window without a display and exits.
int take_screenshot(pipewright::gui::MainWindow& window, const Wanted& wanted) {
  int width = 0, height = 0;
  if (std::sscanf(wanted.size.c_str(), "%dx%d", &width, &height) != 2 || width < 200 ||
      height < 150 || width > 16384 || height > 16384) {
    std::fprintf(stderr, "--size: \"%s\" is not a size: write it as 1920x1080\n",
                 wanted.size.c_str());
    return 2;
  }
  window.resize(width, height);
  window.show();
  const QString view = QString::fromStdString(wanted.view);
  QApplication::processEvents();
  if (QAction* command = window.commands().find(view)) {
    command->trigger();
  } else if (!window.show_view(view)) {
    std::fprintf(stderr, "--view: there is no view or command \"%s\":", wanted.view.c_str());
    for (const QString& name : pipewright::gui::MainWindow::view_names())
      std::fprintf(stderr, " %s", name.toUtf8().constData());
    std::fputc('\n', stderr);
    return 2;
  }
  if (!wanted.pick.empty()) {
    const auto picked = pipewright::gui::picked_from(wanted.pick);
    if (!picked || !window.workspace().front()) {
      std::fprintf(stderr, "--pick: \"%s\" cannot be selected: write 1@12.5 or 0-3@10-20\n",
                   wanted.pick.c_str());
      return 2;
    }
    QApplication::processEvents();
    window.workspace().pick(pipewright::gui::picked_in(*window.workspace().front(), *picked));
  }
  QApplication::processEvents();
  const pipewright::gui::Workspace& workspace = window.workspace();
  while (workspace.is_looking_for_plans() || workspace.is_explaining()) {
    QThread::msleep(5);
    QApplication::processEvents();
  }
  QApplication::processEvents();  // lays out the results of background searches
  if (!window.grab().save(QString::fromStdString(wanted.screenshot.string()))) {
    std::fprintf(stderr, "%s: cannot be written\n", wanted.screenshot.c_str());
    return 2;
  }
  return 0;
}

void add_options(CLI::App& app, Wanted& wanted) {
  app.set_version_flag("--version", PIPEWRIGHT_VERSION);
  app.add_option(
      "FILE", wanted.file,
      "a scenario, a run's folder, a timeline, the trace of a whole job, a Program or schedule "
      "(CSV)");
  app.add_option("--screenshot", wanted.screenshot,
                 "draw into this PNG file without a display, and exit");
  app.add_option("--size", wanted.size, "size of the window in the picture")->capture_default_str();
  app.add_option("--view", wanted.view,
                 "what is shown below the timeline, or a command such as help.palette")
      ->capture_default_str();
  app.add_option(
      "--pick", wanted.pick,
      "selection in the picture: an instant of a rank, RANK@MS, or an area, RANK-RANK@MS-MS");
  app.add_flag("--dark", wanted.dark, "use the dark theme");
  app.footer(
      "Without a file it opens the example scenario. The window stores its settings in the file "
      "that PIPEWRIGHT_SETTINGS names, if it is set.");
}

/// Returns true if there is a display, or none is needed because only a picture is wanted.
bool has_display(const Wanted& wanted) {
  if (!wanted.screenshot.empty()) {
    qputenv("QT_QPA_PLATFORM", "offscreen");
    // Without a desktop, Qt prints warnings that do not concern a picture.
    qInstallMessageHandler([](QtMsgType type, const QMessageLogContext&, const QString& message) {
      if (type == QtCriticalMsg || type == QtFatalMsg)
        std::fprintf(stderr, "%s\n", message.toUtf8().constData());
    });
    return true;
  }
  for (const char* variable : {"QT_QPA_PLATFORM", "DISPLAY", "WAYLAND_DISPLAY"})
    if (qEnvironmentVariableIsSet(variable))
      return true;
  std::fputs("pipewright-gui: there is no display; --screenshot OUT.png draws without one\n",
             stderr);
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  Wanted wanted;
  CLI::App app{"Shows scenarios, runs and traces of pipeline-parallel training."};
  add_options(app, wanted);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (!has_display(wanted))
    return 2;
  QApplication application(argc, argv);
  QApplication::setApplicationName("pipewright");
  const bool desktop_is_dark = QApplication::palette().color(QPalette::Window).lightness() < 128;
  pipewright::gui::MainWindow window;
  window.set_dark(wanted.dark || (wanted.screenshot.empty() && desktop_is_dark));
  if (wanted.screenshot.empty())
    window.remember_in(qEnvironmentVariable("PIPEWRIGHT_SETTINGS"));
  if (!wanted.file.empty())
    window.open(wanted.file);
  else
    window.open_example();
  if (!wanted.screenshot.empty())
    return is_unreadable(window) ? 2 : take_screenshot(window, wanted);
  window.show();
  return QApplication::exec();
}
