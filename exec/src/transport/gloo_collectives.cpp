#include "gloo_collectives.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

namespace pipewright::exec {

GlooCollectives::GlooCollectives(Job& job)
    // The members of a collective send to each other at the same time. A Gloo thread that handles
    // an arrival and interrupts this rank's own sending spins for a lock until the kernel's next
    // tick (4 ms).
    : job_(job),
      mesh_(job, "collectives", GlooMesh::Arrivals::Wait),
      numbers_(job.watch().store("groups")) {}

std::vector<Tensors> GlooCollectives::all_to_all(const std::vector<int>& group, int rank,
                                                 const std::vector<Tensors>& parts, Lane lane) {
  const int tag = tag_of({lane, group});
  const Watch::Waiting waiting(
      job_.watch(), group,
      fmt::format("a collective of {} {}",
                  lane == Lane::Compute ? "the tensor-parallel ranks" : "ranks",
                  fmt::join(group, ", ")));
  std::vector<AwaitedMessage> awaited(group.size());
  std::vector<at::Tensor> rests(group.size());
  std::vector<BegunMessage> begun(group.size());
  Operations started;
  const auto for_each_other = [&](const auto& work) {
    for (std::size_t m = 0; m < group.size(); ++m)
      if (group[m] != rank)
        work(m, group[m]);
  };
  // Messages within a tensor-parallel group repeat their sizes, and ranks wait for them. In the
  // background of compute, a sum alternates with an empty message, so sizes do not repeat.
  const auto room = [&](const Room& of_last) {
    return lane == Lane::Compute ? of_last.now() : least_room;
  };
  std::vector<Rooms*> rooms(group.size());
  for_each_other([&](std::size_t m, int member) {
    rooms[m] = &rooms_of(tag, member);
    awaited[m] = await_message(mesh_, room(rooms[m]->from), member, tag);
  });
  for_each_other([&](std::size_t m, int member) {
    rests[m] =
        post_what_fits(mesh_, parts[m], /*note=*/0, room(rooms[m]->to), member, tag, started);
    rooms[m]->to.note(forms_of(parts[m]));
  });
  // Posts the receives of the peers' large messages before sending its own: Gloo's notice that a
  // peer may send uses the same connection, and behind a large message it would make one direction
  // wait for the other.
  for_each_other([&](std::size_t m, int member) {
    begun[m] = begin_to_open(mesh_, awaited[m], member, tag);
    if (rests[m].defined())
      started.push_back(mesh_.send(rests[m], member, tag));
  });
  std::vector<Tensors> all(parts);
  for_each_other([&](std::size_t m, int) {
    ReceivedMessage received = open(mesh_, begun[m]);
    rooms[m]->from.note(received.forms);
    all[m] = std::move(received.tensors);
  });
  for (const GlooMesh::Operation& operation : started)
    mesh_.wait(operation);
  return all;
}

GlooCollectives::Rooms& GlooCollectives::rooms_of(int tag, int member) {
  const std::lock_guard lock(mutex_);
  return rooms_[{tag, member}];
}

/// Returns a tag that is the same on all members and different for each group. The first member
/// that asks chooses it.
int GlooCollectives::tag_of(const Group& group) {
  const std::lock_guard lock(mutex_);
  if (const auto known = tags_.find(group); known != tags_.end())
    return known->second;
  const auto tag = std::make_shared<std::string>();
  job_.watch().run_interruptibly(
      "the first collective of a group",
      [store = numbers_,
       members = fmt::format("{}{}", group.first == Lane::Compute ? "shards " : "",
                             fmt::join(group.second, ",")),
       tag] {
        const std::string proposal = std::to_string(store->add("proposals", 1));
        *tag = store->compareSet(members, "", proposal);
      });
  return tags_[group] = std::stoi(*tag);
}

}  // namespace pipewright::exec
