// What run, chat, verify and serve share on the command line: the options of the engine and of sampling.
#pragma once
#include <optional>
#include <string>

#include "yoke/chat/sampling_arguments.h"
#include "yoke/cli/command.h"
#include "yoke/engine/request_limits.h"
#include "yoke/serve/engine_host.h"

namespace yoke::cli {

struct EngineArguments {
  std::string model;
  std::optional<int> ranks, nodes, threads, context;
  std::string transport = "auto", backend = "auto", cache_type = "auto";
  bool exact = false;
};
// Where the model may be left out it is the one that ships with yoke.
void declare_engine(OptionTable& table, EngineArguments& arguments, Presence model = Presence::kRequired);

// Puts the model's absolute folder in the place of what was typed (model_folder.h), or throws why there is none.
void settle_model(EngineArguments& arguments);

// Throws Error(kUsage) for numbers that make no sense. Reads the cluster file, and whether a launcher started us.
serve::EngineHostSpec host_spec(const Session& session, const EngineArguments& arguments);

// Where a launcher started this process as another rank than the first: takes part until the engine ends, says nothing,
// and returns the exit status.
std::optional<int> follow_if_not_first(const serve::EngineHostSpec& spec);

// -n, the chances, the penalties, --logit-bias, --seed, --stop.
void declare_sampling(OptionTable& table, chat::SamplingArguments& arguments);

}  // namespace yoke::cli
