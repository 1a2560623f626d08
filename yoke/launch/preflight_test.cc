#include "yoke/launch/preflight.h"

#include <gtest/gtest.h>

#include "yoke/base/files.h"
#include "yoke/base/socket.h"
#include "yoke/launch/launch_cases_testing.h"

namespace yoke::launch {
namespace {

LaunchPlan vllm_plan() { return plan_launch(load_engine("vllm"), {.model = "/models/m"}, two_sparks().nodes, {}); }

NodeLookAnswer good_answer() {
  NodeLookAnswer answer;
  answer.program = "/usr/bin/vllm";
  answer.model_exists = true;
  answer.model_bytes = Bytes{1000};
  answer.model_files = 3;
  answer.model_hash = "aa";
  answer.image = "sha256:0123456789abcdef";
  return answer;
}

std::vector<std::string> rules_of(const std::vector<spec::Finding>& findings) {
  std::vector<std::string> rules;
  for (const spec::Finding& finding : findings) {
    rules.push_back(finding.rule + " " + finding.node.value_or(""));
    EXPECT_FALSE(finding.what.empty() || finding.evidence.empty() || finding.consequence.empty() ||
                 finding.fix.empty());
  }
  return rules;
}

TEST(Preflight, FindsWhatIsMissingOrDiffersOnANode) {
  const LaunchPlan plan = vllm_plan();
  EXPECT_TRUE(evaluate_launch(plan, Through::kDocker, Bytes{0}, {good_answer(), good_answer()}).empty());
  NodeLookAnswer bad = good_answer();
  bad.program.clear();
  bad.taken = {8000};
  bad.model_hash = "bb";
  bad.image = "sha256:fedcba9876543210";
  EXPECT_EQ(rules_of(evaluate_launch(plan, Through::kDocker, Bytes{0}, {good_answer(), bad})),
            (std::vector<std::string>{"launch-engine-missing node-2", "launch-port-taken node-2",
                                      "launch-model-differs node-2", "launch-image-differs node-2"}));
  bad = good_answer();
  bad.model_exists = false;
  bad.image.clear();
  bad.image_problem = "cannot connect to the Docker daemon";
  bad.earlyoom = "/usr/bin/earlyoom -r 3600 -m 5 -s 100";
  bad.swap = Bytes{1 << 30};
  EXPECT_EQ(rules_of(evaluate_launch(plan, Through::kDocker, Bytes{8LL << 30}, {good_answer(), bad})),
            (std::vector<std::string>{"launch-model-missing node-2", "launch-docker-silent node-2",
                                      "launch-swap node-2", "launch-earlyoom node-2"}));
  bad = good_answer();
  bad.image.clear();
  const auto findings = evaluate_launch(plan, Through::kDocker, Bytes{0}, {good_answer(), bad});
  EXPECT_EQ(rules_of(findings), (std::vector<std::string>{"launch-image-missing node-2"}));
  EXPECT_EQ(findings.front().fix, "yoke prep image " + plan.image);
}

TEST(Preflight, ComparesEarlyoomWithTheGuard) {
  constexpr Bytes kSpark{128LL << 30};
  EXPECT_EQ(earlyoom_floor("/usr/bin/earlyoom -r 3600 -m 5 -s 100", Bytes{1000}), Bytes{50});
  EXPECT_EQ(earlyoom_floor("earlyoom", Bytes{1000}), Bytes{100});
  EXPECT_EQ(earlyoom_floor("earlyoom -M 524288,102400 -s 100", kSpark), Bytes{512LL << 20});
  EXPECT_EQ(earlyoom_floor("earlyoom -m 4,2 -M 524288", kSpark), Bytes{512LL << 20}) << "the lower one counts";
  const auto finding_of = [&](const std::string& command, double utilization) {
    LaunchPlan plan = vllm_plan();
    plan.options.utilization = utilization;
    NodeLookAnswer answer = good_answer();
    answer.memory = kSpark;
    answer.earlyoom = command;
    const auto all = evaluate_launch(plan, Through::kSsh, Bytes{8LL << 30}, {answer});
    return all.size() == 1 ? all.front() : spec::Finding{};
  };
  const spec::Finding first = finding_of("earlyoom", 0.8);
  EXPECT_EQ(first.severity, spec::Severity::kWarning);
  EXPECT_EQ(first.what, "earlyoom on node-1 ends a process below 12.8 GiB of memory, before yoke's guard (8 GiB).");
  const spec::Finding later = finding_of("earlyoom -m 2", 0.8);
  EXPECT_EQ(later.severity, spec::Severity::kInfo);
  EXPECT_EQ(later.what, "earlyoom on node-1 ends a process below 2.56 GiB of memory.");
  const spec::Finding reached = finding_of("earlyoom -m 6", 0.95);
  EXPECT_EQ(reached.severity, spec::Severity::kWarning);
  EXPECT_EQ(reached.evidence, "It runs as: earlyoom -m 6. A memory share of 0.95 leaves 6.40 GiB of 128 GiB.");
}

TEST(Preflight, AsksAHeadForItsPortsAndAWorkerOnlyForItsOwn) {
  const LaunchPlan plan = vllm_plan();
  EXPECT_EQ(question_for(plan, 0, Through::kSsh).ports, (std::vector<int>{8000, 29501}));
  EXPECT_TRUE(question_for(plan, 1, Through::kSsh).ports.empty());
  EXPECT_EQ(question_for(plan, 1, Through::kDocker).program, "docker");
}

TEST(NodeLook, SeesTakenPortsProgramsAndTheModel) {
  const ScratchDir scratch;
  const Socket taken = listen_tcp({"0.0.0.0", 0});
  make_folder(scratch.path() / "m");
  write_file_atomically(scratch.path() / "m/config.json", "{}");
  LookQuestion question{.program = "sh", .ports = {taken.local().port}, .model = scratch.path() / "m", .image = ""};
  const NodeLookAnswer answer = inspect_here(question);
  EXPECT_FALSE(answer.program.empty());
  EXPECT_EQ(answer.taken, question.ports);
  EXPECT_TRUE(answer.model_exists);
  EXPECT_EQ(answer.model_files, 1);
  EXPECT_GT(answer.disk_free.value, 0);
  question.program = "no-such-engine";
  question.model = "/no/such/model";
  EXPECT_EQ(inspect_here(question).program, "");
  EXPECT_FALSE(inspect_here(question).model_exists);
}

TEST(NodeLook, AFolderIsKnownByItsNamesSizesAndSmallFiles) {
  const ScratchDir a, b;
  for (const ScratchDir* folder : {&a, &b}) write_file_atomically(folder->path() / "config.json", "{}");
  EXPECT_EQ(folder_fingerprint(a.path()), folder_fingerprint(b.path()));
  write_file_atomically(b.path() / "config.json", "[]");
  EXPECT_NE(folder_fingerprint(a.path()), folder_fingerprint(b.path()));
}

}  // namespace
}  // namespace yoke::launch
