#pragma once

// The panel that searches the fastest plans for the open scenario on request, and lists them. A
// click on a plan makes it the draft.

#include <QLabel>
#include <QPushButton>
#include <optional>
#include <variant>

#include "pipewright/gui/panels/figure_table.hpp"
#include "pipewright/gui/panels/panel.hpp"
#include "pipewright/search/drafts/draft_search.hpp"

namespace pipewright::gui {

/// Returns a row per plan, whose key is the index in `plans`.
FigureTable plan_list(const std::vector<search::DraftPlan>& plans);

class PlansPanel : public Panel<> {
 public:
  /// `workspace` must outlive it.
  explicit PlansPanel(Workspace& workspace, QWidget* parent = nullptr);
  void set_theme(const Theme& theme);

  /// Searches the fastest plans with the batch and the number of devices of the current draft.
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
