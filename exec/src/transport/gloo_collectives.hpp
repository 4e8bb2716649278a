#pragma once

// Collectives over Gloo.

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "job/watch.hpp"
#include "message.hpp"
#include "pipewright/exec/transport/transport.hpp"
#include "tensor_mail.hpp"

namespace pipewright::exec {

/// Collectives among some ranks of a job, over separate connections: they may overlap with
/// transfers, and collectives of several groups or lanes may overlap with each other.
class GlooCollectives {
 public:
  explicit GlooCollectives(Job& job);

  /// Works as Transport::all_to_all does.
  std::vector<Tensors> all_to_all(const std::vector<int>& group, int rank,
                                  const std::vector<Tensors>& parts, Lane lane);
  plan::Bytes sent() const { return mesh_.sent(); }
  void end(const std::string& why) { mesh_.end(why); }

 private:
  /// The room that the last two messages in one direction would have needed, in bytes. Both ends
  /// know it.
  struct Room {
    std::int64_t last = 0, before = 0;
    std::int64_t now() const { return last == before ? std::max(last, least_room) : least_room; }
    void note(const TensorForms& forms) { before = std::exchange(last, room_for(forms)); }
  };
  struct Rooms {
    Room to, from;
  };
  Rooms& rooms_of(int tag, int member);

  using Group = std::pair<Lane, std::vector<int>>;
  int tag_of(const Group& group);

  Job& job_;
  GlooMesh mesh_;
  Watch::Store numbers_;  // assigns the groups' tags
  std::mutex mutex_;
  std::map<Group, int> tags_;
  std::map<std::pair<int, int>, Rooms> rooms_;  // by tag and member
};

}  // namespace pipewright::exec
