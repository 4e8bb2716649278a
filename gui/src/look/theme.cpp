#include "pipewright/gui/look/theme.hpp"

#include <QApplication>
#include <algorithm>

namespace pipewright::gui {
namespace {

std::array<ClassLook, class_count> kinds(bool dark) {
  const QColor gray = dark ? QColor("#8a93a0") : QColor("#9aa2ad");
  const QColor other = dark ? QColor("#a9b1bc") : QColor("#5b6068");
  using Kind = plan::InstructionKind;
  return {{{Kind::Forward, "forward", QColor("#0072b2"), Hatch::None},
           {Kind::Backward, "backward", QColor("#009e73"), Hatch::Rising},
           {Kind::InputGradient, "input gradient", QColor("#56b4e9"), Hatch::Falling},
           {Kind::WeightGradient, "weight gradient", QColor("#e6c700"), Hatch::Dots},
           {Kind::Recompute, "recompute", QColor("#cc79a7"), Hatch::Lines},
           {Kind::Load, "load", gray, Hatch::None},
           {Kind::OptimizerStep, "optimizer step", QColor("#d55e00"), Hatch::Cross},
           {std::nullopt, "other", other, Hatch::None}}};
}

Theme make_light() {
  Theme theme;
  theme.window = "#f6f7f9";
  theme.panel = "#ffffff";
  theme.line = "#dfe3e8";
  theme.text = "#1f2630";
  theme.soft_text = "#68727f";
  theme.accent = "#0072b2";
  theme.warning = "#b3410b";
  theme.plot = "#ffffff";
  theme.idle = "#eceef1";
  theme.grid = "#d8dde3";
  theme.selection = "#e69f00";
  theme.send = "#e69f00";
  theme.receive = "#f2cf80";
  theme.reduce = "#cc79a7";
  theme.kinds = kinds(false);
  theme.causes = {QColor("#f0e8b4"), QColor("#c3daf2"), QColor("#eecdbb"), QColor("#bdeaf4"),
                  QColor("#cbd4db"), QColor("#c9ebd8"), QColor("#dcc6f6"), QColor("#ff8498")};
  theme.heat = {QColor("#2166ac"), QColor("#6aa6d0"), QColor("#b5d3e6"), QColor("#dde3e8"),
                QColor("#dde3e8"), QColor("#f6c9ae"), QColor("#e08a63"), QColor("#b2182b")};
  theme.owners = {QColor("#4a5a78"), QColor("#7f8fae"), QColor("#b3bed2"), QColor("#0072b2"),
                  QColor("#56b4e9"), QColor("#e69f00"), QColor("#cc79a7"), QColor("#9aa2ad")};
  return theme;
}

Theme make_dark() {
  Theme theme;
  theme.dark = true;
  theme.window = "#171b21";
  theme.panel = "#1f242c";
  theme.line = "#323a45";
  theme.text = "#e6e9ee";
  theme.soft_text = "#98a2b0";
  theme.accent = "#56b4e9";
  theme.warning = "#f09a5e";
  theme.plot = "#14171c";
  theme.idle = "#2b323c";
  theme.grid = "#3a434f";
  theme.selection = "#e69f00";
  theme.send = "#e69f00";
  theme.receive = "#8f6a1a";
  theme.reduce = "#cc79a7";
  theme.kinds = kinds(true);
  theme.causes = {QColor("#57552f"), QColor("#324c6b"), QColor("#654334"), QColor("#25565e"),
                  QColor("#48525c"), QColor("#2f5544"), QColor("#51396b"), QColor("#3b1a0a")};
  theme.heat = {QColor("#4393c3"), QColor("#3a6f96"), QColor("#35506a"), QColor("#343c47"),
                QColor("#343c47"), QColor("#7a4a38"), QColor("#b5603f"), QColor("#e0503a")};
  theme.owners = {QColor("#6b7d9f"), QColor("#8f9fbd"), QColor("#b3bed2"), QColor("#0072b2"),
                  QColor("#56b4e9"), QColor("#e69f00"), QColor("#cc79a7"), QColor("#8a93a0")};
  return theme;
}

}  // namespace

const Theme& light_theme() {
  static const Theme theme = make_light();
  return theme;
}

const Theme& dark_theme() {
  static const Theme theme = make_dark();
  return theme;
}

std::uint8_t kind_class(plan::InstructionKind kind) {
  const auto& looks = light_theme().kinds;
  const auto found = std::find_if(looks.begin(), looks.end() - 1,
                                  [&](const ClassLook& look) { return look.kind == kind; });
  return static_cast<std::uint8_t>(found - looks.begin());
}

QPalette palette_of(const Theme& theme) {
  QPalette palette;
  palette.setColor(QPalette::Window, theme.window);
  palette.setColor(QPalette::Base, theme.panel);
  palette.setColor(QPalette::AlternateBase, theme.window);
  palette.setColor(QPalette::Button, theme.panel);
  palette.setColor(QPalette::WindowText, theme.text);
  palette.setColor(QPalette::Text, theme.text);
  palette.setColor(QPalette::ButtonText, theme.text);
  palette.setColor(QPalette::ToolTipBase, theme.panel);
  palette.setColor(QPalette::ToolTipText, theme.text);
  palette.setColor(QPalette::PlaceholderText, theme.soft_text);
  palette.setColor(QPalette::Highlight, theme.accent);
  palette.setColor(QPalette::HighlightedText, theme.dark ? QColor("#10141a") : QColor("#ffffff"));
  palette.setColor(QPalette::Mid, theme.line);
  palette.setColor(QPalette::Link, theme.accent);
  for (const auto role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText})
    palette.setColor(QPalette::Disabled, role, theme.soft_text);
  return palette;
}

