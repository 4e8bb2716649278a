#include "pipewright/plan/scenario/scenario.hpp"

#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/model/alexnet_model.hpp"
#include "pipewright/plan/model/gpt_model.hpp"
#include "pipewright/plan/model/transformer_shape.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/temp_folder.hpp"

namespace scenario_test {

using namespace pipewright::plan;
using pipewright::test::error_of;

/// The smallest valid scenario; each line can be referred to.
const std::string least = R"({
"format": "pipewright/scenario/1", "name": "small",
"model": {"kind": "gpt"},
"data": {"kind": "text", "path": "text.txt"},
"cluster": {"name": "c", "nodes": 1, "devices_per_node": 2, "device": {"name": "cpu"},
  "within_node": {"latency_s": 0, "bandwidth_per_s": 1e12}},
"pipeline": {"ranks": 2, "microbatches": 8, "schedule": "1f1b"},
"training": {"steps": 1, "microbatch_size": 4}
})";

std::string with(const std::string& old_part, const std::string& new_part,
                 std::string text = least) {
  const auto at = text.find(old_part);
  REQUIRE(at != std::string::npos);
  return text.replace(at, old_part.size(), new_part);
}

Scenario read(const std::string& text, const std::string& name = "s.json") {
  return scenario_from_json(JsonDocument::parse(text, name));
}

std::string error_in(const std::string& text) {
  return error_of([&] { read(text); });
}

Scenario unusual() {
  Scenario scenario = read(least);
  scenario.name = "unusual";
  scenario.model =
      GptShape{.blocks = 3, .hidden = 24, .heads = 3, .sequence = 5, .vocabulary = 256};
  scenario.data.evaluation = "/elsewhere/unseen.txt";
  scenario.cluster.nodes = 2;
  scenario.cluster.device.memory = {1'000'000};
  scenario.cluster.between_nodes = {.latency = {0.1 + 0.2}, .bandwidth_per_s = 7, .shared = true};
  scenario.pipeline = {.ranks = 5,
                       .microbatches = 9,
                       .schedule = "gpipe",
                       .partition = "uniform",
                       .communicators = CommunicatorLayout::Rank,
                       .transfers = TransferMode::Rendezvous,
                       .blocking = true,
                       .replicas = 3,
                       .overlap_reductions = false,
                       .local_transfer = TensorTransfer::Copy};
  scenario.cluster.rank_speeds = {1, 0.5, 1.0 / 3, 2, 1};
  scenario.cluster.rank_memory = {0, 1e9, 2e9, 1e9, 5e8};
  scenario.training = {.steps = 2,
                       .microbatch_size = 3,
                       .learning_rate = 1.0 / 3,
                       .warm_up_steps = 1,
                       .decay = Decay::Cosine,
                       .weight_decay = 0,
                       .decayed = Decayed::Matrices,
                       .clip_norm = 1.0 / 3,
                       .gradient_groups = 9,
                       .seed = 0,
                       .optimizer = Optimizer::SgdMomentum,
                       .precision = Precision::Mixed,
                       .zero = 1,
                       .loss_scale = 1.0 / 3,
                       .evaluate_every = 5,
                       .recompute = RecomputeMode::Selective,
                       .microbatch_lengths = {1, 1, 1, 1, 1, 1, 1, 1, 1.0 / 7},
                       .jitter = 0.1};
  scenario.profile = {.warm_up = 0, .least_repeats = 4, .most_repeats = 4, .spread = 1.0 / 7};
  return scenario;
}

TEST_CASE("A scenario reads back as it was written", "[plan][scenario]") {
  CHECK(read(to_json(unusual()).dump(2), "/elsewhere/s.json") == unusual());
  const Scenario alexnet = read(with(R"({"kind": "text")", R"({"kind": "cifar10")",
                                     with(R"("gpt")", R"("alexnet", "image_size": 64)")));
  CHECK(alexnet.model == ModelShape{AlexNetShape{.classes = 10, .image_size = 64}});
  CHECK(read(to_json(alexnet).dump()) == alexnet);
}

