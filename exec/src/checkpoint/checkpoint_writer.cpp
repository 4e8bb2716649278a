#include "pipewright/exec/checkpoint/checkpoint_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <random>

#include "collect_parts.hpp"
#include "names.hpp"
#include "pipewright/exec/aborted.hpp"
#include "pipewright/exec/checkpoint/durable_file.hpp"
#include "pipewright/exec/checkpoint/snapshot.hpp"
#include "pipewright/exec/log.hpp"
#include "pipewright/plan/error.hpp"
#include "publish.hpp"
#include "retention.hpp"
#include "write_part.hpp"

namespace pipewright::exec {
namespace {

namespace fs = std::filesystem;

/// Returns true if `job` can be part of a folder's name.
bool is_word(const std::string& job) {
  constexpr const char* allowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
  return !job.empty() && job.find_first_not_of(allowed) == std::string::npos;
}

void require_possible(const CheckpointOptions& options) {
  if (options.parts < 1 || options.part < 0 || options.part >= options.parts)
    throw plan::InputError(
        fmt::format("checkpoints: there is no part {} of {}", options.part, options.parts));
  if (options.keep < 1)
    throw plan::InputError(
        fmt::format("checkpoints: the number to keep is {}, but must be at least 1", options.keep));
  if (!is_word(options.job))
    throw plan::InputError(
        fmt::format("checkpoints: the job \"{}\" must be a word of letters, digits, '-' and '_', "
                    "the same for all parts",
                    options.job));
}

/// Leaves a failure document for part 0, so that it stops waiting at once. If the disk has no room
/// for the reason, the document is an empty file.
void leave_failure(const fs::path& unfinished, const Manifest& failed) {
  const fs::path file = unfinished / part_name(failed.part);
  try {
    write_durably(file, manifest_text(failed));
  } catch (const std::exception&) {
    const std::ofstream empty(file);  // if this fails as well, part 0 times out
  }
}

}  // namespace

std::string new_job_id() {
  std::random_device entropy;
  return fmt::format("{:08x}{:08x}", entropy(), entropy());
}

CheckpointWriter::CheckpointWriter(fs::path folder, CheckpointOptions options)
    : folder_(std::move(folder)), options_(std::move(options)) {
  if (options_.parts == 1 && options_.job.empty())
    options_.job = new_job_id();
  require_possible(options_);
  try {
    fs::create_directories(folder_);
    if (options_.part == 0)
      remove_left_overs(folder_, options_.job, /*step=*/0);
  } catch (const fs::filesystem_error& error) {
    throw plan::InputError(fmt::format("{}: cannot create the folder for checkpoints: {}",
                                       folder_.string(), error.code().message()));
  }
}

CheckpointWriter::~CheckpointWriter() { wait(); }

void CheckpointWriter::save(Snapshot snapshot) {
  wait();
  thread_ = std::thread([this, snapshot = std::move(snapshot)] { write(snapshot); });
}

void CheckpointWriter::wait() {
  if (thread_.joinable())
    thread_.join();
}

std::optional<std::string> CheckpointWriter::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

std::optional<std::int64_t> CheckpointWriter::written() const {
  const std::lock_guard lock(mutex_);
  return written_;
}

void CheckpointWriter::write(const Snapshot& snapshot) {
  const std::int64_t step = snapshot.training.step;
  const fs::path unfinished = folder_ / unfinished_name(step, options_.job);
  bool written = false;
  std::optional<std::string> failure;
  log(LogSubject::Checkpoints, LogLevel::Info, "part {} of {} of step {}: begins to write in {}",
      options_.part, options_.parts, step, unfinished.string());
  try {
    write_to(unfinished, snapshot);
    written = true;
    log(LogSubject::Checkpoints, LogLevel::Info, "part {} of {} of step {}: written", options_.part,
        options_.parts, step);
    if (options_.part == 0)
      remove_older(folder_, options_.job, step, options_.keep);
  } catch (const std::exception& error) {
    if (!written)
      give_up(unfinished, snapshot.training, error.what());
    failure = fmt::format("{} step {} {}: {}", written ? "checkpoints before" : "the checkpoint of",
                          step, written ? "were not removed" : "was not written", error.what());
  }
  {
    const std::lock_guard lock(mutex_);
    failure_ = failure;
    if (written)
      written_ = step;
  }
  if (failure)
    log(LogSubject::Checkpoints, LogLevel::Info, "{}", *failure);
  if (failure && options_.report)
    options_.report(*failure);
}

void CheckpointWriter::write_to(const fs::path& unfinished, const Snapshot& snapshot) {
  if (options_.part == 0)
    remove_left_overs(folder_, options_.job, snapshot.training.step);
  fs::create_directories(unfinished);
  const Manifest own = write_part(unfinished, snapshot, options_);
  if (options_.part == 0)
    publish(folder_, collect_parts(unfinished, own, options_, [this] { return others_are_gone(); }),
            options_.parts);
  else
    write_durably(unfinished / part_name(options_.part), manifest_text(own));
}

bool CheckpointWriter::others_are_gone() const {
  try {
    if (options_.require_going)
      options_.require_going();
  } catch (const Aborted&) {
    return true;
  }
  return abandoned_;
}

void CheckpointWriter::give_up(const fs::path& unfinished, const TrainingState& training,
                               const std::string& why) {
  std::error_code ignored;
  if (options_.part == 0)
    fs::remove_all(unfinished, ignored);
  else
    leave_failure(unfinished, {.job = options_.job,
                               .part = options_.part,
                               .failure = why,
                               .training = training,
                               .layers = {}});
}

}  // namespace pipewright::exec
