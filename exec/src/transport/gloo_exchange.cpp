#include "gloo_exchange.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace pipewright::exec {

GlooExchange::GlooExchange(Job& job)
    : job_(job), mesh_(job, "exchanges"), numbers_(job.watch().store("groups")) {}

std::vector<Tensors> GlooExchange::exchange(const std::vector<int>& group, int rank,
                                            const Tensors& mine) {
  const int tag = tag_of(group);
  const Watch::Waiting waiting(job_.watch(), group,
                               fmt::format("an exchange of ranks {}", fmt::join(group, ", ")));
  const TensorForms forms = forms_of(mine);
  Operations started;
  for (const int member : group) {
    if (member == rank)
      continue;
    post_forms(mesh_, forms, member, tag, started);
    post_tensors(mesh_, mine, member, tag, started);
  }
  std::vector<Tensors> all;
  for (const int member : group) {
    if (member == rank) {
      all.push_back(mine);
      continue;
    }
    const TensorForms theirs = receive_forms(mesh_, member, tag);
    all.push_back(receive_tensors(mesh_, theirs, member, tag));
  }
  for (const GlooMesh::Operation& operation : started)
    mesh_.wait(operation);
  return all;
}

/// The same number on every member, and another one for every group: whoever comes first gives it.
int GlooExchange::tag_of(const std::vector<int>& group) {
  const std::lock_guard lock(mutex_);
  if (const auto known = tags_.find(group); known != tags_.end())
    return known->second;
  const auto tag = std::make_shared<std::string>();
  job_.watch().run_interruptibly(
      "the first exchange of a group",
      [store = numbers_, members = fmt::format("{}", fmt::join(group, ",")), tag] {
        const std::string proposal = std::to_string(store->add("proposals", 1));
        *tag = store->compareSet(members, "", proposal);
      });
  return tags_[group] = std::stoi(*tag);
}

}  // namespace pipewright::exec