TEST_CASE("An evaluation needs its own data", "[plan][scenario]") {
  CHECK(error_in(with("\"steps\"", "\"evaluate_every\": 5, \"steps\"")) ==
        "s.json:8:14: /training/evaluate_every: there is no evaluation data: set data.evaluation, "
        "as data.path is set for training");
}

TEST_CASE("A norm is needed for clipping, and if a scaled loss may overflow", "[plan][scenario]") {
  CHECK_FALSE(needs_gradient_norm({.precision = Precision::Mixed}));
  CHECK(needs_gradient_norm({.precision = Precision::MixedHalf}));
  CHECK(needs_gradient_norm({.loss_scale = 2}));
  CHECK(needs_gradient_norm({.clip_norm = 2}));
}

TEST_CASE("Fields that a scenario omits have their defaults", "[plan][scenario]") {
  const Scenario scenario = read(least);
  CHECK(scenario.model == ModelShape{GptShape{}});
  CHECK(scenario.pipeline == Pipeline{});
  CHECK(scenario.training.seed == Training{}.seed);
  CHECK(scenario.profile == ProfileSettings{});
}

TEST_CASE("Lists by rank and by microbatch have one entry per rank or microbatch",
          "[plan][scenario]") {
  CHECK(error_in(with("\"nodes\"", "\"rank_speeds\": [1, 2, 3], \"nodes\"")) ==
        "s.json:5:26: /cluster/rank_speeds: 3 numbers are given for 2 ranks");
  CHECK(error_in(with("\"nodes\"", "\"rank_memory_bytes\": [1, 2, 3], \"nodes\"")) ==
        "s.json:5:26: /cluster/rank_memory_bytes: 3 numbers are given for 2 ranks");
  CHECK(error_in(with("\"steps\"", "\"microbatch_lengths\": [1], \"steps\"")) ==
        "s.json:8:14: /training/microbatch_lengths: 1 numbers are given for 8 microbatches");
  CHECK(error_in(with("\"steps\"", "\"microbatch_lengths\": [0], \"steps\"")) ==
        "s.json:8:37: /training/microbatch_lengths/0: 0 is not possible: it must be more than 0");
  CHECK(error_in(with("\"steps\"", "\"microbatch_lengths\": [\"a\"], \"steps\"")) ==
        "s.json:8:37: /training/microbatch_lengths/0: a number is needed here, not the text \"a\"");
  CHECK(read(with("\"steps\"", "\"microbatch_lengths\": [], \"steps\"")).training ==
        read(least).training);
}

TEST_CASE("Fields that training does not support are named one by one", "[plan][scenario]") {
  const auto all = {RankTransport::Threads, RankTransport::Gloo, RankTransport::Nccl};
  const Scenario plain = read(least);
  for (const RankTransport carrier : all) {
    CHECK(only_predicted(plain, carrier).empty());
    CHECK_NOTHROW(require_trainable(plain, carrier));
    for (const auto& [field, value] : std::vector<std::pair<std::string, std::string>>{
             {"training.microbatch_lengths", "[1, 1, 1, 1, 1, 1, 1, 2]"},
             {"training.jitter", "0.1"}})
      CHECK(only_predicted(changed(plain, field + "=" + value), carrier) == std::vector{field});
    // Properties of the machine do not affect how it trains.
    CHECK(only_predicted(changed(plain, "cluster.rank_speeds=[1, 2]"), carrier).empty());
    for (const char* trained :
         {"pipeline.replicas=2", "pipeline.tensor=2", "training.optimizer=sgd", "training.zero=1",
          "training.zero=2", "training.zero=3", "training.precision=mixed",
          "training.recompute=full", "training.recompute=selective"})
      CHECK(only_predicted(changed(plain, trained), carrier).empty());
  }
}

