// Checkpoint writers that are killed at any instant or run out of disk space: the last complete
// checkpoint remains and is used.

#include <fmt/format.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <optional>
#include <random>
#include <thread>

#include "exec/support/checkpoints.hpp"
#include "exec/support/child.hpp"
#include "pipewright/exec/checkpoint/checkpoint.hpp"
#include "pipewright/exec/checkpoint/checkpoint_writer.hpp"
#include "pipewright/exec/checkpoint/list_checkpoints.hpp"
#include "pipewright/exec/checkpoint/snapshot.hpp"
#include "support/catch.hpp"
#include "support/sanitized.hpp"
#include "support/skip.hpp"
#include "support/temp_folder.hpp"

namespace checkpoint_crash_test {

using namespace pipewright;
using namespace pipewright::exec;
using test::Child;
using test::holds_its_step;
using test::save;
using test::snapshot_of;
using test::TempFolder;
using Clock = std::chrono::steady_clock;
namespace fs = std::filesystem;

void ignore(const std::string&) {}

/// Returns a folder in memory if there is one. Data in the page cache survives a kill, so memory is
/// enough, and it is a hundred times faster.
fs::path fast_folder() {
  const fs::path memory = "/dev/shm";
  return ::access(memory.c_str(), W_OK) == 0 ? memory : fs::temp_directory_path();
}

/// Writes a byte to `descriptor`, then saves step after step, starting after the newest checkpoint.
/// Writes each step to `descriptor` once it is reported as written. Runs until it is killed.
void save_for_ever(const fs::path& folder, int parts, int descriptor) {
  if (::write(descriptor, "", 1) != 1)
    return;
  const auto found = list_checkpoints(folder);
  std::int64_t step = found.empty() ? 1 : open_newest(folder, ignore).training().step + 1;
  const std::string job = new_job_id();
  CheckpointWriter first(folder, {.part = 0, .parts = parts, .job = job, .keep = 2});
  std::optional<CheckpointWriter> second;
  if (parts == 2)
    second.emplace(folder, CheckpointOptions{.part = 1, .parts = parts, .job = job});
  for (;; ++step) {
    first.save(snapshot_of(step, parts == 1 ? std::vector{0, 1} : std::vector{0}));
    if (second)
      second->save(snapshot_of(step, {1}));
    first.wait();
    if (first.written() == step && ::write(descriptor, &step, sizeof(step)) != sizeof(step))
      return;
  }
}

/// Returns the last step that a child has reported, or `before` if it has reported none.
std::int64_t last_reported(const std::string& reports, std::int64_t before) {
  const std::size_t whole = reports.size() / sizeof(before) * sizeof(before);
  if (whole > 0)
    std::memcpy(&before, reports.data() + whole - sizeof(before), sizeof(before));
  return before;
}

/// Returns the shortest of eight saves, because the machine may have other work.
std::chrono::duration<double> shortest_save(const fs::path& folder) {
  CheckpointWriter writer(folder, {});
  std::chrono::duration<double> shortest(1);
  for (int step = 1; step <= 8; ++step) {
    const auto began = Clock::now();
    REQUIRE(save(writer, snapshot_of(step, {0, 1})).empty());
    shortest = std::min<std::chrono::duration<double>>(shortest, Clock::now() - began);
  }
  return shortest;
}

TEST_CASE(
    "Checkpoint: after kills at 200 random moments the newest is complete and not older than "
    "reported",
    "[exec][checkpoint]") {
  const TempFolder folder(fast_folder());
  const std::chrono::duration<double> of_one = shortest_save(folder.path());

  std::mt19937 random(1);
  std::uniform_real_distribution<double> saves(0, 8);
  std::int64_t reported = 8;
  int interrupted = 0;
  const int rounds = test::sanitized ? 50 : 200;
  for (int round = 0; round < rounds; ++round) {
    Child child([&](int descriptor) { save_for_ever(folder.path(), 1 + round % 2, descriptor); });
    child.await_start();
    std::this_thread::sleep_for(of_one * saves(random));
    reported = last_reported(child.kill(), reported);

    bool incomplete = false;
    const Checkpoint newest =
        open_newest(folder.path(), [&](const std::string&) { incomplete = true; });
    INFO("round " << round << ", reported " << reported << ", found " << newest.training().step);
    REQUIRE(newest.training().step >= reported);
    REQUIRE(holds_its_step(newest, 2));
    interrupted += incomplete ? 1 : 0;
  }
  fmt::print("{} of {} kills left an incomplete checkpoint; {} steps were saved\n", interrupted,
             rounds, reported);
  CHECK(interrupted > 0);
}

/// Fills the disk with a large snapshot between two small ones, and describes the result.
std::string fill_disk(const fs::path& folder, const Snapshot& large) {
  std::string told;
  CheckpointWriter writer(folder, {.keep = 3});
  told += save(writer, snapshot_of(1, {0})) + "\n";
  const std::string failure = save(writer, large);
  told += failure.substr(failure.rfind(": ") + 2) + "\n";
  for (const CheckpointInfo& info : list_checkpoints(folder))
    told += fmt::format("{} {}\n", info.folder.filename().string(), info.damage);
  told += save(writer, snapshot_of(3, {0})) + "\n";
  const Checkpoint newest = open_newest(folder, ignore);
  return told + fmt::format("{} {}", newest.training().step, holds_its_step(newest, 1));
}

Snapshot large_snapshot() {
  Snapshot large = snapshot_of(2, {0, 1});
  large.layers[1].parameters[0].value = at::zeros({1 << 18});  // a MiB
  return large;
}

const std::string told_of_full_disk =
    "\n"
    "No space left on device\n"
    "step_00000001 \n"  // the old checkpoint remains, nothing is left of the new one
    "\n"
    "3 true";

/// Moves this process into its own mount namespace. A process that is not root becomes root in its
/// own user namespace first.
bool leave_common_mounts() {
  if (::unshare(CLONE_NEWNS) == 0)
    return true;
  const auto user = ::geteuid();
  const auto group = ::getegid();
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
    return false;
  std::ofstream("/proc/self/setgroups") << "deny";
  std::ofstream("/proc/self/uid_map") << fmt::format("0 {} 1", user);
  std::ofstream("/proc/self/gid_map") << fmt::format("0 {} 1", group);
  return true;
}

/// Mounts a file system of 512 KiB at `folder` that only this process sees.
bool mount_small_disk(const fs::path& folder) {
  return leave_common_mounts() &&
         ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount("none", folder.c_str(), "tmpfs", 0, "size=512k") == 0;
}

TEST_CASE(
    "Checkpoint: a full disk is reported, the old checkpoint remains and the next save succeeds",
    "[exec][checkpoint]") {
  const TempFolder folder;
  const Snapshot large = large_snapshot();
  const std::string told = test::in_child([&]() -> std::string {
    if (!mount_small_disk(folder.path()))
      return "no disk";
    return fill_disk(folder.path(), large);
  });
  if (told == "no disk")
    test::skip("this process may not mount a small file system");
  CHECK(told == told_of_full_disk);
}

/// Limits all files of this process to `bytes`.
bool limit_files(rlim_t bytes) {
  const rlimit limit{bytes, bytes};
  return ::signal(SIGXFSZ, SIG_IGN) != SIG_ERR && ::setrlimit(RLIMIT_FSIZE, &limit) == 0;
}

TEST_CASE("Checkpoint: a limit on file sizes is reported in the same way", "[exec][checkpoint]") {
  const TempFolder folder;
  const Snapshot large = large_snapshot();
  const std::string told = test::in_child([&]() -> std::string {
    if (!limit_files(1 << 19))
      return "no limit";
    return fill_disk(folder.path(), large);
  });
  CHECK(told == "\nFile too large\nstep_00000001 \n\n3 true");
}

TEST_CASE("Checkpoint: a part whose last file does not fit on the disk can still report it",
          "[exec][checkpoint]") {
  const TempFolder folder;
  Snapshot many = snapshot_of(2, {});
  for (int i = 0; i < 100; ++i)
    many.layers.push_back({.index = i, .name = "relu", .parameters = {}, .optimizer = {}});
  const std::string told = test::in_child([&]() -> std::string {
    if (!limit_files(2000))
      return "no limit";
    CheckpointWriter writer(folder.path(), {.part = 1, .parts = 2, .job = "job"});
    return save(writer, many);
  });
  const fs::path unfinished = folder.path() / "step_00000002.job.tmp";
  CHECK(told ==
        "the checkpoint of step 2 was not written: " + (unfinished / "part_001.json.tmp").string() +
            ": cannot be written: File too large");
  CHECK(test::names_in(unfinished) == std::vector<std::string>{"part_001.json"});
}

TEST_CASE("Checkpoint: a part without room for a single byte does not leave part 0 waiting",
          "[exec][checkpoint]") {
  const TempFolder folder;
  test::in_child([&]() -> std::string {
    if (!limit_files(0))
      return "no limit";
    CheckpointWriter writer(folder.path(), {.part = 1, .parts = 2, .job = "job"});
    return save(writer, snapshot_of(2, {1}));
  });
  CheckpointWriter first(folder.path(), {.part = 0, .parts = 2, .job = "job"});
  CHECK(save(first, snapshot_of(2, {0})) ==
        "the checkpoint of step 2 was not written: part 1 was not written, and there was no room "
        "to say why");
}

}  // namespace checkpoint_crash_test
