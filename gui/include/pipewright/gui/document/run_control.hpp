#pragma once

// Starts `pipewright run` or `train` on a plan, watches its progress, and stops it.

#include <QProcess>
#include <QString>
#include <QStringList>
#include <QTimer>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "pipewright/gui/document/run_watch.hpp"
#include "pipewright/search/drafts/what_if.hpp"

namespace pipewright::gui {

struct RunRequest {
  enum class What {
    Run,    // profile, plan, predict, train, compare
    Train,  // train with checkpoints, so that it can be resumed
  };
  What what = What::Run;
  std::filesystem::path scenario;
  std::filesystem::path folder;
  bool resume = false;
};
/// Returns the program's command-line arguments.
QStringList words_of(const RunRequest& request);

/// Returns the path of `pipewright` in `own`, the folder of this program, or in PATH; empty if it
/// is in neither.
QString find_pipewright(const QString& own);

/// Writes the draft to a scenario file in `parent`, and chooses a new folder for the run:
/// NAME-TIME.scenario.json and NAME-TIME. The stage boundaries are those of `plan`, as shown in the
/// window. Throws InputError.
RunRequest prepared(RunRequest::What what, const search::Draft& draft,
                    const sim::ScenarioPlan& plan, const std::filesystem::path& parent);
/// Returns "runs" in the current folder if that is writable, otherwise in the home folder.
std::filesystem::path runs_folder();

class RunControl {
 public:
  RunControl();
  /// Asks a running training to stop, and waits for it briefly.
  ~RunControl();
  RunControl(const RunControl&) = delete;
  RunControl& operator=(const RunControl&) = delete;

  enum class Phase { Nothing, Preparing, Training, Stopping, Ended, Failed };
  Phase phase() const { return phase_; }
  bool is_running() const {
    return phase_ == Phase::Preparing || phase_ == Phase::Training || phase_ == Phase::Stopping;
  }
  /// Returns true if its last step is done.
  bool is_complete() const;
  /// Returns true if a training was stopped and has checkpoints.
  bool can_resume() const;
  const std::optional<RunRequest>& request() const { return request_; }
  /// Returns null before the first start.
  const RunWatch* watch() const { return watch_ ? &*watch_ : nullptr; }
  /// Returns the last line of the program's output.
  const QString& last_words() const { return last_words_; }
  /// Returns the program's output; only its end if it is long.
  const QString& words() const { return words_; }

  /// Sets a program to run instead of the one that `find_pipewright` finds.
  void set_program(const QString& program) { program_ = program; }
  void start(RunRequest request);
  void resume();
  /// The first call lets the training finish its step; the second one terminates it.
  void stop();

  /// Registers a function that is called after each change; they are called in the order of
  /// registration.
  void observe(std::function<void()> observer) { observers_.push_back(std::move(observer)); }

  /// Returns true if the window shows the last step during training.
  bool is_followed() const { return followed_; }
  void set_followed(bool followed) { followed_ = followed; }

 private:
  void look();
  void hear();
  void ended(int code, QProcess::ExitStatus status);
  void tell() {
    for (const auto& observer : observers_)
      observer();
  }

  std::vector<std::function<void()>> observers_;
  bool followed_ = true;

  QString program_;
  QProcess process_;
  QTimer timer_;
  Phase phase_ = Phase::Nothing;
  std::optional<RunRequest> request_;
  std::optional<RunWatch> watch_;
  QString words_, last_words_;
};

}  // namespace pipewright::gui