TEST_CASE("A transformer's fields that cannot be trained are named", "[plan][scenario]") {
  Scenario scenario = read(least);
  scenario.model = TransformerShape{};
  scenario.data.kind = "tokens";
  CHECK(only_predicted(scenario, RankTransport::Threads).empty());
  for (const auto& [value, field] : std::vector<std::pair<std::string, std::string>>{
           {"model.dropout=true", "model.dropout"},
           {"model.window=100", ""},
           {"model.kv_rank=8", ""},
           {"model.rotary_scaling=long", "model.rotary_short_factors model.rotary_long_factors"},
           {"model.vocabulary_multiple=128", ""},
           {"model.vocabulary_multiple=100", "model.vocabulary_multiple"},
           {"model.attention=scores", "model.attention"},
           {"model.product_precision=float8", "model.product_precision"},
           {"training.fp32_gradients=true", ""}}) {
    CAPTURE(value);
    CHECK(fmt::format("{}",
                      fmt::join(only_predicted(changed(scenario, value), RankTransport::Threads),
                                " ")) == field);
  }
  TransformerShape mixture;
  mixture.config.experts = mixture.config.experts_per_token = 2;
  mixture.config.set_mixture_behind(1);
  scenario.model = mixture;
  CHECK(only_predicted(scenario, RankTransport::Threads) ==
        std::vector<std::string>{"model.expert_feed_forward"});
  mixture.config.expert_feed_forward = 8;
  scenario.model = mixture;
  scenario.pipeline.replicas = scenario.pipeline.expert = 2;
  CHECK(only_predicted(scenario, RankTransport::Threads).empty());
  scenario.pipeline.tensor = 2;
  scenario.training.zero = 3;
  CHECK(only_predicted(scenario, RankTransport::Threads).empty());
}

TEST_CASE("Tied weights under ZeRO 2 and 3 are for prediction only", "[plan][scenario]") {
  Scenario scenario = read(least);
  TransformerShape shape;
  shape.config.tied = true;
  scenario.model = shape;
  scenario.data.kind = "tokens";
  for (const int zero : {0, 1, 2, 3})
    for (const int replicas : {1, 2}) {
      CAPTURE(zero, replicas);
      scenario.training.zero = zero;
      scenario.pipeline.replicas = replicas;
      CHECK(only_predicted(scenario, RankTransport::Threads) ==
            (zero >= 2 && replicas > 1 ? std::vector<std::string>{"training.zero"}
                                       : std::vector<std::string>{}));
    }
}

TEST_CASE("The tensor groups of a transformer must divide its heads", "[plan][scenario]") {
  Scenario scenario = read(least);
  TransformerShape shape;
  shape.config.heads = 8;
  shape.config.kv_heads = 4;
  scenario.model = shape;
  scenario.data.kind = "tokens";
  CHECK(changed(scenario, "training.tensor_groups=4").training.tensor_groups == 4);
  const std::string refused = error_of([&] { changed(scenario, "training.tensor_groups=8"); });
  CHECK(refused.find("/training/tensor_groups: 8 heads, 4 of them of keys and values") !=
        std::string::npos);
  CHECK(refused.find("4 would do") != std::string::npos);
}

TEST_CASE("Communication options can be trained if the transport supports them",
          "[plan][scenario]") {
  const Scenario plain = read(least);
  const auto named = [&](const std::string& change, RankTransport carrier) {
    return fmt::format("{}", fmt::join(only_predicted(changed(plain, change), carrier), " "));
  };
  CHECK(named("pipeline.communicators=pair", RankTransport::Threads) == "pipeline.communicators");
  CHECK(named("pipeline.communicators=pair", RankTransport::Gloo).empty());
  CHECK(named("pipeline.communicators=rank", RankTransport::Gloo) == "pipeline.communicators");
  CHECK(named("pipeline.communicators=rank", RankTransport::Nccl).empty());
  CHECK(named("pipeline.transfers=rendezvous", RankTransport::Threads) == "pipeline.transfers");
  CHECK(named("pipeline.transfers=rendezvous", RankTransport::Gloo) == "pipeline.transfers");
  CHECK(named("pipeline.transfers=rendezvous", RankTransport::Nccl).empty());
  const Scenario waits =
      changed(changed(plain, "pipeline.transfers=rendezvous"), "pipeline.blocking=true");
  CHECK(only_predicted(waits, RankTransport::Threads).empty());
  CHECK(named("pipeline.local_transfer=copy", RankTransport::Threads) == "pipeline.local_transfer");
  CHECK(named("pipeline.local_transfer=copy", RankTransport::Gloo).empty());

  Scenario two = changed(plain, "training.jitter=0.1");
  CHECK(error_of([&] { require_trainable(two, RankTransport::Gloo); }) ==
        "training.jitter is supported in prediction, but not in training by processes over Gloo: "
        "remove it to train, or use `pipewright simulate`");
  two.pipeline.local_transfer = TensorTransfer::Copy;
  CHECK(error_of([&] { require_trainable(two, RankTransport::Threads); }) ==
        "pipeline.local_transfer, training.jitter are supported in prediction, but not in training "
        "by "
        "threads of one process: remove them to train, or use `pipewright simulate`");
}

