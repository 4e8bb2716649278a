#include "pipewright/gui/panels/figure_table.hpp"

#include <QApplication>
#include <QClipboard>
#include <QHeaderView>
#include <QKeyEvent>
#include <QPainter>
#include <QStyle>
#include <QStyledItemDelegate>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "pipewright/gui/look/words.hpp"

namespace pipewright::gui {
namespace {

constexpr int figure_height = 24;
constexpr int figure_bar = 36;
constexpr int least_words = 60;  // of a text column, in pixels
constexpr int good_words = 280;
constexpr int number_role = Qt::UserRole, bar_role = Qt::UserRole + 1, key_role = Qt::UserRole + 2;

/// Sorted by its number if it has one.
class FigureItem : public QTableWidgetItem {
 public:
  using QTableWidgetItem::QTableWidgetItem;
  bool operator<(const QTableWidgetItem& other) const override {
    const QVariant own = data(number_role), others = other.data(number_role);
    if (own.isValid() && others.isValid())
      return own.toDouble() < others.toDouble();
    return QTableWidgetItem::operator<(other);
  }
};

QString tsv_field(QString text) { return text.replace('\t', ' ').replace('\n', ' '); }

}  // namespace

/// Paints a bar to the left of the number, from the bar's middle if the column has negative values.
class FigureTableView::Delegate : public QStyledItemDelegate {
 public:
  explicit Delegate(FigureTableView* view) : QStyledItemDelegate(view), view_(view) {}

  void paint(QPainter* painter, const QStyleOptionViewItem& option,
             const QModelIndex& index) const override {
    QStyleOptionViewItem plain = option;
    plain.state &= ~QStyle::State_HasFocus;
    QStyledItemDelegate::paint(painter, plain, index);
    const double bar = index.data(bar_role).toDouble();
    if (bar == 0)
      return;
    const Theme& theme = *view_->theme_;
    // The bar stays next to the number even if the column is wider than needed.
    const int needed = view_->needed_[static_cast<std::size_t>(index.column())];
    const QRectF room(option.rect.right() - needed + gap, option.rect.center().y() - 3.0,
                      figure_bar, 7);
    const bool both_ways = view_->has_negative_[static_cast<std::size_t>(index.column())] != 0;
    const double zero = both_ways ? room.center().x() : room.left();
    const double length =
        std::max(1.0, std::abs(bar) * (both_ways ? room.width() / 2 : room.width()));
    painter->fillRect(QRectF(bar < 0 ? zero - length : zero, room.top(), length, room.height()),
                      both_ways && bar > 0 ? theme.warning : theme.accent);
    if (both_ways)
      painter->fillRect(QRectF(zero - 0.5, room.top() - 3, 1, room.height() + 6), theme.line);
  }

