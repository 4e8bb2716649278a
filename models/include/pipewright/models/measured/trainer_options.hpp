#pragma once

// What a row of a table says of its trainer, Megatron-LM, beside sizes and cut: what the trainer
// keeps in memory and what it does at once follow from these. An empty text or 0: not said.

#include <string>
#include <vector>

namespace pipewright::models {

struct TrainerOptions {
  std::string family{};    // of the model: gpt, moe, bert, t5, hybrid and others
  std::string date{};      // of the trainer's version: 2025-04-28
  std::string platform{};  // where it ran, as its table calls it
  std::string device{};    // the GPU, likewise
  int nodes = 0;
  int repeat = 0;  // which run of a test it is: the second resumes the first one's checkpoint
  std::string test_type{};  // what the test is for

  int padded_vocabulary = 0;  // 0: as usual
  std::string position{};     // learned_absolute, rope, none
  bool bias = false;
  double attention_dropout = 0;
  double hidden_dropout = 0;

  bool overlaps_gather_with_step = false;  // of parameters, and the optimizer's step
  bool late_embedding_gradient = false;    // of its weight, behind the last backward

  std::string precision{};  // as it stands there: bf16, fp16, fp8-hybrid+bf16, …
  std::string fp8_recipe{};
  bool fp8_parameters = false;
  std::string fp8_attention{};
  std::string gradient_dtype{};
  std::string optimizer{};

  std::string recompute_method{};  // uniform or block
  int recompute_layers = 0;
  std::vector<std::string> recompute_modules{};

  std::string attention_backend{};
  std::string implementation{};  // transformer_engine or local
  bool fused_gradient_accumulation = false;
  bool fp32_residual = false;
  std::string cross_entropy_fusion{};  // no, native, te

  bool grouped_products = false;  // of a device's experts
  std::string dispatcher{};       // allgather, alltoall, flex
  std::string cuda_graph{};
  bool deterministic = false;
  std::string arguments{};    // further ones: name=value; name
  std::string environment{};  // NAME=value NAME=value
  std::string memory_rank{};  // whose memory was read: a number, or "last"
  friend bool operator==(const TrainerOptions&, const TrainerOptions&) = default;
};

}  // namespace pipewright::models
