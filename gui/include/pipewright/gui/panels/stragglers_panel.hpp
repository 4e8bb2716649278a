#pragma once

// The stragglers in the trace of a whole job, with the figures of `pipewright explain`: the
// slowdown, the workers that cause it, and remedies; also arranges the workers' rows.

#include <QComboBox>
#include <QLabel>
#include <functional>
#include <memory>

#include "pipewright/gui/panels/figure_table.hpp"
#include "pipewright/gui/panels/panel.hpp"

namespace pipewright::gui {

/// Returns at most `most` of the slowest workers; the row key is the worker.
FigureTable worker_table(const trace::StragglerReport& report, std::size_t most);
/// Returns types of operations, stages and replicas, with the slowdown that each of them causes
/// alone.
FigureTable slowdown_table(const trace::StragglerReport& report, std::size_t most_places);
/// Returns the remedies, as on the command line.
FigureTable remedy_table(const trace::StragglerReport& report);
/// Returns a text such as "S 1.1787 · M_W 0.0314 (1 slowest worker) · M_S 1.2194 (last stage)".
QString slowdown_words(const trace::StragglerReport& report);

class StragglersPanel : public Panel<> {
 public:
  /// `workspace` must outlive it.
  explicit StragglersPanel(Workspace& workspace, QWidget* parent = nullptr);
  void set_theme(const Theme& theme);

  /// Called with the row of the worker that the user chooses.
  std::function<void(int row)> on_row;

 private:
  void rebuild() override;
  QWidget* make_arrangement();
  QWidget* make_tables();
  QString headline() const;
  void arrange();

  QLabel* headline_;
  QWidget* arrangement_;
  QComboBox *groups_, *order_;
  QWidget* tables_;
  FigureTableView *workers_, *slowdowns_, *remedies_;
  std::shared_ptr<const trace::StragglerReport> shown_;  // in the tables
};

}  // namespace pipewright::gui
