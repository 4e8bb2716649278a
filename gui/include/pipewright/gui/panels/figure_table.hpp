#pragma once

// A table of figures as a plain value, and the widget that shows it.

#include <QColor>
#include <QString>
#include <QStringList>
#include <QTableWidget>
#include <functional>
#include <vector>

#include "pipewright/gui/look/theme.hpp"

namespace pipewright::gui {

struct FigureCell {
  QString text;
  double number = 0;  // sort key, if the column is numeric
  double bar = 0;  // -1 to 1: signed length of a bar next to the text, 1 for the largest value of
                   // the column; 0: no bar
  QString help{};  // details for the tooltip, below the text
};

struct FigureTable {
  struct Column {
    QString title;
    QString help;
    bool is_number = false;
  };
  struct Row {
    std::vector<FigureCell> cells;
    int key = -1;           // passed to `on_chosen`; negative: the row cannot be chosen
    bool is_total = false;  // bold; a table with such a row cannot be sorted
  };
  std::vector<Column> columns;
  std::vector<Row> rows;
};

FigureCell words_cell(const QString& words);
FigureCell time_cell(double seconds);
/// Returns a cell with a time and its sign. `largest` is the time of a full bar; 0: no bar.
FigureCell difference_cell(double seconds, double largest = 0);
FigureCell bytes_cell(double bytes);

/// Returns the table as tab-separated values: the titles, then the rows in their order.
QString tsv_of(const FigureTable& table);

class FigureTableView : public QTableWidget {
 public:
  explicit FigureTableView(QWidget* parent = nullptr);
  void show_table(FigureTable table);
  void set_theme(const Theme& theme);
  const FigureTable& table() const { return table_; }
  /// Returns the table as tab-separated values in the order that the user sorted it in. Ctrl+C
  /// copies this text.
  QString shown_tsv() const;

  std::function<void(int key)> on_chosen;  // called when a row is clicked or Enter is pressed

  /// Returns the width that its columns need.
  QSize sizeHint() const override;

 protected:
  void resizeEvent(QResizeEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;

 private:
  class Delegate;
  void show_row(int row);
  bool ends_in_words() const;
  void measure_columns();
  void fit_columns();
  void choose(int row);

  FigureTable table_;
  std::vector<char> has_negative_;  // by column: if true, bars start in the middle of their space
  std::vector<int> needed_;         // width in pixels, by column
  const Theme* theme_;
};

}  // namespace pipewright::gui
