#include "pipewright/engine/models/megatron.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pipewright/plan/error.hpp"

namespace pipewright::engine {
namespace {

using plan::TransformerConfig;
using TensorSizes = std::vector<std::int64_t>;

/// One of our parameters, and the part of a Megatron layer's tensor that it equals.
struct MegatronLink {
  std::string parameter;
  std::vector<std::string> tensors;  // alternatives, without the layer's prefix
  TensorSizes theirs;                // sizes of the tensor, per layer
  TensorSizes ours;
  std::function<at::Tensor(const at::Tensor&)> part{};  // empty: the whole tensor
};

MegatronLink whole_link(std::string parameter, std::vector<std::string> tensors,
                        const TensorSizes& sizes) {
  return {std::move(parameter), std::move(tensors), sizes, sizes};
}

void add_norm(std::vector<MegatronLink>& links, const TransformerConfig& c,
              const std::string& parameter, const std::vector<std::string>& modules,
              std::int64_t width) {
  for (const char* const kind : {"weight", "bias"}) {
    if (std::string(kind) == "bias" && c.norm != plan::NormKind::Layer)
      continue;
    std::vector<std::string> tensors;
    for (const std::string& module : modules)
      tensors.push_back(module + kind);
    links.push_back(whole_link(parameter + "." + kind, tensors, {width}));
  }
}

/// The position of queries, key and value within each group of heads: `heads` of them, starting at
/// `first`.
struct InGroup {
  std::string parameter;
  std::int64_t first = 0, heads = 0;
};

void add_attention(std::vector<MegatronLink>& links, const TransformerConfig& c) {
  const std::int64_t groups = c.kv_heads, channels = c.head_channels, hidden = c.hidden;
  const std::int64_t queries = c.heads / c.kv_heads, rows = groups * (queries + 2) * channels;
  const auto of_group = [=](std::int64_t first, std::int64_t heads) {
    return [=](const at::Tensor& all) {
      TensorSizes split{groups, queries + 2, channels}, joined{groups * heads * channels};
      if (all.dim() == 2)
        split.push_back(all.size(1)), joined.push_back(all.size(1));
      return all.view(split).narrow(1, first, heads).reshape(joined);
    };
  };
  for (const InGroup& one :
       {InGroup{"attention.query", 0, queries}, InGroup{"attention.key", queries, 1},
        InGroup{"attention.value", queries + 1, 1}}) {
    const std::int64_t own = groups * one.heads * channels;
    links.push_back({one.parameter + ".weight",
                     {"self_attention.linear_qkv.weight"},
                     {rows, hidden},
                     {own, hidden},
                     of_group(one.first, one.heads)});
    if (c.query_bias)
      links.push_back({one.parameter + ".bias",
                       {"self_attention.linear_qkv.bias"},
                       {rows},
                       {own},
                       of_group(one.first, one.heads)});
  }
  if (c.head_norms) {
    add_norm(links, c, "attention.query_norm", {"self_attention.q_layernorm."}, channels);
    add_norm(links, c, "attention.key_norm", {"self_attention.k_layernorm."}, channels);
  }
  links.push_back(whole_link("attention.project.weight", {"self_attention.linear_proj.weight"},
                             {hidden, c.heads * std::int64_t{c.value_channels}}));
  if (c.projection_bias)
    links.push_back(
        whole_link("attention.project.bias", {"self_attention.linear_proj.bias"}, {hidden}));
}

void add_feed_forward(std::vector<MegatronLink>& links, const TransformerConfig& c) {
  const std::int64_t width = c.feed_forward, hidden = c.hidden, rows = c.gated ? 2 * width : width;
  const auto rows_from = [width](std::int64_t first) {
    return [=](const at::Tensor& all) { return all.narrow(0, first, width); };
  };
  const auto add = [&](const std::string& parameter, std::int64_t first) {
    links.push_back({parameter + ".weight",
                     {"mlp.linear_fc1.weight"},
                     {rows, hidden},
                     {width, hidden},
                     rows_from(first)});
    if (c.feed_forward_bias)
      links.push_back(
          {parameter + ".bias", {"mlp.linear_fc1.bias"}, {rows}, {width}, rows_from(first)});
  };
  if (c.gated)
    add("feed_forward.gate", 0);
  add("feed_forward.up", c.gated ? width : 0);
  links.push_back(
      whole_link("feed_forward.down.weight", {"mlp.linear_fc2.weight"}, {hidden, width}));
  if (c.feed_forward_bias)
    links.push_back(whole_link("feed_forward.down.bias", {"mlp.linear_fc2.bias"}, {hidden}));
}

std::vector<MegatronLink> links_of_layer(const TransformerConfig& c) {
  std::vector<MegatronLink> links;
  add_norm(links, c, "norm1", {"input_layernorm.", "self_attention.linear_qkv.layer_norm_"},
           c.hidden);
  add_attention(links, c);
  add_norm(links, c, "norm2", {"pre_mlp_layernorm.", "mlp.linear_fc1.layer_norm_"}, c.hidden);
  add_feed_forward(links, c);
  return links;
}

std::vector<MegatronLink> links_of_ends(const TransformerConfig& c, bool first) {
  std::vector<MegatronLink> links;
  const TensorSizes table{c.vocabulary, c.hidden};
  if (first) {
    links.push_back(whole_link("tokens.weight", {"embedding.word_embeddings.weight"}, table));
    if (c.learned_positions)
      links.push_back(whole_link("positions.weight", {"embedding.position_embeddings.weight"},
                                 {c.longest, c.hidden}));
    return links;
  }
  add_norm(links, c, "norm", {"decoder.final_layernorm."}, c.hidden);
  links.push_back(whole_link("logits.weight",
                             {c.tied ? "embedding.word_embeddings.weight" : "output_layer.weight"},
                             table));
  return links;
}

/// The location of a parameter in the checkpoint.
struct PlacedLink {
  MegatronLink link;
  std::string tensor;
  int layer = -1;  // index into a stacked tensor; -1: the tensor is not stacked
};

class MegatronReader {
 public:
  MegatronReader(const exec::DistributedCheckpoint& checkpoint, const TransformerConfig& config)
      : checkpoint_(checkpoint), config_(config) {
    add("embedding.", links_of_ends(config, /*first=*/true), -1);
    for (int layer = 0; layer < config.layers; ++layer)
      add(fmt::format("layer{}.", layer), links_of_layer(config), layer);
    add("head.", links_of_ends(config, /*first=*/false), -1);
    if (!faults_.empty())
      throw plan::InputError(fmt::format("{}: not a checkpoint of this model\n{}",
                                         checkpoint.folder().string(),
                                         plan::listed_lines(faults_)));
  }

