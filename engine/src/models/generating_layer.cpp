#include "pipewright/engine/models/generating_layer.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "pipewright/plan/error.hpp"

namespace pipewright::engine {

KvCache::KeysAndValues KvCache::with(std::size_t group, const KeysAndValues& next) {
  if (groups_.size() <= group)
    groups_.resize(group + 1);
  KeysAndValues& kept = groups_[group];
  const auto put = [&](at::Tensor& all, const at::Tensor& part) {
    if (!all.defined()) {
      auto sizes = part.sizes().vec();
      sizes[2] = room_;
      all = at::empty(sizes, part.options());
    }
    all.narrow(2, tokens_, part.size(2)).copy_(part);
    return all.narrow(2, 0, tokens_ + part.size(2));
  };
  const at::Tensor keys = put(kept.keys, next.keys);
  return {keys, put(kept.values, next.values)};
}

at::Tensor next_places(const at::Tensor& next, const KvCache& memory) {
  return at::arange(memory.tokens(), memory.tokens() + next.size(1),
                    next.options().dtype(at::kLong))
      .unsqueeze(0);
}

void require_positions(const char* field, std::int64_t positions, std::int64_t tokens) {
  if (tokens > positions)
    throw plan::InputError(
        fmt::format("{}: there are {} learned positions, but a sequence would grow to {} tokens",
                    field, positions, tokens));
}

}  // namespace pipewright::engine