TEST_CASE("ZeRO shards over the replicas, and only if requested", "[plan][scenario]") {
  Scenario scenario = read(least);
  scenario.pipeline.replicas = 4;
  CHECK(training_memory(scenario) == TrainingMemory{.reads_ahead = true});
  scenario.training.zero = 1;
  CHECK(training_memory(scenario).shards == 4);
  CHECK(training_memory(unusual()) == TrainingMemory{.optimizer = Optimizer::SgdMomentum,
                                                     .precision = Precision::Mixed,
                                                     .recompute = RecomputeMode::Selective,
                                                     .zero = 1,
                                                     .shards = 3,
                                                     .reads_ahead = true});
  CHECK_FALSE(training_memory(changed(read(least), "data.read_ahead=0")).reads_ahead);
}

TEST_CASE("A change sets one field and is checked as if it were in the file", "[plan][scenario]") {
  Scenario more = read(least);
  more.pipeline.ranks = 4;
  CHECK(changed(read(least), "pipeline.ranks=4") == more);
  CHECK_THROWS_AS(changed(read(least), "pipeline.ranks=9"), InputError);
}

TEST_CASE("A relative path starts at the scenario's folder", "[plan][scenario]") {
  CHECK(read(least, "/a/b/s.json").data.path == "/a/b/text.txt");
  CHECK(read(least, "/a/b/s.json").data.evaluation.empty());
  CHECK(read(with("\"text.txt\"", "\"text.txt\", \"evaluation\": \"v.txt\""), "/a/b/s.json")
            .data.evaluation == "/a/b/v.txt");
  CHECK(read(with("text.txt", "../c.txt"), "/a/b/s.json").data.path == "/a/c.txt");
  CHECK(read(with("text.txt", "/d/c.txt"), "/a/b/s.json").data.path == "/d/c.txt");
  CHECK(read(least, "s.json").data.path.is_absolute());
}

TEST_CASE("A misspelled key of a scenario is reported with the intended one", "[plan][scenario]") {
  CHECK(error_in(with("\"ranks\": 2", "\"ranks\": 2, \"partion\": \"profile\"")) ==
        "s.json:7:26: /pipeline/partion: unknown key \"partion\", did you mean \"partition\"?");
}

TEST_CASE("An unknown schedule or partition is reported with the possible ones",
          "[plan][scenario]") {
  CHECK_THAT(
      error_in(with("1f1b", "1f1")),
      Catch::Matchers::StartsWith("s.json:7:45: /pipeline/schedule: \"1f1\" is not known here, did "
                                  "you mean \"1f1b\"? (possible: "));
  CHECK(
      error_in(with("\"1f1b\"", "\"1f1b\", \"partition\": \"profiel\"")) ==
      "s.json:7:65: /pipeline/partition: \"profiel\" is not known here, did you mean \"profile\"? "
      "(possible: profile, parameters, uniform or type:REGEX)");
}

std::string error_with(const std::string& partition) {
  return error_in(with("\"1f1b\"", "\"1f1b\", \"partition\": " + partition));
}

TEST_CASE("A scenario may give explicit boundaries", "[plan][scenario]") {
  const Scenario scenario = read(with("\"1f1b\"", "\"1f1b\", \"partition\": [0, 3, 8]"));
  CHECK(scenario.pipeline.partition == PartitionChoice(std::vector{0, 3, 8}));
  CHECK(read(to_json(scenario).dump()) == scenario);
  CHECK(changed(scenario, "pipeline.partition=uniform").pipeline.partition ==
        PartitionChoice("uniform"));
  CHECK(changed(read(least), "pipeline.partition=[0,1,8]").pipeline.partition ==
        PartitionChoice(std::vector{0, 1, 8}));
}