QString style_of(const Theme& theme) {
  return QString(R"(
QMainWindow, QDialog { background: %1; }
QToolTip { background: %2; color: %3; border: 1px solid %4; padding: 4px; }
QMenuBar { background: %2; border-bottom: 1px solid %4; }
QMenuBar::item { padding: 5px 9px; background: transparent; }
QMenuBar::item:selected, QMenu::item:selected { background: %5; color: %6; }
QMenu { background: %2; border: 1px solid %4; padding: 4px; }
QMenu::item { padding: 5px 24px; }
QMenu::separator { height: 1px; background: %4; margin: 4px 8px; }
QDockWidget { titlebar-close-icon: none; titlebar-normal-icon: none; color: %7; }
QDockWidget::title { background: %1; padding: 6px 8px; }
QTabBar { background: %1; qproperty-drawBase: 0; }
QAbstractScrollArea::corner { background: transparent; border: 0; }
QTabBar::tab { padding: 6px 14px; color: %7; background: %1; border: 0; border-bottom: 2px solid transparent; }
QTabBar::tab:selected { color: %3; border-bottom: 2px solid %5; }
QTabWidget::pane { border: 0; border-top: 1px solid %4; }
QPushButton, QToolButton { background: %2; border: 1px solid %4; border-radius: 5px; padding: 4px 12px; }
QPushButton:hover, QToolButton:hover { border-color: %5; }
QToolButton:checked { background: %5; color: %6; border-color: %5; }
QToolButton:disabled { color: %7; }
QPushButton:default { background: %5; color: %6; border-color: %5; }
QPushButton:disabled { color: %7; }
QLineEdit, QSpinBox, QDoubleSpinBox, QComboBox { background: %2; border: 1px solid %4; border-radius: 4px; padding: 3px 6px; min-height: 18px; selection-background-color: %5; }
QComboBox::drop-down { border: 0; width: 20px; }
QLineEdit:focus, QSpinBox:focus, QDoubleSpinBox:focus, QComboBox:focus { border-color: %5; }
QTableView, QTreeView, QListView, QPlainTextEdit, QTextBrowser { background: %2; alternate-background-color: %1; border: 0; gridline-color: %4; }
QHeaderView { background: %2; }
QHeaderView::section { background: %2; color: %7; border: 0; border-bottom: 1px solid %4; padding: 5px 8px; }
QStatusBar { background: %1; color: %7; border-top: 1px solid %4; }
QSplitter::handle { background: %4; }
QScrollBar:vertical { background: transparent; width: 10px; }
QScrollBar:horizontal { background: transparent; height: 10px; }
QScrollBar::handle { background: %4; border-radius: 4px; min-height: 24px; min-width: 24px; margin: 1px; }
QScrollBar::add-line, QScrollBar::sub-line { width: 0; height: 0; }
QSlider::groove:horizontal { height: 4px; background: %4; border-radius: 2px; }
QSlider::handle:horizontal { background: %5; width: 14px; margin: -5px 0; border-radius: 7px; }
)")
      .arg(theme.window.name(), theme.panel.name(), theme.text.name(), theme.line.name(),
           theme.accent.name(), theme.dark ? "#10141a" : "#ffffff", theme.soft_text.name());
}

QFont font_of(int pixels, bool bold) {
  QFont font = QApplication::font();
  font.setPixelSize(pixels);
  font.setBold(bold);
  return font;
}

}  // namespace pipewright::gui
