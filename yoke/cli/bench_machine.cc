// yoke bench memory and yoke bench matmul: the ceilings of this machine.
#include <fmt/format.h>

#include "yoke/base/error.h"
#include "yoke/bench/history.h"
#include "yoke/bench/machine_facts.h"
#include "yoke/bench/matmul_rate.h"
#include "yoke/bench/memory_rate.h"
#include "yoke/bench/size.h"
#include "yoke/cli/commands.h"

namespace yoke {
namespace {

struct MachineArguments {
  int cores = 0;  // 0: all
  std::optional<int> rounds;
  std::string block;
  int depth = 512;
  bool no_history = false;
};

std::vector<int> chosen_cores(int wanted) {
  std::vector<int> cores = usable_cores();
  if (wanted < 0 || static_cast<std::size_t>(wanted) > cores.size())
    throw Error(ErrorCode::kUsage, fmt::format("there are no {} cores to use", wanted),
                fmt::format("this machine gives us {}", cores.size()));
  if (wanted > 0) cores.resize(static_cast<std::size_t>(wanted));
  return cores;
}

void declare_shared(OptionTable& table, MachineArguments& arguments) {
  table.value("--cores", "N", "use the first N cores (all that the system gives us)", arguments.cores);
  table.value("--rounds", "N", "rounds that are timed", arguments.rounds, {1, 100'000});
  table.flag("--no-history", "do not keep this run in the history", arguments.no_history);
}

template <class Result>
int show(Session& session, const MachineArguments& arguments, const Result& result, const std::string& text) {
  if (session.json) {
    session.print_json(to_json(result));
  } else {
    session.print(text);
  }
  if (!arguments.no_history) session.warn(keep_record(record_of(result)));
  return kExitOk;
}

int measure_memory_here(Session& session, const MachineArguments& arguments) {
  MemoryOptions options{.rounds = arguments.rounds.value_or(15), .cores = chosen_cores(arguments.cores)};
  if (!arguments.block.empty()) {
    const auto block = parse_size(arguments.block);
    if (!block) throw Error(ErrorCode::kUsage, "--block: " + block.error().message(), block.error().hint());
    if (block->value < 1 << 20 || block->value > 64LL << 30)
      throw Error(ErrorCode::kUsage, fmt::format("--block cannot be {} bytes", block->value), "1M to 64G");
    options.block = *block;
  }
  const MemoryRates rates = measure_memory(options);
  return show(session, arguments, rates, memory_text(rates));
}

int measure_matmul_here(Session& session, const MachineArguments& arguments) {
  const std::vector<MatmulRate> rates = measure_matmul(
      {.depth = arguments.depth, .rounds = arguments.rounds.value_or(7), .cores = chosen_cores(arguments.cores)});
  return show(session, arguments, rates, matmul_text(rates));
}

CommandRow memory_command() {
  return {.name = "memory",
          .summary = "what this machine's memory carries: read and copy, one core and all",
          .description =
              "Reads and copies blocks far larger than the caches, by one core and by all, and checks them. "
              "A model that is read from memory for every token cannot be faster than this.",
          .examples = {{"yoke bench memory", "all cores"}, {"yoke bench memory --block 1G --rounds 30", "longer"}},
          .prepare = [](OptionTable& table) -> Action {
            auto arguments = std::make_shared<MachineArguments>();
            declare_shared(table, *arguments);
            table.value("--block", "SIZE", "of all threads together (eight times the last cache)", arguments->block);
            return [arguments](Session& session) { return measure_memory_here(session, *arguments); };
          }};
}

CommandRow matmul_command() {
  return {.name = "matmul",
          .summary = "what this machine's arithmetic does: f32, bf16 and int8 matrix products",
          .description =
              "Multiplies packed matrices with the best instructions that this processor has, by one core "
              "and by all, and checks each kernel against a plain loop first: the practical ceiling.",
          .examples = {{"yoke bench matmul", "all cores"}, {"yoke bench matmul --cores 1 --json", "for a script"}},
          .prepare = [](OptionTable& table) -> Action {
            auto arguments = std::make_shared<MachineArguments>();
            declare_shared(table, *arguments);
            table.value("--size", "N", "of the square matrices (512)", arguments->depth, {16, 4096});
            return [arguments](Session& session) { return measure_matmul_here(session, *arguments); };
          }};
}

}  // namespace

std::vector<CommandRow> bench_machine_commands() { return {memory_command(), matmul_command()}; }

}  // namespace yoke
