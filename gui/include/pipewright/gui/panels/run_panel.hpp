#pragma once

// A training that was started from here: where it stands, how the loss and the time of a step go,
// and an alarm when it leaves what was predicted.

#include <QCheckBox>
#include <QLabel>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QStackedWidget>
#include <QWidget>
#include <utility>
#include <vector>

#include "pipewright/gui/document/workspace.hpp"
#include "pipewright/gui/look/theme.hpp"
#include "pipewright/gui/window/run_control.hpp"

namespace pipewright::gui {

/// A line over the steps, small, with the band that it should stay in.
class SmallChart : public QWidget {
 public:
  explicit SmallChart(const QString& title, QWidget* parent = nullptr);
  void set_theme(const Theme& theme);
  /// `last`: what is written beside the title.
  void show_points(std::vector<std::pair<double, double>> points, const QString& last,
                   std::optional<std::pair<double, double>> band = {});
  QSize sizeHint() const override { return {260, 120}; }

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  QString title_, last_;
  const Theme* theme_;
  std::vector<std::pair<double, double>> points_;
  std::optional<std::pair<double, double>> band_;
};

class RunPanel : public QWidget {
 public:
  /// Both must outlive it.
  RunPanel(Workspace& workspace, RunControl& control, QWidget* parent = nullptr);
  void set_theme(const Theme& theme);
  /// Shows where the training stands now.
  void refresh();
  /// Whether the timeline shows the last step while it trains.
  bool follows() const { return follow_->isChecked(); }

  std::function<void()> on_run, on_train, on_stop, on_resume, on_open;

 private:
  void show_state();

  Workspace& workspace_;
  RunControl& control_;
  const Theme* theme_;
  QLabel* heading_ = nullptr;
  QLabel* says_ = nullptr;
  QLabel* alarm_ = nullptr;
  QLabel* step_ = nullptr;
  QLabel* loss_ = nullptr;
  QLabel* speed_ = nullptr;
  QLabel* left_ = nullptr;
  QPushButton* run_ = nullptr;
  QPushButton* train_ = nullptr;
  QPushButton* stop_ = nullptr;
  QPushButton* resume_ = nullptr;
  QPushButton* open_ = nullptr;
  QCheckBox* follow_ = nullptr;
  SmallChart* losses_ = nullptr;
  SmallChart* times_ = nullptr;
  QPlainTextEdit* words_ = nullptr;
  QWidget* figures_ = nullptr;
};

}  // namespace pipewright::gui
