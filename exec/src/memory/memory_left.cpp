#include "pipewright/exec/memory/memory_left.hpp"

#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

namespace pipewright::exec {
namespace {

constexpr std::int64_t unknown = std::numeric_limits<std::int64_t>::max();

/// Returns the value of a line such as "VmData:    1234 kB" in a file of /proc, in bytes.
std::optional<std::int64_t> kilobytes_in(const char* file, const std::string& key) {
  std::ifstream lines(file);
  for (std::string word; lines >> word;)
    if (std::int64_t value = 0; word == key && lines >> value)
      return value * 1024;
  return {};
}

/// Reads a file that contains one number; returns nothing for "max".
std::optional<std::int64_t> number_in(const std::filesystem::path& file) {
  std::ifstream text(file);
  std::int64_t value = 0;
  return text >> value ? std::optional(value) : std::nullopt;
}

std::int64_t left_of_limit(int resource, const char* used_key) {
  rlimit limit{};
  if (getrlimit(static_cast<decltype(RLIMIT_AS)>(resource), &limit) != 0 ||
      limit.rlim_cur == RLIM_INFINITY)
    return unknown;
  const auto used = kilobytes_in("/proc/self/status", used_key).value_or(0);
  return std::max<std::int64_t>(0, static_cast<std::int64_t>(limit.rlim_cur) - used);
}

/// Returns the least memory left in a cgroup and the groups that contain it.
std::int64_t left_of_groups(std::filesystem::path group, const std::filesystem::path& root,
                            const char* most, const char* used) {
  std::int64_t left = unknown;
  for (;; group = group.parent_path()) {
    const auto limit = number_in(group / most), taken = number_in(group / used);
    if (limit && taken)
      left = std::min(left, std::max<std::int64_t>(0, *limit - *taken));
    if (group == root || group == group.root_path())
      return left;
  }
}

/// Returns the memory left in this process's cgroups, which /proc/self/cgroup lists:
/// "0::/user.slice" for version 2, "7:memory:/user.slice" for version 1.
std::int64_t left_of_cgroup() {
  const std::filesystem::path root = "/sys/fs/cgroup";
  std::ifstream lines("/proc/self/cgroup");
  std::int64_t left = unknown;
  for (std::string line; std::getline(lines, line);) {
    const auto path_at = line.find(":/");
    if (path_at == std::string::npos)
      continue;
    const std::string below = line.substr(path_at + 2);
    if (line.starts_with("0::"))
      left = std::min(left, left_of_groups(root / below, root, "memory.max", "memory.current"));
    else if (line.find(":memory:") != std::string::npos)
      left = std::min(left, left_of_groups(root / "memory" / below, root / "memory",
                                           "memory.limit_in_bytes", "memory.usage_in_bytes"));
  }
  return left;
}

}  // namespace

plan::Bytes memory_left() {
  return {std::min({left_of_limit(RLIMIT_AS, "VmSize:"), left_of_limit(RLIMIT_DATA, "VmData:"),
                    left_of_cgroup(),
                    kilobytes_in("/proc/meminfo", "MemAvailable:").value_or(unknown)})};
}

void give_memory_back() { malloc_trim(0); }

}  // namespace pipewright::exec
