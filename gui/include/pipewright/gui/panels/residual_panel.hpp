#pragma once

// Breaks a prediction's error down: compute, transfer, waiting, launch and memory per rank, and the
// causes sorted by size.

#include <QLabel>
#include <functional>

#include "pipewright/gui/document/places.hpp"
#include "pipewright/gui/panels/figure_table.hpp"
#include "pipewright/gui/panels/panel.hpp"

namespace pipewright::gui {

/// Returns a row per rank. On each rank, all columns but memory add up to the difference of the
/// iteration time.
FigureTable rank_table(const loop::Residuals& residuals);
FigureTable cause_table(const loop::Residuals& residuals);
FigureTable action_table(const std::vector<ActionDifference>& actions);

class ResidualPanel : public Panel<> {
 public:
  /// `workspace` must outlive it.
  explicit ResidualPanel(Workspace& workspace, QWidget* parent = nullptr);
  void set_theme(const Theme& theme);

  /// Called with the events of the line that the user chooses.
  std::function<void(const Places&)> on_places;

 private:
  void rebuild() override;

  std::vector<ActionDifference> worst_;
  QLabel* headline_;
  QWidget* tables_;
  QWidget* budget_;
  FigureTableView* ranks_;
  FigureTableView* causes_;
  FigureTableView* actions_;
};

}  // namespace pipewright::gui