TEST_CASE("Boundaries that do not fit the pipeline are rejected with fitting ones",
          "[plan][scenario]") {
  const std::string at = "s.json:7:65: /pipeline/partition: the boundaries ";
  CHECK(error_with("[1, 8]") == at + "[1, 8] must begin with 0, the first layer");
  CHECK(error_with("[]") == at + "[] must begin with 0, the first layer");
  CHECK(error_with("[0, 3, 3, 8]") ==
        at + "[0, 3, 3, 8] leave stage 1 without a layer: each must be more than the one before");
  CHECK(error_with("[0, 3, 7]") ==
        at + "[0, 3, 7] end with 7, but the model has 8 layers: the last must be 8");
  CHECK(error_with("[0, 8]") ==
        at + "[0, 8] make 1 stage, but the pipeline has 2: give 3 boundaries, or what they shall "
             "balance, such as profile");
  CHECK(error_with("[0, 2.5, 8]") ==
        "s.json:7:82: /pipeline/partition/1: a whole number is needed here, not 2.5");
  CHECK(error_with("3") ==
        "s.json:7:65: /pipeline/partition: a text or a list of boundaries is needed here, such as "
        "[0, 2, 5]");
}

TEST_CASE("Zero microbatches are rejected", "[plan][scenario]") {
  CHECK(error_in(with("\"microbatches\": 8", "\"microbatches\": 0")) ==
        "s.json:7:26: /pipeline/microbatches: 0 is not possible: it must be at least 1");
}

TEST_CASE("More ranks than layers are rejected, more ranks than devices are not",
          "[plan][scenario]") {
  CHECK(error_in(with("\"ranks\": 2", "\"ranks\": 9")) ==
        "s.json:7:14: /pipeline/ranks: 9 ranks asked for, but the model has 8 layers");
  CHECK(read(with("\"ranks\": 2", "\"ranks\": 8")).pipeline.ranks == 8);
}

TEST_CASE("Model and data must match", "[plan][scenario]") {
  CHECK(error_in(with("\"kind\": \"text\"", "\"kind\": \"cifar10\"")) ==
        "s.json:4:10: /data/kind: the model gpt learns from text, not from cifar10");
  CHECK(error_in(with("\"gpt\"", "\"alexnet\"")) ==
        "s.json:4:10: /data/kind: the model alexnet learns from cifar10, not from text");
  CHECK(error_in(with("\"gpt\"", "\"gpt\", \"vocabulary\": 100")) ==
        "s.json:3:26: /model/vocabulary: a text is read byte by byte, so the vocabulary must be "
        "256, not 100");
}

TEST_CASE("A model's shape must be buildable", "[plan][scenario]") {
  CHECK(error_in(with("\"gpt\"", "\"gpt\", \"hidden\": 10, \"heads\": 4")) ==
        "s.json:3:40: /model/heads: 4 heads cannot share a hidden width of 10 equally: 2 or 5 "
        "would do");
  CHECK(error_in(with("\"gpt\"", "\"gpt\", \"hidden\": 10, \"heads\": 12")) ==
        "s.json:3:40: /model/heads: 12 heads cannot share a hidden width of 10 equally: 10 "
        "would do");
  const auto alexnet =
      with("\"text\"", "\"cifar10\"", with("\"gpt\"", "\"alexnet\", \"image_size\": 62"));
  CHECK(error_in(alexnet) ==
        "s.json:3:30: /model/image_size: 62 is not possible: it must be at least 63 and at most "
        "10000");
}

TEST_CASE("The minimum number of repeats must not exceed the maximum", "[plan][scenario]") {
  const std::string text = with("\"steps\": 1, \"microbatch_size\": 4}",
                                "\"steps\": 1, \"microbatch_size\": 4},\n"
                                "\"profile\": {\"least_repeats\": 200}");
  CHECK(error_in(text) ==
        "s.json:9:13: /profile/least_repeats: the least number of repeats, 200, is more than the "
        "most, 100");
}

