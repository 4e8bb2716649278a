#pragma once

// What-if: fields and sliders for the plan. Each change is answered at once, or rejected with a
// message.

#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPointer>
#include <QPushButton>
#include <QSlider>
#include <QToolButton>
#include <QVBoxLayout>
#include <QWidget>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "pipewright/gui/document/workspace.hpp"
#include "pipewright/gui/look/theme.hpp"
#include "pipewright/gui/panels/plan_fields.hpp"

namespace pipewright::gui {

class WhatIfPanel : public QWidget {
 public:
  /// `workspace` must outlive it.
  explicit WhatIfPanel(Workspace& workspace, QWidget* parent = nullptr);
  void set_theme(const Theme& theme);
  QSize sizeHint() const override { return {324, 600}; }

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  /// A number with its slider, or a choice.
  struct Row {
    const PlanField* field = nullptr;
    QWidget* box = nullptr;
    QLabel* label = nullptr;
    QSlider* slider = nullptr;
    QLineEdit* edit = nullptr;
    QComboBox* combo = nullptr;  // options of a choice, or the rank of a speed
    QLabel* error = nullptr;
    std::vector<double> values{};  // of the slider
    QHBoxLayout* line = nullptr;

    bool is_choice() const { return field->unit == PlanField::Unit::Choice; }
    bool is_speed() const { return field->unit == PlanField::Unit::Factor; }  // of a rank
  };

  QWidget* make_rows();
  QLabel* make_heading(const QString& text);
  void add_rows(const std::vector<PlanField>& fields, QVBoxLayout& into);
  Row& add_row(const PlanField& field, QVBoxLayout& into);
  void show_cluster();
  void add_rank(Row& row);
  void add_slider(Row& row);
  void add_edit(Row& row);
  void add_options(Row& row);
  void make_changes(QVBoxLayout* into);

  void refresh(Workspace::Change change);
  void show_row(Row& row);
  void show_number(Row& row, double value);
  void show_choice(Row& row);
  void show_changes();
  bool differs(const Row& row) const;
  void show_effect();
  void take_text(Row& row);
  void set(Row& row, const std::string& assignment);
  void set_number(Row& row, double value);
  double value_of(const Row& row) const;
  int chosen_rank(const Row& row) const;

  Workspace& workspace_;
  plan::Json now_, before_;  // the scenarios of the draft and of the baseline, as JSON
  const Theme* theme_;
  QLabel* empty_ = nullptr;
  QWidget* content_ = nullptr;
  std::vector<std::unique_ptr<Row>> rows_;
  // Below the fields of all plans: those of the link levels and node kinds of this plan's cluster.
  QVBoxLayout* cluster_layout_ = nullptr;
  QWidget* cluster_box_ = nullptr;
  std::vector<PlanField> cluster_fields_;
  QString cluster_words_;
  std::vector<QPointer<QLabel>> headings_, soft_labels_;
  QWidget* changes_box_ = nullptr;
  QLabel* changes_ = nullptr;
  QLabel* effect_ = nullptr;
  QToolButton* undo_ = nullptr;
  QToolButton* redo_ = nullptr;
  QToolButton* back_ = nullptr;
};

}  // namespace pipewright::gui
