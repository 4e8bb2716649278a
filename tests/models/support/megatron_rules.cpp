#include "megatron_rules.hpp"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <regex>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/model/layer_pattern.hpp"
#include "pipewright/plan/partitioners/layout.hpp"

namespace megatron_rules {
namespace {

bool is_whole(const std::string& text) {
  return !text.empty() &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c); });
}

int replicas_of(const Arguments& a, int gpus) {
  return gpus / (a.number("tensor-model-parallel-size", 1) * a.number("context-parallel-size", 1) *
                 a.number("pipeline-model-parallel-size", 1));
}

int microbatches_of(const Arguments& a, int gpus) {
  return a.number("global-batch-size", 1) / a.number("micro-batch-size", 1) / replicas_of(a, gpus);
}

bool is_list(const Arguments& a, const std::string& option) {
  if (!a.has(option))
    return true;
  try {
    pipewright::plan::layer_pattern(a.text(option), a.number("num-layers", 0));
    return true;
  } catch (const pipewright::plan::InputError&) {
    return false;
  }
}

/// The rules of PipelineParallelLayerLayout.validate_layer_layout.
bool is_valid_layout(const Arguments& a) {
  const std::vector<std::string> stages = a.layout();
  if (stages.empty())
    return true;
  const std::string all = std::accumulate(stages.begin(), stages.end(), std::string());
  const auto count = [](const std::string& letters, char letter) {
    return static_cast<int>(std::ranges::count(letters, letter));
  };
  const int predictions = a.number("mtp-num-layers", 0);
  bool holds = !all.empty() && all.front() == 'E' && all.back() == 'L' && count(all, 'E') == 1 &&
               count(all, 'L') == 1 && count(all, 't') == a.number("num-layers", 0) &&
               count(all, 'm') == predictions;
  if (const std::size_t first = all.find('m'); first != all.npos)
    holds = holds && all.find('t', first) == all.npos;
  const int ranks = a.number("pipeline-model-parallel-size", 1);
  for (std::size_t stage = 0; stage < stages.size(); ++stage)
    if (const int here = count(stages[stage], 'm'); here > 0)
      holds =
          holds && here == predictions && stage + static_cast<std::size_t>(ranks) >= stages.size();
  return holds;
}

bool divides_layers(const Arguments& a) {
  if (a.has("pipeline-model-parallel-layout"))
    return true;
  const int ranks = a.number("pipeline-model-parallel-size", 1), layers = a.number("num-layers", 0);
  return layers % ranks == 0 &&
         layers / ranks % a.number("num-layers-per-virtual-pipeline-stage", 1) == 0;
}

bool divides_heads(const Arguments& a) {
  const int tensor = a.number("tensor-model-parallel-size", 1),
            heads = a.number("num-attention-heads", 1);
  const int groups = a.has("group-query-attention") ? a.number("num-query-groups", 1) : heads;
  return heads % tensor == 0 && (groups % tensor == 0 || tensor % groups == 0);
}

bool has_valid_groups(const Arguments& a) {
  const int chosen = a.number("moe-router-group-topk", 0);
  const int groups = a.number("moe-router-num-groups", 0), experts = a.number("num-experts", 0);
  return chosen == 0 || (groups > 0 && experts % groups == 0 && chosen <= groups);
}

bool has_valid_round(const Arguments& a, int gpus) {
  if (a.chunks() == 1 || !a.has("global-batch-size"))
    return true;
  const int ranks = a.number("pipeline-model-parallel-size", 1);
  const int group = a.number("microbatch-group-size-per-virtual-pipeline-stage", ranks);
  const int microbatches = microbatches_of(a, gpus), rest = microbatches % group;
  return group >= ranks && group <= microbatches && (rest == 0 || rest >= ranks);
}

bool recomputes(const Arguments& a) {
  const std::string kind = a.text("recompute-granularity");
  if (kind == "full")
    return a.has("recompute-method") && a.has("recompute-num-layers");
  return !a.has("recompute-method") && !a.has("recompute-num-layers");
}

bool has_positions_for_predictions(const Arguments& a) {
  const std::string kind = a.text("position-embedding-type", "learned_absolute");
  return a.number("mtp-num-layers", 0) == 0 || kind == "rope" || kind == "none";
}

bool weighs_one_expert(const Arguments& a) {
  return a.number("num-experts", 0) == 0 || a.number("moe-router-topk", 2) > 1 ||
         a.text("moe-router-score-function", "softmax") != "softmax" ||
         a.has("moe-router-pre-softmax");
}

bool has_fused_latent_rope(const Arguments& a) {
  return !a.has("multi-latent-attention") || a.has("no-rope-fusion") ||
         a.text("rope-type", "yarn") == "yarn";
}

bool divides_expert_ranks(const Arguments& a, int gpus) {
  return gpus %
             (a.number("expert-tensor-parallel-size", a.number("tensor-model-parallel-size", 1)) *
              a.number("expert-model-parallel-size", 1) *
              a.number("pipeline-model-parallel-size", 1)) ==
         0;
}

}  // namespace

