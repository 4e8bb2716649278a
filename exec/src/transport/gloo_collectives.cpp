#include "gloo_collectives.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "letter.hpp"

namespace pipewright::exec {

GlooCollectives::GlooCollectives(Job& job)
    // The members of a collective send to each other at the same time. A thread that takes what has
    // come and interrupts the own sending spins for a lock until the kernel's next tick (4 ms).
    : job_(job),
      mesh_(job, "collectives", GlooMesh::Arrivals::Wait),
      numbers_(job.watch().store("groups")) {}

std::vector<Tensors> GlooCollectives::all_to_all(const std::vector<int>& group, int rank,
                                                 const std::vector<Tensors>& parts) {
  const int tag = tag_of(group);
  const Watch::Waiting waiting(job_.watch(), group,
                               fmt::format("a collective of ranks {}", fmt::join(group, ", ")));
  std::vector<AwaitedLetter> awaited;
  for (const int member : group)
    awaited.push_back(member == rank ? AwaitedLetter()
                                     : await_letter(mesh_, least_room, member, tag));
  Operations started;
  for (std::size_t m = 0; m < group.size(); ++m)
    if (group[m] != rank)
      post_letter(mesh_, parts[m], /*note=*/0, least_room, group[m], tag, started);
  std::vector<Tensors> all;
  for (std::size_t m = 0; m < group.size(); ++m)
    all.push_back(group[m] == rank ? parts[m] : open(mesh_, awaited[m], group[m], tag).tensors);
  for (const GlooMesh::Operation& operation : started)
    mesh_.wait(operation);
  return all;
}

/// The same number on every member, and another one for every group: whoever comes first gives it.
int GlooCollectives::tag_of(const std::vector<int>& group) {
  const std::lock_guard lock(mutex_);
  if (const auto known = tags_.find(group); known != tags_.end())
    return known->second;
  const auto tag = std::make_shared<std::string>();
  job_.watch().run_interruptibly(
      "the first collective of a group",
      [store = numbers_, members = fmt::format("{}", fmt::join(group, ",")), tag] {
        const std::string proposal = std::to_string(store->add("proposals", 1));
        *tag = store->compareSet(members, "", proposal);
      });
  return tags_[group] = std::stoi(*tag);
}

}  // namespace pipewright::exec
