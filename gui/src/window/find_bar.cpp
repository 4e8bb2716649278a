#include "pipewright/gui/window/find_bar.hpp"

#include <QHBoxLayout>
#include <QKeyEvent>
#include <algorithm>

#include "pipewright/plan/program/instruction.hpp"

namespace pipewright::gui {
namespace {

std::string lowered(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z')
      c = static_cast<char>(c - 'A' + 'a');
  return text;
}

}  // namespace

std::vector<std::uint64_t> found_events(const plan::EventTable& table, const std::string& typed) {
  std::vector<std::uint64_t> found;
  if (typed.empty())
    return found;
  // Each name is stored once, so few names are compared, however many events there are.
  const std::string wanted = lowered(typed);
  std::vector<char> fits(table.names.size(), 0);
  for (std::size_t name = 0; name < table.names.size(); ++name)
    if (lowered(table.names[name]) == wanted)
      fits[name] = 1;
  const bool some = std::find(fits.begin(), fits.end(), 1) != fits.end();
  for (std::size_t name = 0; !some && name < table.names.size(); ++name)
    fits[name] = lowered(table.names[name]).find(wanted) != std::string::npos;
  for (std::uint64_t event = 0; event < table.size(); ++event)
    if (fits[table.name_of[event]] != 0)
      found.push_back(event);
  std::stable_sort(found.begin(), found.end(), [&](std::uint64_t a, std::uint64_t b) {
    return table.start[a] < table.start[b];
  });
  return found;
}

std::optional<std::uint64_t> neighbor(const plan::EventTable& table,
                                      const std::vector<std::uint64_t>& found,
                                      std::optional<std::uint64_t> now, bool forward) {
  if (found.empty())
    return {};
  if (!now)
    return forward ? found.front() : found.back();
  if (const auto at = std::find(found.begin(), found.end(), *now); at != found.end()) {
    const auto count = static_cast<std::ptrdiff_t>(found.size());
    const auto place = at - found.begin() + (forward ? 1 : count - 1);
    return found[static_cast<std::size_t>(place % count)];
  }
  const auto later =
      std::upper_bound(found.begin(), found.end(), table.start[*now],
                       [&](double time, std::uint64_t event) { return time < table.start[event]; });
  if (forward)
    return later == found.end() ? found.front() : *later;
  return later == found.begin() ? found.back() : *(later - 1);
}

FindBar::FindBar(TimelineView& timeline, QWidget* parent)
    : QWidget(parent),
      timeline_(timeline),
      name_(new QLabel),
      line_(new QLineEdit),
      count_(new QLabel),
      before_(new QPushButton("Previous")),
      after_(new QPushButton("Next")) {
  setObjectName("find_bar");
  auto* layout = new QHBoxLayout(this);
  layout->setContentsMargins(gap, gap / 2, gap, gap / 2);
  layout->setSpacing(gap);
  line_->setMaximumWidth(280);
  line_->setClearButtonEnabled(true);
  count_->setForegroundRole(QPalette::PlaceholderText);
  auto* done = new QPushButton("Close");
  for (QWidget* widget : std::initializer_list<QWidget*>{name_, line_, before_, after_, count_})
    layout->addWidget(widget);
  layout->addStretch();
  layout->addWidget(done);
  connect(line_, &QLineEdit::textChanged, this, [this] { changed(); });
  connect(line_, &QLineEdit::returnPressed, this, [this] {
    if (for_ == For::Actions)
      step(true);
    else
      timeline_.setFocus();
  });
  connect(before_, &QPushButton::clicked, this, [this] { step(false); });
  connect(after_, &QPushButton::clicked, this, [this] { step(true); });
  connect(done, &QPushButton::clicked, this, [this] {
    hide();
    timeline_.setFocus();
  });
  hide();
}

void FindBar::open(For what) {
  for_ = what;
  const bool actions = what == For::Actions;
  name_->setText(actions ? "Find" : "Ranks");
  line_->setAccessibleName(actions ? "Find actions" : "Filter ranks");
  line_->setPlaceholderText(actions ? "2F5, SEND, STEP, …" : "only those with this in their name");
  before_->setVisible(actions);
  after_->setVisible(actions);
  line_->setText(actions ? QString() : QString::fromStdString(timeline_.model().rows.filter));
  count_->clear();
  show();
  line_->setFocus();
  line_->selectAll();
}

void FindBar::find() { open(For::Actions); }
void FindBar::filter() { open(For::Ranks); }

void FindBar::find(const QString& typed) {
  open(For::Actions);
  line_->setText(typed);
  step(true);
}

void FindBar::forget() {
  found_.clear();
  count_->clear();
}

void FindBar::changed() {
  if (for_ == For::Ranks) {
    RowState state = timeline_.model().rows;
    state.filter = line_->text().toStdString();
    timeline_.set_rows(std::move(state));
    return;
  }
  found_ = timeline_.front()
               ? found_events(timeline_.front()->table(), line_->text().trimmed().toStdString())
               : std::vector<std::uint64_t>{};
  show_count({});
}

void FindBar::show_count(std::optional<std::uint64_t> now) {
  const auto at = now ? std::find(found_.begin(), found_.end(), *now) : found_.end();
  if (line_->text().trimmed().isEmpty())
    count_->clear();
  else if (found_.empty())
    count_->setText("none");
  else if (at == found_.end())
    count_->setText(QString("%1 found").arg(found_.size()));
  else
    count_->setText(QString("%1 of %2").arg(at - found_.begin() + 1).arg(found_.size()));
}

void FindBar::step(bool forward) {
  if (!timeline_.front())
    return;
  if (found_.empty())
    changed();
  const auto* picked = std::get_if<PickedEvent>(&timeline_.model().marks.picked);
  const auto next = neighbor(
      timeline_.front()->table(), found_,
      picked != nullptr && !picked->ghost ? std::optional(picked->event) : std::nullopt, forward);
  if (!next)
    return;
  timeline_.go_to({false, *next});
  show_count(next);
}

void FindBar::keyPressEvent(QKeyEvent* event) {
  if (event->key() == Qt::Key_Escape) {
    hide();
    timeline_.setFocus();
  } else {
    QWidget::keyPressEvent(event);
  }
}

}  // namespace pipewright::gui
