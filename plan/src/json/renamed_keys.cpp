#include "renamed_keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <mutex>
#include <set>

namespace pipewright::plan {
namespace {

/// Previous names of keys, and their current names.
const std::map<std::string, std::string>& new_names() {
  static const std::map<std::string, std::string> names{
      // cluster: links
      {"sum_bandwidth_per_s", "collective_bandwidth_per_s"},
      {"sum_latency_s", "collective_latency_s"},
      {"sum_segments", "collective_segments"},
      {"sum_overhead_s", "collective_overhead_s"},
      {"sum_overhead_bandwidth_per_s", "collective_overhead_bandwidth_per_s"},
      {"sum_overhead_segments", "collective_overhead_segments"},
      {"shard_bandwidth_per_s", "tensor_parallel_bandwidth_per_s"},
      {"shard_latency_s", "tensor_parallel_latency_s"},
      {"shard_segments", "tensor_parallel_segments"},
      {"shard_overlap", "tensor_parallel_overlap"},
      // cluster: constants of a machine
      {"exposed_sums", "exposed_all_reduce"},
      {"narrow_efficiency", "low_precision_efficiency"},
      {"narrow_heads_launch_s", "small_heads_launch_s"},
      {"odd_scores_launch_s", "unfused_softmax_launch_s"},
      {"odd_vocabulary", "odd_vocabulary_slowdown"},
      {"exchange_efficiency", "all_to_all_efficiency"},
      {"hop_efficiency", "transfer_efficiency"},
      {"uplink_waiting", "uplink_contention"},
      {"bulk_reduction", "large_reduction_efficiency"},
      // costs
      {"tensor_sums", "tensor_all_reduces"},
      {"expert_exchanges", "expert_all_to_alls"},
      {"context_gathers", "context_all_gathers"},
      {"alike", "identical_layers"},
      {"unclaimed", "between_actions"},
      {"strays", "unattributed"},
      // scenario
      {"hand_over", "local_transfer"},
      {"longest", "max_sequence"},
      {"products", "product_precision"},
      {"predictions", "mtp_modules"},
      {"rotary_share", "rotary_fraction"},
      {"rotary_neighbours", "rotary_interleaved"},
      {"rotary_longest", "rotary_original_length"},
      {"rotary_longs", "rotary_long_factors"},
      {"rotary_shorts", "rotary_short_factors"}};
  return names;
}

}  // namespace

bool may_have_old_keys(const Json& root) {
  const auto format = root.is_object() ? root.find("format") : root.end();
  return format != root.end() && format->is_string() &&
         format->get_ref<const std::string&>().starts_with("pipewright/");
}

std::string current_key(const std::string& key) {
  const auto renamed = new_names().find(key);
  return renamed == new_names().end() ? key : renamed->second;
}

std::vector<std::string> rename_old_keys(Json& value) {
  std::vector<std::string> renamed;
  const auto add = [&](std::string line) {
    if (std::ranges::find(renamed, line) == renamed.end())
      renamed.push_back(std::move(line));
  };
  const auto collect = [&](Json& child) { std::ranges::for_each(rename_old_keys(child), add); };
  if (value.is_array())
    for (Json& element : value)
      collect(element);
  if (!value.is_object())
    return renamed;
  bool has_old_keys = false;
  for (auto& item : value.items()) {
    collect(item.value());
    if (!new_names().contains(item.key()))
      continue;
    has_old_keys = true;
    add(fmt::format("\"{}\" is now \"{}\"", item.key(), current_key(item.key())));
  }
  if (!has_old_keys)
    return renamed;
  Json current = Json::object();  // in the same order
  for (auto& item : value.items())
    current[current_key(item.key())] = std::move(item.value());
  value = std::move(current);
  return renamed;
}

void report_old_keys(const std::string& file, const std::vector<std::string>& renamed) {
  static std::mutex lock;
  static std::set<std::string> reported;
  const std::lock_guard guard(lock);
  if (!renamed.empty() && reported.insert(file).second)
    std::clog << fmt::format(
        "{}: old names of keys: {}. Rename them; the next version no longer reads them.\n", file,
        fmt::join(renamed, ", "));
}

}  // namespace pipewright::plan
