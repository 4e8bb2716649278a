#pragma once

// The fastest plans for the open scenario, searched on request: a sortable list whose plans can be
// applied by a click.

#include <QLabel>
#include <QPushButton>
#include <optional>
#include <variant>

#include "pipewright/gui/panels/figure_table.hpp"
#include "pipewright/gui/panels/panel.hpp"
#include "pipewright/search/drafts/draft_search.hpp"

namespace pipewright::gui {

/// The row key is the index in `plans`.
FigureTable plan_list(const std::vector<search::DraftPlan>& plans);

class PlansPanel : public Panel<> {
 public:
  /// `workspace` must outlive it.
  explicit PlansPanel(Workspace& workspace, QWidget* parent = nullptr);
  void set_theme(const Theme& theme);

  /// Searches for the plan's batch, on as many devices as it uses.
  void search();

 private:
  void rebuild() override;
  QString headline() const;

  QLabel* headline_;
  QPushButton* search_;
  FigureTableView* list_;
  std::optional<Workspace::PlansFound> found_;
};

}  // namespace pipewright::gui
