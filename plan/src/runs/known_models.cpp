#include "known_models.hpp"

#include <algorithm>
#include <cctype>

namespace pipewright::plan {
namespace {

// From the config.json of each on Hugging Face, and Brown et al., arXiv 2005.14165, for GPT-3.
constexpr KnownModel models[] = {
    {"llama2-7b", 32, 4096, 32, 32, 128, 11008, 32000},
    {"llama2-13b", 40, 5120, 40, 40, 128, 13824, 32000},
    {"llama2-70b", 80, 8192, 64, 8, 128, 28672, 32000},
    {"llama3-8b", 32, 4096, 32, 8, 128, 14336, 128256},
    {"llama3-70b", 80, 8192, 64, 8, 128, 28672, 128256},
    {"llama3-405b", 126, 16384, 128, 8, 128, 53248, 128256},
    {"mistral-7b", 32, 4096, 32, 8, 128, 14336, 32000},
    {"gpt3-175b", 96, 12288, 96, 96, 128, 49152, 51200, false},
    {"mixtral-8x7b", 32, 4096, 32, 8, 128, 14336, 32000, true, 8, 2, 14336},
    {"mixtral-8x22b", 56, 6144, 48, 8, 128, 16384, 32000, true, 8, 2, 16384},
    {"deepseekv2", 60, 5120, 128, 128, 128, 12288, 102400, true, 160, 6, 1536, 2, 1, 1536, 512, 64},
    {"deepseekv3", 61, 7168, 128, 128, 128, 18432, 129280, true, 256, 8, 2048, 1, 3, 1536, 512,
     64}};

/// "Llama3 70B" as "llama370b".
std::string bare_name(const std::string& name) {
  std::string letters;
  for (const char c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return letters;
}

}  // namespace

const KnownModel* find_known_model(const std::string& name) {
  const std::string wanted = bare_name(name);
  const auto* const found =
      std::find_if(std::begin(models), std::end(models),
                   [&](const KnownModel& model) { return bare_name(model.name) == wanted; });
  return found == std::end(models) ? nullptr : found;
}

std::vector<std::string> known_model_names() {
  std::vector<std::string> names;
  for (const KnownModel& model : models)
    names.emplace_back(model.name);
  return names;
}

void fill(TrainingRun& run, const KnownModel& model) {
  const auto set = [](int& own, int known) {
    if (own == 0)
      own = known;
  };
  if (run.hidden != 0 && run.hidden != model.hidden)
    return;  // another model of that name
  set(run.layers, model.layers);
  set(run.hidden, model.hidden);
  set(run.heads, model.heads);
  set(run.kv_heads, model.kv_heads);
  set(run.head_channels, model.head_channels);
  set(run.feed_forward, model.feed_forward);
  set(run.vocabulary, model.vocabulary);
  set(run.experts, model.experts);
  set(run.experts_per_token, model.experts_per_token);
  set(run.expert_feed_forward, model.expert_feed_forward);
  set(run.shared_experts, model.shared_experts);
  set(run.dense_layers, model.dense_layers);
  set(run.q_rank, model.q_rank);
  set(run.kv_rank, model.kv_rank);
  set(run.rope_channels, model.rope_channels);
  run.gated = run.gated || model.gated;
  run.attention = AttentionKind::Fused;
}

bool set_known_model(TrainingRun& run, const std::string& name) {
  const KnownModel* const model = find_known_model(name);
  if (model != nullptr) {
    fill(run, *model);
    run.model = model->name;
  }
  return model != nullptr;
}

std::vector<std::string> known_models() { return known_model_names(); }

}  // namespace pipewright::plan
