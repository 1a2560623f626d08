// The phase in which a file of requests is answered while a rank is killed: no line is lost, none is answered twice.
#include <fmt/format.h>

#include <set>

#include "yoke/base/json.h"
#include "yoke/base/result.h"
#include "yoke/base/text.h"
#include "yoke/gameday/phases.h"
#include "yoke/rank/rank_part.h"
#include "yoke/serve/engine_task.h"

namespace yoke::gameday {
namespace {

constexpr int kLines = 10;

std::string batch_lines() {
  std::string text;
  for (int i = 0; i < kLines; ++i) {
    text += fmt::format(R"({{"custom_id":"line-{0}","method":"POST","url":"/v1/completions","body":{{"model":"nano",)"
                        R"("prompt":"Cable {0} joins","max_tokens":200,"temperature":0,"ignore_eos":true}}}})"
                        "\n",
                        i);
  }
  return text;
}

// By the first letter in brackets pkill does not find the shell that runs it.
// On the head node: the batch begins, a rank of the last node is killed once an answer is there, and the batch ends.
std::string batch_script(const Environment& environment) {
  const std::string peer = environment.cluster().nodes.back().name;
  return fmt::format(
      "cd /root && rm -f batch-*.jsonl*; cat > batch-in.jsonl <<'END'\n{0}END\n"
      "cat > batch-cluster.yaml <<'END'\n{1}END\n"
      "yoke batch '{6}' batch-in.jsonl -o batch-out.jsonl --parallel 2 --cluster batch-cluster.yaml & batch=$!\n"
      "for i in $(seq 1200); do [ -s batch-out.jsonl.partial ] && break; sleep 0.05; done\n"
      "ssh {2} pkill -KILL -f '[{3}]{4}.{5}' && echo killed >&2\n"
      "wait $batch && cat batch-out.jsonl",
      batch_lines(), spec::print_cluster(environment.cluster()), peer, rank::kRankWord[0], rank::kRankWord + 1,
      serve::kEngineKind, environment.options().model->native());
}

}  // namespace

void run_batch_phase(Environment& environment, PhaseRun& phase_run) {
  const std::string head = environment.cluster().nodes.front().name;
  const Outcome outcome =
      phase_run.run({"lab", "exec", "--name", *environment.lab(), head, "--", "sh", "-c", batch_script(environment)});
  phase_run.print(outcome.err);
  phase_run.expect(outcome.ok(), "the batch ends well");
  phase_run.expect(outcome.err.find("killed") != std::string::npos, "a rank was killed while lines were answered");
  phase_run.expect(outcome.err.find("restarting the lost ranks") != std::string::npos,
                   "it was noticed: 'restarting the lost ranks'");
  std::set<std::string> ids;
  std::size_t answers = 0;
  for (const std::string& line : split(outcome.out, '\n')) {
    const auto answer = try_to([&] { return parse_json(line, "an answer"); });
    const Document* const id = answer ? answer->find("custom_id") : nullptr;
    if (id == nullptr) continue;
    ids.insert(id->text);
    ++answers;
  }
  phase_run.expect(ids.size() == kLines && answers == kLines, fmt::format("{} lines, each answered once", kLines));
  phase_run.figure({.name = "lines", .value = static_cast<double>(ids.size()), .unit = ""});
  phase_run.block(report::HtmlPreformatted{outcome.err});
}

}  // namespace yoke::gameday
