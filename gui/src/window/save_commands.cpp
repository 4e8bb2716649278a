#include "pipewright/gui/window/save_commands.hpp"

#include <QFileDialog>
#include <QMessageBox>
#include <filesystem>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/search/drafts/draft_files.hpp"

namespace pipewright::gui {
namespace {

struct Form {
  SavedAs as;
  const char* id;
  const char* text;
  const char* ending;
  const char* suffix;  // added by the dialog
  const char* filter;
};
constexpr Form forms[]{
    {SavedAs::Scenario, "file.save_scenario", "Save plan as scenario…", ".scenario.json", "json",
     "Scenarios (*.json)"},
    {SavedAs::TorchCsv, "file.save_csv", "Save schedule as torch CSV…", ".csv", "csv",
     "Schedules (*.csv)"},
    {SavedAs::MegatronLayout, "file.save_layout", "Save partition as Megatron layout…",
     ".layout.txt", "txt", "Layouts (*.txt)"},
};

const Form& form_of(SavedAs as) { return forms[static_cast<std::size_t>(as)]; }

const sim::ScenarioPlan& plan_of(const Workspace& workspace) {
  if (workspace.answer() == nullptr)
    throw plan::InputError("the plan is not possible: " + workspace.refusal().text);
  return workspace.answer()->plan;
}

/// Asks for the file, including whether an existing one may be replaced. Returns an empty text if
/// the user cancels.
QString asked_path(const Workspace& workspace, SavedAs as, QWidget* window) {
  const Form& form = form_of(as);
  QFileDialog dialog(window, QString(form.text).remove(QChar(0x2026)));
  dialog.setAcceptMode(QFileDialog::AcceptSave);
  dialog.setNameFilters({form.filter, "All files (*)"});
  dialog.setDefaultSuffix(form.suffix);
  const std::filesystem::path& opened = workspace.document().path;
  const std::filesystem::path folder =
      std::filesystem::is_directory(opened) ? opened : opened.parent_path();
  if (!folder.empty())
    dialog.setDirectory(QString::fromStdString(folder.string()));
  dialog.selectFile(suggested_name(workspace, as));
  return dialog.exec() == QDialog::Accepted ? dialog.selectedFiles().value(0) : QString();
}

void save(const Workspace& workspace, SavedAs as, QWidget* window) {
  try {
    const std::string text = saved_text(workspace, as);  // throws before the user is asked for a
                                                         // file
    const QString path = asked_path(workspace, as, window);
    if (!path.isEmpty())
      plan::write_file(path.toStdString(), text);
  } catch (const std::exception& error) {
    QMessageBox::warning(window, "Not saved", QString::fromUtf8(error.what()));
  }
}

}  // namespace

std::string saved_text(const Workspace& workspace, SavedAs as) {
  switch (as) {
    case SavedAs::Scenario:
      return search::scenario_text(workspace.draft());
    case SavedAs::TorchCsv:
      return search::schedule_csv(plan_of(workspace));
    case SavedAs::MegatronLayout:
      return search::layout_text(workspace.draft(), plan_of(workspace)) + "\n";
  }
  return {};
}

QString suggested_name(const Workspace& workspace, SavedAs as) {
  QString name = QString::fromStdString(workspace.draft().scenario.name);
  name.replace('/', '-');
  return name + form_of(as).ending;
}

void add_save_commands(Commands& commands, Workspace& workspace, QWidget* window) {
  for (const Form& form : forms)
    commands.add(
        form.id, "File", form.text,
        form.as == SavedAs::Scenario ? QKeySequence(QKeySequence::Save) : QKeySequence(),
        [&workspace, window, as = form.as] { save(workspace, as, window); },
        [&workspace, as = form.as] {
          return workspace.has_plan() && (as == SavedAs::Scenario || workspace.answer() != nullptr);
        });
}

}  // namespace pipewright::gui
