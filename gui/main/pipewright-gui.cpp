// pipewright-gui [FILE | FOLDER]

#include <CLI/CLI.hpp>
#include <QApplication>
#include <QMainWindow>

#include "pipewright/gui/document/document.hpp"
#include "pipewright/gui/timeline/timeline_view.hpp"

int main(int argc, char** argv) {
  QApplication application(argc, argv);
  using namespace pipewright;
  const gui::Document document = gui::open_document(argv[1]);
  for (const auto& p : document.problems)
    qWarning("%s", p.c_str());
  gui::TimelineView view;
  application.setPalette(gui::palette_of(gui::light_theme()));
  view.resize(1400, 700);
  view.show();
  if (document.measured)
    view.show_tables(
        std::make_shared<gui::PaintedTable>(*document.measured),
        document.predicted ? std::make_shared<gui::PaintedTable>(*document.predicted) : nullptr);
  application.processEvents();
  view.grab().save(argv[2]);
  return 0;
}
