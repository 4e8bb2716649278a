// Runs the tests of the window: a QApplication without a display, with a test font and private
// settings.
#include <QApplication>
#include <QSettings>
#include <QStyleFactory>

#include "gui/support/test_font.hpp"
#include "support/session.hpp"
#include "support/temp_folder.hpp"

int main(int argc, char** argv) {
  if (!qEnvironmentVariableIsSet("QT_QPA_PLATFORM"))
    qputenv("QT_QPA_PLATFORM", "offscreen");
  const pipewright::test::TempFolder folder;
  const QString home = QString::fromStdString(folder.path().string());
  for (const char* name : {"XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"})
    qputenv(name, home.toUtf8());
  if (!qEnvironmentVariableIsSet("XDG_RUNTIME_DIR"))
    qputenv("XDG_RUNTIME_DIR", home.toUtf8());
  QSettings::setPath(QSettings::NativeFormat, QSettings::UserScope, home);
  int no_arguments = 1;
  QApplication application(no_arguments, argv);
  QApplication::setApplicationName("pipewright-tests");
  QApplication::setStyle(QStyleFactory::create("Fusion"));
  QApplication::setFont(pipewright::test::test_font());
  return pipewright::test::run_session(argc, argv);
}