TEST_CASE("All errors of a scenario are reported together, without follow-on errors",
          "[plan][scenario]") {
  CHECK(
      error_in(R"({"format": "pipewright/scenario/1",
"model": {"kind": "gtp", "block": 3},
"data": {"kind": "cifar10", "path": ""},
"cluster": {"name": "c", "nodes": 1, "devices_per_node": 2, "device": {"name": "cpu"}},
"pipeline": {"ranks": 90, "microbatches": "8", "schedule": "1f1b"},
"training": {"steps": 1, "microbatch_size": 4, "learning_rate": 0}})") ==
      "s.json:1:1: /: \"name\" is missing\n"
      "s.json:2:11: /model/kind: \"gtp\" is not known here, did you mean \"gpt\"? (possible: gpt, "
      "alexnet, vit, encoder-decoder, transformer, hf, imported or measured)\n"
      "s.json:2:26: /model/block: unknown key \"block\", did you mean \"blocks\"?\n"
      "s.json:3:29: /data/path: the path is empty\n"
      "s.json:4:1: /cluster: \"within_node\" is missing\n"
      "s.json:5:27: /pipeline/microbatches: a whole number is needed here, not the text \"8\"\n"
      "s.json:6:48: /training/learning_rate: 0 is not possible: it must be more than 0");
}

TEST_CASE("A fallback for a rejected number is not checked", "[plan][scenario]") {
  CHECK(error_in(with("\"ranks\": 2", "\"ranks\": 9", with("\"gpt\"", "\"gpt\", \"blocks\": 0"))) ==
        "s.json:3:26: /model/blocks: 0 is not possible: it must be at least 1 and at most 10000");
  CHECK(error_in(with("\"gpt\"", "\"gpt\", \"hidden\": 6, \"heads\": 0")) ==
        "s.json:3:39: /model/heads: 0 is not possible: it must be at least 1 and at most 1000000");
}

TEST_CASE("--set overrides a scenario and names itself in errors", "[plan][scenario]") {
  auto document = JsonDocument::parse(least, "s.json");
  document.set("pipeline.ranks=4");
  document.set("pipeline.schedule=gpipe");
  CHECK(scenario_from_json(document).pipeline.ranks == 4);
  CHECK(scenario_from_json(document).pipeline.schedule == "gpipe");
  document.set("pipeline.rank=4");
  CHECK(error_of([&] { scenario_from_json(document); }) ==
        "--set pipeline.rank=4: /pipeline/rank: unknown key \"rank\", did you mean \"ranks\"?");
}

TEST_CASE("Too many chunks to count the stages are rejected", "[plan][scenario]") {
  CHECK(error_in(with("\"ranks\": 2", "\"ranks\": 2, \"chunks\": 2147483647")) ==
        "s.json:7:26: /pipeline/chunks: 2 ranks with 2147483647 stages each are more stages than "
        "can be counted");
}

TEST_CASE("Too many microbatches to count are rejected", "[plan][scenario]") {
  const auto many = with("\"microbatches\": 8", "\"microbatches\": 2000000000");
  CHECK(error_in(with("\"1f1b\"", "\"data-parallel\"", many)) ==
        "s.json:7:26: /pipeline/microbatches: 2 ranks with 2000000000 microbatches each are more "
        "microbatches than can be counted");
  CHECK(
      error_in(with("\"ranks\": 2", "\"ranks\": 2, \"replicas\": 3", many)) ==
      "s.json:7:41: /pipeline/microbatches: 3 replicas with 2000000000 microbatches each are more "
      "microbatches than can be counted");
}

