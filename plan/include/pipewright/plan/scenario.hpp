#pragma once

// A Scenario is one file that reproduces one run: which model on which data, on which cluster, by
// which parallel plan, with which training set-up.

#include <filesystem>
#include <string>
#include <variant>

#include "pipewright/plan/cluster.hpp"
#include "pipewright/plan/json_document.hpp"
#include "pipewright/plan/model.hpp"
#include "pipewright/plan/program.hpp"
#include "pipewright/plan/schedule_request.hpp"

namespace pipewright::plan {

using ModelShape = std::variant<GptShape, AlexNetShape>;

struct DataSource {
  std::string kind;  // text: bytes of one file; cifar10: data_batch_*.bin
  std::filesystem::path
      path;  // the file, or for cifar10 the folder; relative to the scenario's file
  friend bool operator==(const DataSource&, const DataSource&) = default;
};

struct Pipeline {
  int ranks = 2;
  int microbatches = 8;
  std::string schedule = "1f1b";
  int chunks = 0;                     // stages a rank; 0: as few as the schedule can have
  std::string partition = "profile";  // what the boundaries balance
  CommunicatorLayout communicators = CommunicatorLayout::Edge;
  TransferMode transfers = TransferMode::Eager;
  bool blocking = false;
  friend bool operator==(const Pipeline&, const Pipeline&) = default;
};

struct Training {
  int steps = 50;
  int microbatch_size = 4;  // samples
  double learning_rate = 1e-3;
  double weight_decay = 0.01;
  int seed = 7;
  friend bool operator==(const Training&, const Training&) = default;
};

/// How long a layer is measured: until the spread is small enough, within bounds.
struct ProfileSettings {
  int warm_up = 3;
  int least_repeats = 10;
  int most_repeats = 100;
  double spread = 0.05;  // interquartile range over median
  friend bool operator==(const ProfileSettings&, const ProfileSettings&) = default;
};

struct Scenario {
  std::string name;
  ModelShape model;
  DataSource data;
  Cluster cluster;
  Pipeline pipeline;
  Training training;
  ProfileSettings profile;
  friend bool operator==(const Scenario&, const Scenario&) = default;
};

Model model_of(const Scenario& scenario);

/// The schedule that the pipeline asks for, with equal times.
ScheduleRequest request_of(const Pipeline& pipeline);

Json to_json(const Scenario& scenario);
/// Also checks what no single field shows: more ranks than layers, data that does not fit the
/// model.
Scenario scenario_from_json(const JsonDocument& document);

}  // namespace pipewright::plan