  const std::map<std::string, PlacedLink>& places() const { return places_; }

 private:
  void add(const std::string& ours, std::vector<MegatronLink> links, int layer) {
    for (MegatronLink& link : links) {
      const std::string name = ours + link.parameter;
      if (auto place = find(link, layer))
        places_.emplace(name, PlacedLink{std::move(link), std::move(place->first), place->second});
    }
  }

  /// Returns the tensor and the layer's index in it, or nothing after recording a fault if none
  /// matches.
  std::optional<std::pair<std::string, int>> find(const MegatronLink& link, int layer) {
    for (const std::string& name : link.tensors) {
      if (layer < 0) {
        if (has(name, link.theirs, /*may_be_longer=*/true))
          return std::pair(name, -1);
        continue;
      }
      TensorSizes stacked = link.theirs;
      stacked.insert(stacked.begin(), config_.layers);
      if (has("decoder.layers." + name, stacked))
        return std::pair("decoder.layers." + name, layer);
      const std::string own = fmt::format("decoder.layers.{}.{}", layer, name);
      if (has(own, link.theirs))
        return std::pair(own, -1);
    }
    note(fmt::format("no tensor '{}{}'", layer < 0 ? "" : "decoder.layers.",
                     fmt::join(link.tensors, "' or '")));
    return {};
  }

  /// Records a fault, once for all layers.
  void note(std::string fault) {
    if (std::find(faults_.begin(), faults_.end(), fault) == faults_.end())
      faults_.push_back(std::move(fault));
  }

  /// Returns true if the tensor exists, and records a fault if its sizes differ. A vocabulary may
  /// be padded.
  bool has(const std::string& name, const TensorSizes& wanted, bool may_be_longer = false) {
    const auto found = checkpoint_.tensors().find(name);
    if (found == checkpoint_.tensors().end())
      return false;
    TensorSizes sizes = found->second.sizes;
    if (may_be_longer && sizes.size() == wanted.size() && sizes[0] > wanted[0])
      sizes[0] = wanted[0];
    if (sizes != wanted)
      note(fmt::format("'{}' is [{}], the model has [{}]", name,
                       fmt::join(found->second.sizes, ", "), fmt::join(wanted, ", ")));
    return true;
  }

  const exec::DistributedCheckpoint& checkpoint_;
  const TransformerConfig& config_;
  std::map<std::string, PlacedLink> places_;
  std::vector<std::string> faults_;
};

at::Tensor read_placed(const exec::DistributedCheckpoint& checkpoint, const PlacedLink& place) {
  TensorSizes begin(place.link.theirs.size(), 0), sizes = place.link.theirs;
  if (place.layer >= 0) {
    begin.insert(begin.begin(), place.layer);
    sizes.insert(sizes.begin(), 1);
  }
  const at::Tensor all = checkpoint.read(place.tensor, begin, sizes).view(place.link.theirs);
  return place.link.part ? place.link.part(all) : all;
}

}  // namespace

exec::NamedWeights megatron_weights(const exec::DistributedCheckpoint& checkpoint,
                                    const plan::TransformerConfig& config) {
  if (config.is_latent() || config.has_mixture())
    throw plan::InputError(fmt::format(
        "{}: weights of mixtures and of latent attention are not read from Megatron's checkpoints",
        checkpoint.folder().string()));
  const MegatronReader reader(checkpoint, config);
  exec::NamedWeights weights{.where = checkpoint.folder().string()};
  for (const auto& [name, place] : reader.places())
    weights.sizes[name] = place.link.ours;
  weights.read = [checkpoint, places = reader.places()](const std::string& name) {
    return read_placed(checkpoint, places.at(name));
  };
  return weights;
}

}  // namespace pipewright::engine