TEST_CASE("Ranks that cannot partition a model are rejected with possible numbers",
          "[plan][scenario]") {
  const auto error_of_sizes = [](const std::string& tensor, const std::string& groups,
                                 const std::string& model = "gpt") {
    std::string text = with("\"ranks\": 2", "\"ranks\": 2, \"tensor\": " + tensor);
    text = with("\"steps\": 1", "\"steps\": 1, \"tensor_groups\": " + groups, text);
    if (model != "gpt")
      text = with("\"text\", \"path\"", "\"cifar10\", \"path\"",
                  with("\"gpt\"", "\"" + model + "\"", text));
    return error_in(text);
  };
  CHECK(error_of_sizes("3", "0") ==
        "s.json:7:26: /pipeline/tensor: 4 heads and a vocabulary of 256 cannot be divided into 3 "
        "parts: heads must divide evenly, and no part of the vocabulary be empty; 2 or 4 would do");
  CHECK(error_of_sizes("2", "3") ==
        "s.json:8:26: /training/tensor_groups: 3 groups cannot be divided evenly among 2 ranks; 2 "
        "or 4 would do");
  CHECK(error_of_sizes("4", "9") ==
        "s.json:8:26: /training/tensor_groups: 9 groups cannot be divided evenly among 4 ranks; 4 "
        "would do");
  CHECK(
      error_of_sizes("1", "8") ==
      "s.json:8:26: /training/tensor_groups: 4 heads and a vocabulary of 256 cannot be divided "
      "into 8 parts: heads must divide evenly, and no part of the vocabulary be empty; 4 would do");
  CHECK(error_of_sizes("2", "0", "alexnet") ==
        "s.json:7:26: /pipeline/tensor: no layer of the model alexnet can be divided into 2 parts; "
        "1 would do");
}

/// The smallest scenario in a file, whose cluster is in another file next to it.
struct WithClusterFile {
  explicit WithClusterFile(const std::string& cluster) {
    folder.write("links.json", cluster);
    const auto begin = least.find("{\"name\": \"c\""), end = least.find(",\n\"pipeline\"");
    std::string text = least;
    document.emplace(JsonDocument::read(
        folder.write("s.json", text.replace(begin, end - begin, "\"links.json\""))));
  }
  std::string links() const { return (folder.path() / "links.json").string(); }

  pipewright::test::TempFolder folder;
  std::optional<JsonDocument> document;
};

const std::string two_nodes = R"({
"format": "pipewright/cluster/1", "name": "two", "nodes": 2, "devices_per_node": 1,
"device": {"name": "cpu"}, "within_node": {"latency_s": 0, "bandwidth_per_s": 1},
"between_nodes": {"latency_s": 0.5, "bandwidth_per_s": 7}})";

TEST_CASE("A scenario's cluster may be another file next to it", "[plan][scenario]") {
  const WithClusterFile scenario(two_nodes);
  const Cluster cluster = scenario_from_json(*scenario.document).cluster;
  CHECK(cluster == cluster_from_json(JsonDocument::read(scenario.links())));
  CHECK(cluster.between_nodes.bandwidth_per_s == 7);
}

TEST_CASE("Fields of a cluster file can be set after it was put into the scenario",
          "[plan][scenario]") {
  WithClusterFile scenario(two_nodes);
  put_cluster(*scenario.document, cluster_file(*scenario.document).value());
  scenario.document->set("cluster.between_nodes.latency_s=0.25");
  const Cluster cluster = scenario_from_json(*scenario.document).cluster;
  CHECK(cluster.between_nodes.latency == Seconds{0.25});
  CHECK(cluster.name == "two");
  CHECK_FALSE(cluster_file(*scenario.document));
}

TEST_CASE("An error in a cluster's file is reported with its position there", "[plan][scenario]") {
  const WithClusterFile scenario(R"({"format": "pipewright/cluster/1", "name": 3})");
  const std::string error = error_of([&] { scenario_from_json(*scenario.document); });
  CHECK(error.find("s.json:5:1: /cluster: " + scenario.links() + ":1:36: /name: ") !=
        std::string::npos);
  std::filesystem::remove(scenario.links());
  CHECK(error_of([&] { scenario_from_json(*scenario.document); }).find("links.json") !=
        std::string::npos);
}

TEST_CASE("The model of a scenario has the requested shape", "[plan][scenario]") {
  CHECK(model_of(unusual()) == gpt_model(unusual().model.as<GptShape>()));
}

}  // namespace scenario_test
