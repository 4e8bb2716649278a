#pragma once

// What the trace of a whole job says of its stragglers, in the numbers of `pipewright explain`: the
// slowdown, who causes it, and what would help; and how the workers' rows are arranged.

#include <QComboBox>
#include <QLabel>
#include <functional>
#include <memory>

#include "pipewright/gui/panels/figure_table.hpp"
#include "pipewright/gui/panels/panel.hpp"

namespace pipewright::gui {

/// The slowest workers, so many at most; the key is the worker.
FigureTable worker_table(const trace::StragglerReport& report, std::size_t most);
/// Types of operations, stages and replicas: how much longer steps are for each of them alone.
FigureTable slowdown_table(const trace::StragglerReport& report, std::size_t most_places);
/// What would help, as the shell tells it.
FigureTable remedy_table(const trace::StragglerReport& report);
/// "S 1.1787 · M_W 0.0314 (1 slowest worker) · M_S 1.2194 (last stage)".
QString slowdown_words(const trace::StragglerReport& report);

class StragglersPanel : public Panel<> {
 public:
  /// `workspace` must outlive it.
  explicit StragglersPanel(Workspace& workspace, QWidget* parent = nullptr);
  void set_theme(const Theme& theme);

  /// Called when a worker is chosen: its row is meant.
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
