#include "pipewright/gui/document/run_control.hpp"

#include <fmt/chrono.h>
#include <signal.h>

#include <QCoreApplication>
#include <QDir>
#include <QFileInfo>
#include <QStandardPaths>
#include <ctime>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/search/drafts/draft_files.hpp"

namespace pipewright::gui {
namespace {

constexpr int look_every = 250;            // ms
constexpr qsizetype most_words = 100'000;  // characters that are kept
constexpr int patience = 3000;             // ms that a closing window waits for the training
constexpr int checkpoints_every = 10;      // steps

QString qt(const std::filesystem::path& path) { return QString::fromStdString(path.string()); }

}  // namespace

QStringList words_of(const RunRequest& request) {
  QStringList words;
  switch (request.what) {
    case RunRequest::What::Run:
      words << "run" << qt(request.scenario) << "--out" << qt(request.folder);
      break;
    case RunRequest::What::Train:
      words << "train" << qt(request.scenario) << "--out" << qt(request.folder) << "--checkpoints"
            << qt(request.folder / "checkpoints") << "--checkpoint-every"
            << QString::number(checkpoints_every);
      if (request.resume)
        words << "--resume";
      break;
  }
  return words;
}

QString find_pipewright(const QString& own) {
  const QFileInfo beside(QDir(own), "pipewright");
  if (beside.isExecutable())
    return beside.absoluteFilePath();
  return QStandardPaths::findExecutable("pipewright");
}

std::filesystem::path runs_folder() {
  const bool here =
      QFileInfo(QDir::currentPath()).isWritable() && QDir::currentPath() != QDir::rootPath();
  return std::filesystem::path((here ? QDir::currentPath() : QDir::homePath()).toStdString()) /
         "runs";
}

RunRequest prepared(RunRequest::What what, const search::Draft& draft,
                    const sim::ScenarioPlan& plan, const std::filesystem::path& parent) {
  std::error_code failure;
  std::filesystem::create_directories(parent, failure);
  if (failure)
    throw plan::InputError(
        fmt::format("{}: cannot be created: {}", parent.string(), failure.message()));
  const std::string base =
      fmt::format("{}-{:%Y%m%d-%H%M%S}", draft.scenario.name, fmt::localtime(std::time(nullptr)));
  std::string name = base;
  for (int again = 2; std::filesystem::exists(parent / name) ||
                      std::filesystem::exists(parent / (name + ".scenario.json"));
       ++again)
    name = fmt::format("{}-{}", base, again);
  RunRequest request{what, parent / (name + ".scenario.json"), parent / name};
  plan::write_file(request.scenario, search::scenario_text(search::with_boundaries(draft, plan)));
  return request;
}

RunControl::RunControl() {
  timer_.setInterval(look_every);
  QObject::connect(&timer_, &QTimer::timeout, &timer_, [this] { look(); });
  process_.setProcessChannelMode(QProcess::MergedChannels);
  QObject::connect(&process_, &QProcess::readyRead, &process_, [this] { hear(); });
  QObject::connect(&process_, &QProcess::finished, &process_,
                   [this](int code, QProcess::ExitStatus status) { ended(code, status); });
  QObject::connect(&process_, &QProcess::errorOccurred, &process_,
                   [this](QProcess::ProcessError error) {
                     if (error != QProcess::FailedToStart)
                       return;
                     timer_.stop();
                     phase_ = Phase::Failed;
                     last_words_ = program_ + ": cannot be started: " + process_.errorString();
                     tell();
                   });
}

RunControl::~RunControl() {
  observers_.clear();
  process_.disconnect();
  if (process_.state() == QProcess::NotRunning)
    return;
  ::kill(static_cast<pid_t>(process_.processId()), SIGINT);
  if (!process_.waitForFinished(patience)) {
    process_.kill();
    process_.waitForFinished(patience);
  }
}

bool RunControl::is_complete() const {
  return watch_ && !watch_->steps().empty() &&
         watch_->steps().back().step + 1 >= watch_->steps().back().steps;
}

bool RunControl::can_resume() const {
  return !is_running() && !is_complete() && request_ && request_->what == RunRequest::What::Train &&
         std::filesystem::exists(request_->folder / "checkpoints");
}

void RunControl::start(RunRequest request) {
  if (is_running())
    return;
  if (program_.isEmpty())
    program_ = find_pipewright(QCoreApplication::applicationDirPath());
  const bool continues = request.resume && watch_ && request_ && request_->folder == request.folder;
  request_ = std::move(request);
  if (!continues) {
    watch_.emplace(request_->folder);
    words_.clear();
  }
  last_words_.clear();
  if (program_.isEmpty()) {
    phase_ = Phase::Failed;
    last_words_ =
        "pipewright is neither next to this program nor in PATH. Build it with ./dev build.";
    tell();
    return;
  }
  phase_ = Phase::Preparing;
  process_.start(program_, words_of(*request_), QIODevice::ReadOnly);
  timer_.start();
  tell();
}

void RunControl::resume() {
  if (!can_resume())
    return;
  RunRequest again = *request_;
  again.resume = true;
  start(std::move(again));
}

void RunControl::stop() {
  if (process_.state() == QProcess::NotRunning)
    return;
  const auto child = static_cast<pid_t>(process_.processId());
  ::kill(child, phase_ == Phase::Stopping ? SIGTERM : SIGINT);
  phase_ = Phase::Stopping;
  tell();
}

void RunControl::look() {
  if (!watch_ || !watch_->look())
    return;
  if (phase_ == Phase::Preparing && !watch_->steps().empty())
    phase_ = Phase::Training;
  tell();
}

void RunControl::hear() {
  words_ += QString::fromUtf8(process_.readAll());
  if (words_.size() > most_words)
    words_ = words_.right(most_words);
  for (const QString& line : words_.split('\n', Qt::SkipEmptyParts).mid(-40))
    if (!line.trimmed().isEmpty())
      last_words_ = line.trimmed();
  tell();
}

void RunControl::ended(int code, QProcess::ExitStatus status) {
  constexpr int interrupted = 130;
  timer_.stop();
  hear();
  watch_->look();
  const bool stopped = phase_ == Phase::Stopping || code == interrupted;
  phase_ = (status == QProcess::NormalExit && code == 0) || stopped ? Phase::Ended : Phase::Failed;
  if (status == QProcess::CrashExit && !stopped)
    last_words_ = "The training was ended by a signal. " + last_words_;
  tell();
}

}  // namespace pipewright::gui