 private:
  FigureTableView* view_;
};

FigureCell words_cell(const QString& words) { return {words, 0, 0}; }
FigureCell time_cell(double seconds) { return {time_words(seconds), seconds, 0}; }

FigureCell difference_cell(double seconds, double largest) {
  return {seconds == 0 ? QString("0 ms") : time_difference(seconds), seconds,
          largest > 0 ? std::clamp(seconds / largest, -1.0, 1.0) : 0};
}

FigureCell bytes_cell(double bytes) { return {byte_words(bytes), bytes, 0}; }

QString tsv_of(const FigureTable& table) {
  QString text;
  QStringList titles;
  for (const FigureTable::Column& column : table.columns)
    titles << tsv_field(column.title);
  text += titles.join('\t') + '\n';
  for (const FigureTable::Row& row : table.rows) {
    QStringList cells;
    for (const FigureCell& cell : row.cells)
      cells << tsv_field(cell.text);
    text += cells.join('\t') + '\n';
  }
  return text;
}

FigureTableView::FigureTableView(QWidget* parent) : QTableWidget(parent), theme_(&light_theme()) {
  setItemDelegate(new Delegate(this));
  setEditTriggers(NoEditTriggers);
  setSelectionBehavior(SelectRows);
  setSelectionMode(SingleSelection);
  setShowGrid(false);
  setFrameShape(NoFrame);
  setFocusPolicy(Qt::StrongFocus);
  setHorizontalScrollMode(ScrollPerPixel);
  setVerticalScrollMode(ScrollPerPixel);
  verticalHeader()->hide();
  verticalHeader()->setDefaultSectionSize(figure_height);
  verticalHeader()->setMinimumSectionSize(figure_height);
  horizontalHeader()->setHighlightSections(false);
  setFont(font_of(text_size));
  horizontalHeader()->setFont(font_of(small_size));
  QObject::connect(this, &QTableWidget::cellClicked, this, [this](int row, int) { choose(row); });
}

void FigureTableView::show_table(FigureTable table) {
  table_ = std::move(table);
  setSortingEnabled(false);
  clear();
  setColumnCount(static_cast<int>(table_.columns.size()));
  setRowCount(static_cast<int>(table_.rows.size()));
  for (int c = 0; c < columnCount(); ++c) {
    const FigureTable::Column& column = table_.columns[static_cast<std::size_t>(c)];
    auto* title = new QTableWidgetItem(column.title);
    title->setToolTip(column.help);
    title->setTextAlignment(Qt::AlignVCenter | (column.is_number ? Qt::AlignRight : Qt::AlignLeft));
    setHorizontalHeaderItem(c, title);
  }
  has_negative_.assign(table_.columns.size(), 0);
  for (int r = 0; r < rowCount(); ++r)
    show_row(r);
  setWordWrap(ends_in_words());
  measure_columns();
  fit_columns();
  const bool has_total = std::any_of(table_.rows.begin(), table_.rows.end(),
                                     [](const FigureTable::Row& row) { return row.is_total; });
  setSortingEnabled(!has_total);
  horizontalHeader()->setSortIndicator(-1, Qt::DescendingOrder);
}

void FigureTableView::show_row(int r) {
  const FigureTable::Row& row = table_.rows[static_cast<std::size_t>(r)];
  for (std::size_t c = 0; c < row.cells.size(); ++c) {
    const FigureCell& cell = row.cells[c];
    auto* item = new FigureItem(cell.text);
    item->setToolTip(cell.help.isEmpty() ? cell.text : cell.text + "\n" + cell.help);
    item->setData(key_role, row.key);
    if (table_.columns[c].is_number) {
      item->setData(number_role, cell.number);
      item->setTextAlignment(Qt::AlignVCenter | Qt::AlignRight);
      if (cell.bar != 0)
        item->setData(bar_role, cell.bar);
      has_negative_[c] = static_cast<char>(has_negative_[c] != 0 || cell.bar < 0);
    }
    if (row.is_total)
      item->setFont(font_of(text_size, true));
    setItem(r, static_cast<int>(c), item);
  }
}

bool FigureTableView::ends_in_words() const {
  return !table_.columns.empty() && !table_.columns.back().is_number;
}

/// Computes the width that each column needs for its widest cell and its bar. A text column at the
/// end can be narrower.
void FigureTableView::measure_columns() {
  resizeColumnsToContents();
  needed_.clear();
  for (int c = 0; c < columnCount(); ++c) {
    const auto has_bar = [c](const FigureTable::Row& row) {
      return row.cells[static_cast<std::size_t>(c)].bar != 0;
    };
    const bool any_bar = std::any_of(table_.rows.begin(), table_.rows.end(), has_bar);
    needed_.push_back(std::min(560, columnWidth(c) + (any_bar ? figure_bar + gap : 0)));
  }
  if (ends_in_words())
    needed_.back() = least_words;
  updateGeometry();
}

/// Uses the full width: a text column at the end takes what the numbers leave, and wraps its text;
/// without one, all columns grow equally.
void FigureTableView::fit_columns() {
  if (needed_.empty())
    return;
  const int columns = columnCount();
  const int spare =
      std::max(0, viewport()->width() - std::accumulate(needed_.begin(), needed_.end(), 0));
  for (int c = 0; c < columns; ++c) {
    const int share = ends_in_words() ? (c + 1 == columns ? spare : 0)
                                      : spare * (c + 1) / columns - spare * c / columns;
    setColumnWidth(c, needed_[static_cast<std::size_t>(c)] + share);
  }
  if (!ends_in_words())
    return;
  resizeRowsToContents();
  for (int r = 0; r < rowCount(); ++r)
    setRowHeight(r, rowHeight(r) + gap / 2);
}

void FigureTableView::resizeEvent(QResizeEvent* event) {
  QTableWidget::resizeEvent(event);
  fit_columns();
}

QSize FigureTableView::sizeHint() const {
  const int needed = std::accumulate(needed_.begin(), needed_.end(), 0);
  return {needed + (ends_in_words() ? good_words - least_words : 0) +
              style()->pixelMetric(QStyle::PM_ScrollBarExtent),
          QTableWidget::sizeHint().height()};
}

void FigureTableView::set_theme(const Theme& theme) {
  theme_ = &theme;
  viewport()->update();
}

QString FigureTableView::shown_tsv() const {
  FigureTable shown{table_.columns, {}};
  for (int r = 0; r < rowCount(); ++r) {
    FigureTable::Row row;
    for (int c = 0; c < columnCount(); ++c)
      row.cells.push_back(words_cell(item(r, c) != nullptr ? item(r, c)->text() : QString()));
    shown.rows.push_back(std::move(row));
  }
  return tsv_of(shown);
}

void FigureTableView::keyPressEvent(QKeyEvent* event) {
  if (event->matches(QKeySequence::Copy))
    QApplication::clipboard()->setText(shown_tsv());
  else if (event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter)
    choose(currentRow());
  else
    QTableWidget::keyPressEvent(event);
}

void FigureTableView::choose(int row) {
  const QTableWidgetItem* first = row >= 0 ? item(row, 0) : nullptr;
  if (first != nullptr && on_chosen && first->data(key_role).toInt() >= 0)
    on_chosen(first->data(key_role).toInt());
}

}  // namespace pipewright::gui