Arguments::Arguments(const std::string& text) {
  static const std::regex word("'[^']*'|[^ \n]+");
  std::string option;
  for (std::sregex_iterator at(text.begin(), text.end(), word), end; at != end; ++at) {
    std::string found = at->str();
    std::erase(found, '\'');
    if (found.starts_with("--"))
      values[option = found.substr(2)];
    else
      values[option] = found;
  }
}

std::string Arguments::text(const std::string& option, const std::string& fallback) const {
  const auto found = values.find(option);
  return found == values.end() ? fallback : found->second;
}

int Arguments::number(const std::string& option, int fallback) const {
  return has(option) ? std::stoi(text(option)) : fallback;
}

std::vector<std::string> Arguments::layout() const {
  if (!has("pipeline-model-parallel-layout"))
    return {};
  return pipewright::plan::parse_layout(text("pipeline-model-parallel-layout")).stages;
}

int Arguments::chunks() const {
  const int ranks = number("pipeline-model-parallel-size", 1);
  if (has("pipeline-model-parallel-layout"))
    return static_cast<int>(layout().size()) / ranks;
  const int layers = std::max(1, number("num-layers", 1) / ranks);
  return layers / number("num-layers-per-virtual-pipeline-stage", layers);
}

const std::vector<Rule>& rules() {
  using A = const Arguments&;
  static const std::vector<Rule> all{
      // megatron/training/arguments.py: the parser
      {"argparse: int", "--rotary-base 1e6",
       [](A a, int) { return is_whole(a.text("rotary-base", "1")); }},
      {"argparse: int", "--rotary-seq-len-interpolation-factor 2.5",
       [](A a, int) { return is_whole(a.text("rotary-seq-len-interpolation-factor", "1")); }},
      {"tuple_type", "--window-size 4095",
       [](A a, int) {
         return std::regex_match(a.text("window-size", "1,0"), std::regex("-?\\d+,-?\\d+"));
       }},
      {"choices", "--position-embedding-type alibi",
       [](A a, int) {
         return std::regex_match(a.text("position-embedding-type", "rope"),
                                 std::regex("learned_absolute|rope|yarn|mrope|relative|none"));
       }},
      {"choices", "--optimizer adamw",
       [](A a, int) {
         return std::regex_match(a.text("optimizer", "adam"),
                                 std::regex("adam|sgd|muon|dist_muon|lion|soap|adaptive_muon"));
       }},
      // … and validate_args
      {"total_model_size",
       "--tensor-model-parallel-size 5 --num-attention-heads 5 --expert-tensor-parallel-size 1",
       [](A a, int gpus) {
         return gpus % (a.number("tensor-model-parallel-size", 1) *
                        a.number("context-parallel-size", 1) *
                        a.number("pipeline-model-parallel-size", 1)) ==
                0;
       }},
      {"get_num_microbatches", "--global-batch-size 7 --micro-batch-size 2",
       [](A a, int gpus) {
         return !a.has("global-batch-size") ||
                a.number("global-batch-size", 1) %
                        (a.number("micro-batch-size", 1) * replicas_of(a, gpus)) ==
                    0;
       }},
      {"MTP validation", "--mtp-num-layers 1",
       [](A a, int) { return has_positions_for_predictions(a); }},
      {"uneven virtual pipeline",
       "--num-layers 2 --pipeline-model-parallel-size 2 --pipeline-model-parallel-layout Et|tL "
       "--num-layers-per-virtual-pipeline-stage 1",
       [](A a, int) {
         return !a.has("pipeline-model-parallel-layout") ||
                !a.has("num-layers-per-virtual-pipeline-stage");
       }},
      {"layout stages",
       "--num-layers 2 --pipeline-model-parallel-size 2 "
       "--pipeline-model-parallel-layout Et|t|L",
       [](A a, int) {
         return a.layout().size() %
                    static_cast<std::size_t>(a.number("pipeline-model-parallel-size", 1)) ==
                0;
       }},
      {"layers of ranks", "--num-layers 7 --pipeline-model-parallel-size 2",
       [](A a, int) { return divides_layers(a); }},
      {"interleaved ranks", "--num-layers 4 --num-layers-per-virtual-pipeline-stage 2",
       [](A a, int) { return a.chunks() == 1 || a.number("pipeline-model-parallel-size", 1) > 1; }},
      {"fp8_param_gather", "--fp8-format hybrid --fp8-param-gather",
       [](A a, int) { return !a.has("fp8-param-gather") || a.has("use-distributed-optimizer"); }},
      {"fp4 and fp8", "--fp8-format hybrid --fp4-format e2m1",
       [](A a, int) { return !a.has("fp8-format") || !a.has("fp4-format"); }},
      {"bf16 and fp16", "--bf16 --fp16", [](A a, int) { return !a.has("bf16") || !a.has("fp16"); }},
      {"kv_channels", "--hidden-size 10 --num-attention-heads 3",
       [](A a, int) {
         return a.has("kv-channels") || !a.has("hidden-size") ||
                a.number("hidden-size", 1) % a.number("num-attention-heads", 1) == 0;
       }},
      {"seq_length", "--seq-length 6 --max-position-embeddings 6 --context-parallel-size 2",
       [](A a, int) {
         const int context = a.number("context-parallel-size", 1);
         return context == 1 || a.number("seq-length", 0) % (2 * context) == 0;
       }},
      {"max_position_embeddings", "--seq-length 6 --max-position-embeddings 5",
       [](A a, int) {
         return a.number("max-position-embeddings", 0) >= a.number("seq-length", 0);
       }},
      {"expert parallelism", "--expert-model-parallel-size 2 --num-experts 3",
       [](A a, int) {
         const int expert = a.number("expert-model-parallel-size", 1);
         return expert == 1 || (a.has("num-experts") && a.number("num-experts", 0) % expert == 0);
       }},
      {"group_query_attention", "--multi-latent-attention --group-query-attention",
       [](A a, int) {
         return !a.has("multi-latent-attention") || !a.has("group-query-attention");
       }},
      // megatron/core/transformer/transformer_config.py
      {"num_attention_heads", "--num-attention-heads 6 --tensor-model-parallel-size 4",
       [](A a, int) { return divides_heads(a); }},
      {"moe_ffn_hidden_size", "--moe-ffn-hidden-size 8",
       [](A a, int) { return !a.has("moe-ffn-hidden-size") || a.has("num-experts"); }},
      {"moe_layer_freq", "--num-experts 2 --num-layers 3 --moe-layer-freq ([0]*1+[1]*3)",
       [](A a, int) { return is_list(a, "moe-layer-freq"); }},
      {"window_attn_skip_freq", "--num-layers 3 --window-attn-skip-freq ([0]*1+[1]*3)",
       [](A a, int) { return is_list(a, "window-attn-skip-freq"); }},
      {"add_bias_linear",
       "--num-experts 2 --tensor-model-parallel-size 2 --num-attention-heads 2 --sequence-parallel",
       [](A a, int) {
         return !a.has("num-experts") || a.has("disable-bias-linear") ||
                a.number("expert-tensor-parallel-size",
                         a.number("tensor-model-parallel-size", 1)) == 1;
       }},
      {"moe_router_enable_expert_bias", "--num-experts 2 --moe-router-enable-expert-bias",
       [](A a, int) {
         return !a.has("moe-router-enable-expert-bias") ||
                a.text("moe-router-score-function") == "sigmoid";
       }},
      {"moe_router_topk", "--num-experts 2 --moe-router-topk 1",
       [](A a, int) { return weighs_one_expert(a); }},
      {"moe_router_group_topk",
       "--num-experts 6 --moe-router-num-groups 2 --moe-router-group-topk 3",
       [](A a, int) { return has_valid_groups(a); }},
      {"recompute_granularity", "--recompute-granularity full",
       [](A a, int) { return recomputes(a); }},
      {"rotary_interleaved", "--multi-latent-attention --rotary-interleaved",
       [](A a, int) { return !a.has("multi-latent-attention") || !a.has("rotary-interleaved"); }},
      {"apply_rope_fusion", "--multi-latent-attention --rope-type rope",
       [](A a, int) { return has_fused_latent_rope(a); }},
      {"rope_type", "--rope-type yarn",
       [](A a, int) {
         return a.has("multi-latent-attention") || a.text("rope-type", "rope") == "rope";
       }},
      // pipeline_parallel_layer_layout.py
      {"validate_layer_layout",
       "--num-layers 2 --mtp-num-layers 1 --position-embedding-type rope "
       "--pipeline-model-parallel-size 2 "
       "--pipeline-model-parallel-layout Ett|L",
       [](A a, int) { return is_valid_layout(a); }},
      // moe/moe_layer.py, parallel_state.py and pipeline_parallel/schedules.py
      {"MoELayer.forward",
       "--num-experts 2 --tensor-model-parallel-size 2 --num-attention-heads 2 "
       "--disable-bias-linear",
       [](A a, int) {
         return !a.has("num-experts") || a.number("tensor-model-parallel-size", 1) == 1 ||
                a.has("sequence-parallel");
       }},
      {"initialize_model_parallel", "--num-experts 32 --expert-model-parallel-size 32",
       [](A a, int gpus) { return divides_expert_ranks(a, gpus); }},
      {"microbatch_group_size_per_vp_stage",
       "--num-layers 8 --pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 2 "
       "--global-batch-size 24 --microbatch-group-size-per-virtual-pipeline-stage 1",
       [](A a, int gpus) { return has_valid_round(a, gpus); }}};
  return all;
}

}  // namespace megatron_rules
