#include "pipewright/gui/panels/run_panel.hpp"

#include <QGridLayout>
#include <QHBoxLayout>
#include <QPainter>
#include <QPolygonF>
#include <QScrollBar>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "catalog.hpp"
#include "pipewright/gui/look/words.hpp"

namespace pipewright::gui {
namespace {

/// Returns "3 min 20 s".
QString duration_words(double seconds) {
  const int whole = static_cast<int>(std::lround(seconds));
  if (whole < 60)
    return QString("%1 s").arg(whole);
  if (whole < 3600)
    return QString("%1 min %2 s").arg(whole / 60).arg(whole % 60);
  return QString("%1 h %2 min").arg(whole / 3600).arg(whole % 3600 / 60);
}

QString count_words(double count) {
  return QLocale(QLocale::English).toString(std::llround(count));
}

}  // namespace

// ---- chart

SmallChart::SmallChart(const QString& title, QWidget* parent)
    : QWidget(parent), title_(title), theme_(&light_theme()) {
  setMinimumSize(180, 96);
  setAccessibleName(title);
}

void SmallChart::set_theme(const Theme& theme) {
  theme_ = &theme;
  update();
}

void SmallChart::show_points(std::vector<std::pair<double, double>> points, const QString& last,
                             std::optional<std::pair<double, double>> band) {
  points_ = std::move(points);
  std::erase_if(points_, [](const auto& point) { return !std::isfinite(point.second); });
  last_ = last;
  band_ = band;
  setAccessibleDescription(last);
  update();
}

/// Returns the smallest and largest value, including the band and a margin.
std::pair<double, double> SmallChart::range() const {
  double least = points_.front().second, most = least;
  for (const auto& [x, y] : points_) {
    least = std::min(least, y);
    most = std::max(most, y);
  }
  if (band_) {
    least = std::min(least, band_->first);
    most = std::max(most, band_->second);
  }
  const double room = std::max((most - least) * 0.08, std::abs(most) * 1e-6 + 1e-300);
  return {least - room, most + room};
}

void SmallChart::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setFont(font_of(small_size));
  painter.setPen(theme_->soft_text);
  painter.drawText(QRectF(0, 0, width(), 16), Qt::AlignLeft | Qt::AlignVCenter, title_);
  painter.setFont(font_of(small_size, true));
  painter.setPen(theme_->text);
  painter.drawText(QRectF(0, 0, width(), 16), Qt::AlignRight | Qt::AlignVCenter, last_);
  const QRectF plot(0, 22, width(), height() - 24);
  painter.fillRect(plot, theme_->window);
  if (points_.size() < 2)
    return;
  const auto [least, most] = range();
  const double first = points_.front().first, steps = points_.back().first - first;
  const auto place = [&, least = least, most = most](double x, double y) {
    return QPointF(plot.left() + (x - first) / std::max(steps, 1e-12) * plot.width(),
                   plot.bottom() - (y - least) / (most - least) * plot.height());
  };
  if (band_) {
    QColor wash = theme_->accent;
    wash.setAlphaF(0.14F);
    painter.fillRect(QRectF(QPointF(plot.left(), place(first, band_->second).y()),
                            QPointF(plot.right(), place(first, band_->first).y())),
                     wash);
  }
  QPolygonF line;
  for (const auto& [x, y] : points_)
    line << place(x, y);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(QPen(theme_->accent, 1.6, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
  painter.drawPolyline(line);
  painter.setPen(Qt::NoPen);
  painter.setBrush(theme_->accent);
  painter.drawEllipse(line.back(), 3, 3);
}

// ---- panel

RunPanel::RunPanel(PanelHost& host, QWidget* parent)
    : QWidget(parent),
      host_(host),
      workspace_(host.workspace),
      control_(host.runs),
      theme_(&light_theme()) {
  auto* layout = new QHBoxLayout(this);
  layout->setContentsMargins(2 * gap, gap, 2 * gap, gap);
  layout->setSpacing(3 * gap);
  layout->addLayout(make_state(), 4);
  losses_ = new SmallChart("loss");
  times_ = new SmallChart("time of a step");
  times_->setToolTip(
      "Shaded: the predicted band, which is as wide as the drift of the machine's speed.");
  layout->addWidget(losses_, 2);
  layout->addWidget(times_, 2);
  layout->addWidget(make_words(), 4);
  workspace_.observe([this](Workspace::Change change) {
    if (change == Workspace::Change::Document || change == Workspace::Change::Plan)
      refresh();
  });
  control_.observe([this] { refresh(); });
  set_theme(*theme_);
}

/// Creates the state of the training, its figures, and its buttons.
QLayout* RunPanel::make_state() {
  auto* left = new QVBoxLayout;
  left->setSpacing(gap);
  heading_ = new QLabel;
  heading_->setObjectName("run_heading");
  heading_->setFont(font_of(heading_size, true));
  says_ = new QLabel;
  says_->setWordWrap(true);
  says_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  alarm_ = new QLabel;
  alarm_->setWordWrap(true);
  alarm_->setObjectName("run_alarm");
  left->addWidget(heading_);
  left->addWidget(says_);
  left->addWidget(alarm_);
  left->addWidget(make_figures());
  left->addStretch(1);
  left->addLayout(make_buttons());
  return left;
}

QWidget* RunPanel::make_figures() {
  figures_ = new QWidget;
  auto* grid = new QGridLayout(figures_);
  grid->setContentsMargins(0, 0, 0, 0);
  grid->setHorizontalSpacing(3 * gap);
  grid->setVerticalSpacing(0);
  const auto figure = [&](int column, const char* name) {
    auto* value = new QLabel("–");
    value->setFont(font_of(figure_size));
    auto* label = new QLabel(name);
    label->setFont(font_of(small_size));
    label->setForegroundRole(QPalette::PlaceholderText);
    grid->addWidget(value, 0, column);
    grid->addWidget(label, 1, column);
    value->setAccessibleName(name);
    return value;
  };
  step_ = figure(0, "step");
  loss_ = figure(1, "loss");
  speed_ = figure(2, "per second");
  left_ = figure(3, "left");
  grid->setColumnStretch(4, 1);
  return figures_;
}

QPushButton* RunPanel::make_button(const char* text, const char* help, const char* command) {
  auto* button = new QPushButton(text);
  button->setObjectName(command);
  button->setToolTip(help);
  connect(button, &QPushButton::clicked, this, [this, command] { host_.trigger(command); });
  return button;
}

QLayout* RunPanel::make_buttons() {
  run_ = make_button("Run", "Profiles, predicts, trains and compares this plan on this machine.",
                     "run.start");
  train_ = make_button(
      "Train", "Trains with this plan and writes checkpoints: it can be stopped and resumed.",
      "run.train");
  stop_ = make_button("Stop", "Ends after the current step; a second click ends it at once.",
                      "run.stop");
  resume_ = make_button("Resume", "Continues from the newest checkpoint.", "run.resume");
  open_ =
      make_button("Show the run", "Opens the files that the run has written so far.", "run.open");
  follow_ = new QCheckBox("Follow the last step");
  follow_->setToolTip("The timeline shows the last step during training.");
  follow_->setChecked(control_.is_followed());
  connect(follow_, &QCheckBox::toggled, this,
          [this](bool followed) { control_.set_followed(followed); });
  auto* buttons = new QHBoxLayout;
  for (QPushButton* button : {run_, train_, stop_, resume_, open_})
    buttons->addWidget(button);
  buttons->addWidget(follow_);
  buttons->addStretch(1);
  return buttons;
}

/// Creates the view of the program's output.
QWidget* RunPanel::make_words() {
  words_ = new QPlainTextEdit;
  words_->setReadOnly(true);
  words_->setLineWrapMode(QPlainTextEdit::NoWrap);
  words_->setFrameShape(QFrame::NoFrame);
  words_->setAccessibleName("Output of the program");
  words_->setPlaceholderText("The program's output appears here.");
  QFont fixed("DejaVu Sans Mono");
  fixed.setStyleHint(QFont::Monospace);
  fixed.setPixelSize(small_size);
  words_->setFont(fixed);
  return words_;
}

void RunPanel::set_theme(const Theme& theme) {
  theme_ = &theme;
  losses_->set_theme(theme);
  times_->set_theme(theme);
  alarm_->setStyleSheet(QString("color: %1; border-left: 3px solid %1; padding-left: 8px;")
                            .arg(theme.warning.name()));
  refresh();
}

void RunPanel::show_state() {
  using Phase = RunControl::Phase;
  const bool possible = workspace_.answer() != nullptr;
  switch (control_.phase()) {
    case Phase::Nothing:
      heading_->setText("Nothing runs");
      says_->setText(possible ? "Run measures this plan on this machine and compares it with its "
                                "prediction. Train keeps checkpoints instead."
                              : "Open a scenario or a run: its plan can be run from here.");
      break;
    case Phase::Preparing:
      heading_->setText("Preparing");
      says_->setText(control_.last_words());
      break;
    case Phase::Training:
      heading_->setText("Training");
      says_->setText(QString::fromStdString(control_.request()->folder.string()));
      break;
    case Phase::Stopping:
      heading_->setText("Stopping after this step");
      says_->setText(control_.last_words());
      break;
    case Phase::Ended:
      heading_->setText(control_.is_complete() ? "Done" : "Stopped");
      says_->setText(QString::fromStdString(control_.request()->folder.string()));
      break;
    case Phase::Failed:
      heading_->setText("It failed");
      says_->setText(control_.last_words());
      break;
  }
  const bool running = control_.is_running();
  run_->setVisible(!running);
  train_->setVisible(!running);
  run_->setEnabled(possible);
  train_->setEnabled(possible);
  stop_->setVisible(running);
  resume_->setVisible(control_.can_resume());
  open_->setVisible(control_.watch() != nullptr && !control_.watch()->steps().empty());
  follow_->setVisible(running);
}

void RunPanel::refresh() {
  show_state();
  const RunWatch* watch = control_.watch();
  const bool seen = watch != nullptr && !watch->steps().empty();
  figures_->setVisible(seen);
  losses_->setVisible(seen);
  times_->setVisible(seen);
  words_->setVisible(control_.phase() != RunControl::Phase::Nothing);
  alarm_->setVisible(seen && watch->alarm().has_value());
  if (words_->toPlainText() != control_.words()) {
    words_->setPlainText(control_.words());
    words_->verticalScrollBar()->setValue(words_->verticalScrollBar()->maximum());
  }
  if (seen)
    show_steps(*watch);
}

void RunPanel::show_steps(const RunWatch& watch) {
  if (watch.alarm())
    alarm_->setText(QString::fromStdString(watch.alarm()->text));
  const loop::StepLine& last = watch.steps().back();
  step_->setText(QString("%1 / %2").arg(last.step + 1).arg(last.steps));
  loss_->setText(QString::number(last.loss, 'f', 3));
  speed_->setText(
      QString("%1 %2").arg(count_words(last.units_per_s), QString::fromStdString(last.unit)));
  std::vector<std::pair<double, double>> losses, times;
  double sum = 0;
  for (const loop::StepLine& step : watch.steps()) {
    losses.emplace_back(step.step, step.loss);
    times.emplace_back(step.step, step.seconds);
    sum += step.seconds;
  }
  left_->setText(duration_words(sum / static_cast<double>(watch.steps().size()) *
                                (last.steps - last.step - 1)));
  losses_->show_points(std::move(losses), QString::number(last.loss, 'f', 4));
  std::optional<std::pair<double, double>> band;
  if (watch.band())
    band = {watch.band()->least_s, watch.band()->most_s};
  times_->show_points(std::move(times), time_words(last.seconds), band);
}

PanelDescriptor panel::training() {
  return {.name = "training",
          .title = "Run",
          .help = "Runs this plan or trains with it, and follows the progress.",
          .shortcut = "Alt+8",
          .dock = PanelDock::Details,
          .make = [](PanelHost& host) -> MadePanel { return new RunPanel(host); }};
}

}  // namespace pipewright::gui
