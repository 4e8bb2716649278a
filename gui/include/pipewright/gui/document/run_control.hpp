#pragma once

// Starts `pipewright run` or `train` on a plan, looks on while it trains, and stops it.

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
/// What the program is told.
QStringList words_of(const RunRequest& request);

/// `pipewright` beside `own`, the folder of this program, or else in PATH; empty: nowhere.
QString find_pipewright(const QString& own);

/// The draft as a file that is trained on, and a folder that does not exist yet, side by side in
/// `parent`: NAME-TIME.scenario.json and NAME-TIME. The boundaries are those that were seen. Throws
/// InputError.
RunRequest prepared(RunRequest::What what, const search::Draft& draft,
                    const sim::ScenarioPlan& plan, const std::filesystem::path& parent);
/// "runs" where the program was started if that can be written, else in the home folder.
std::filesystem::path runs_folder();

class RunControl {
 public:
  RunControl();
  /// Asks a training that goes on to stop, and waits for it a little.
  ~RunControl();
  RunControl(const RunControl&) = delete;
  RunControl& operator=(const RunControl&) = delete;

  enum class Phase { Nothing, Preparing, Training, Stopping, Ended, Failed };
  Phase phase() const { return phase_; }
  bool is_running() const {
    return phase_ == Phase::Preparing || phase_ == Phase::Training || phase_ == Phase::Stopping;
  }
  /// Whether its last step is done.
  bool is_complete() const;
  /// Whether there is a training that was stopped and has checkpoints.
  bool can_resume() const;
  const std::optional<RunRequest>& request() const { return request_; }
  /// Null before the first start.
  const RunWatch* watch() const { return watch_ ? &*watch_ : nullptr; }
  /// The last that the program said.
  const QString& last_words() const { return last_words_; }
  /// All of it, the end where it is much.
  const QString& words() const { return words_; }

  /// Another program than the one that `find_pipewright` finds.
  void set_program(const QString& program) { program_ = program; }
  void start(RunRequest request);
  void resume();
  /// The first time it may end its step; the second time it is ended.
  void stop();

  /// Called after each change, in the order of observing.
  void observe(std::function<void()> observer) { observers_.push_back(std::move(observer)); }

  /// Whether who looks on is shown the last step while it trains.
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
