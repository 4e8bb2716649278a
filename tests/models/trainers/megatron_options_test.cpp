#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "pipewright/models/measured/megatron_words.hpp"
#include "pipewright/models/trainers/as_it_is.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/split.hpp"
#include "support/catch.hpp"

namespace megatron_options_test {

using namespace pipewright::plan;
using namespace pipewright::models;

std::vector<std::string> lines_of(const std::string& name) {
  std::ifstream file(PIPEWRIGHT_TEST_DATA_DIR "/trainers/" + name);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);)
    lines.push_back(line);
  REQUIRE_FALSE(lines.empty());
  return lines;
}

/// An option of Megatron-LM's parser. `kind`: flag, int, float, text, or its choices with |
/// between.
struct ParserOption {
  std::string name, kind;
};

std::vector<ParserOption> parser_options() {
  std::vector<ParserOption> options;
  for (const std::string& line : lines_of("megatron-core-0.20.txt")) {
    const auto words = split(line, ' ');
    options.push_back({words.at(0), words.at(1)});
  }
  return options;
}

/// Everything that is computed from arguments: what the readers return, and the messages of those
/// that refuse.
struct Answer {
  DescribedTransformer told{};
  MegatronRun run{};
  std::string refusal{};
  friend bool operator==(const Answer&, const Answer&) = default;
};

Answer answer_of(const std::string& arguments) {
  Answer answer;
  try {
    answer.told = transformer_from_megatron(arguments, "args.sh");
    const MeasuredRun run = run_as_it_is(answer.told, "args.sh", 8, "H100");
    answer.run = megatron_run_of(run);
  } catch (const InputError& error) {
    answer.refusal = error.what();
  }
  answer.told.options.arguments.clear();
  return answer;
}

bool is_named(const std::string& option, const Answer& answer) {
  return answer.refusal.find(option.substr(2)) != std::string::npos ||
         std::ranges::find(answer.told.uncounted, option, &UncountedOption::option) !=
             answer.told.uncounted.end();
}

/// Returns values of the option, at least one of which is not its default.
std::vector<std::string> values_of(const ParserOption& option) {
  static const std::map<std::string, std::vector<std::string>> values{
      {"--hybrid-layer-pattern", {"M*M-"}},
      {"--hybrid-override-pattern", {"M*M-"}},
      {"--mtp-hybrid-override-pattern", {"M"}},
      {"--moe-layer-freq", {"2"}},
      {"--window-size", {"(63,0)"}},
      {"--window-attn-skip-freq", {"2"}},
      {"--pipeline-model-parallel-layout", {"Ettt|tL"}},
      {"--tokenizer-model", {"meta-llama/Llama-3.1-8B"}},
      {"--vocab-file", {"bert-large-cased-vocab.txt"}},
      {"--recompute-modules", {"mlp"}},
      {"--cuda-graph-scope", {"full_iteration"}},
      {"--cuda-graph-modules", {"full_iteration"}}};
  if (const auto found = values.find(option.name); found != values.end())
    return found->second;
  if (option.kind == "flag")
    return {""};
  if (option.kind == "int")
    return {"2", "3", "4", "32", "100"};
  if (option.kind == "float")
    return {"0.5", "2"};
  return option.kind == "text" ? std::vector<std::string>{"x"} : split(option.kind, '|');
}

const std::string sizes =
    "--num-layers 4 --hidden-size 64 --num-attention-heads 4 --seq-length 128 "
    "--pipeline-model-parallel-size 2 ";
const std::string words = sizes + "--vocab-size 100 ";

/// Arguments of runs, in one of which each option that is read has an effect.
const std::vector<std::string>& contexts() {
  static const std::vector<std::string> all{
      words,
      words + "--group-query-attention ",
      words + "--disable-bias-linear ",
      words + "--num-experts 8 ",
      words + "--num-experts 8 --moe-router-num-groups 4 ",
      words + "--num-experts 8 --moe-router-group-topk 1 ",
      words + "--multi-latent-attention ",
      words + "--multi-latent-attention --rotary-scaling-factor 40 ",
      words + "--hybrid-layer-pattern M*|M- ",
      words + "--hybrid-layer-pattern M*M- --mtp-num-layers 1 ",
      words + "--position-embedding-type yarn --rotary-scaling-factor 4 ",
      words + "--use-rope-scaling ",
      words + "--fp16 ",
      words + "--window-size (31,0) ",
      words + "--num-experts 8 --fp8-format hybrid --bf16 ",
      words + "--recompute-granularity full --tensor-model-parallel-size 2 ",
      words + "--cross-entropy-loss-fusion ",
      words + "--cuda-graph-impl transformer_engine ",
      words + "--mtp-num-layers 1 --pipeline-model-parallel-layout Ett|ttmL ",
      sizes,
      sizes + "--tokenizer-type HuggingFaceTokenizer ",
      sizes + "--tokenizer-type BertWordPieceCase ",
      "--num-layers 4 --hidden-size 64 --num-attention-heads 4 --vocab-size 100 "};
  return all;
}

/// Returns true if the option changes the answer of some run, or is named in it.
bool has_effect(const ParserOption& option, const std::vector<Answer>& without) {
  const auto values = values_of(option);
  for (std::size_t c = 0; c < contexts().size(); ++c)
    for (const std::string& value : values) {
      const Answer with = answer_of(contexts()[c] + option.name + " " + value);
      if (is_named(option.name, with) || with != without[c])
        return true;
    }
  return false;
}

TEST_CASE("Every option of Megatron-LM is read, named or known to be irrelevant",
          "[plan][trainers]") {
  const auto irrelevant_lines = lines_of("megatron-irrelevant.txt");
  const std::set<std::string> irrelevant(irrelevant_lines.begin(), irrelevant_lines.end());
  std::vector<Answer> without;
  for (const std::string& context : contexts())
    without.push_back(answer_of(context));
  std::vector<std::string> dropped, read_after_all;
  std::size_t options = 0;
  for (const ParserOption& option : parser_options()) {
    const bool is_irrelevant = irrelevant.contains(option.name);
    const bool counts = has_effect(option, without);
    if (!counts && !is_irrelevant)
      dropped.push_back(option.name);
    if (counts && is_irrelevant)
      read_after_all.push_back(option.name);
    ++options;
  }
  CHECK(options == 876);
  CHECK(dropped == std::vector<std::string>{});
  CHECK(read_after_all == std::vector<std::string>{});
}

TEST_CASE("No option of Megatron-LM is unknown", "[plan][trainers]") {
  for (const ParserOption& option : parser_options()) {
    const Answer answer = answer_of(words + option.name + " " + values_of(option).front());
    for (const UncountedOption& each : answer.told.uncounted) {
      INFO(each.option);
      CHECK(each.reason.find("is unknown") == std::string::npos);
    }
  }
}

}  // namespace megatron_options_test
