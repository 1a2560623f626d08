// The phase in which a run is slow on purpose, and 'yoke why' says because of what.
#include <fmt/format.h>

#include "yoke/gameday/answers.h"
#include "yoke/gameday/lab_fault.h"
#include "yoke/gameday/phases.h"

namespace yoke::gameday {
namespace {

// Exchanges of a long prompt go over both rails.
std::string long_prompt() {
  std::string text;
  for (int i = 0; i < 60; ++i) text += "MTU 9000 on both rails of the cable. ";  // 784 tokens of nano
  return text;
}

// What 'yoke why' says of a run of the model as it was given: the one that ships with yoke, unless another was named.
Document asked_why(Environment& environment, PhaseRun& phase_run) {
  const Document run =
      phase_run.run_json({"run", environment.options().model->native(), "--raw", "-p", long_prompt(), "-n", "24",
                          "--why", "--no-history", "--cluster", environment.cluster_word()});
  const Document* const why = run.find("why");
  return why != nullptr ? *why : Document::map();
}

std::vector<std::string> sentences(const Document& why) {
  std::vector<std::string> said;
  const Document* const blames = why.find("blames");
  if (blames == nullptr) return said;
  for (const Document& blame : blames->items) {
    said.push_back(fmt::format("{} {} Next: {}", blame.find("what")->text, blame.find("evidence")->text,
                               blame.find("next")->text));
  }
  return said;
}

bool names_rail(const Document& why, std::string_view cause, std::string_view rail) {
  const Document* const blames = why.find("blames");
  if (blames == nullptr) return false;
  for (const Document& blame : blames->items) {
    const bool is_cause = blame.find("cause")->text == cause;
    for (const Document& place : blame.find("where")->items) {
      if (is_cause && place.text == fmt::format("rail {}", rail)) return true;
    }
  }
  return false;
}

bool blames_a_rail(const Document& why) {
  const Document* const blames = why.find("blames");
  if (blames == nullptr) return true;  // it said nothing at all
  for (const Document& blame : blames->items) {
    if (blame.find("term")->text == "all-reduce") return true;
  }
  return false;
}

}  // namespace

void run_why_phase(Environment& environment, PhaseRun& phase_run) {
  const Document healthy = asked_why(environment, phase_run);
  if (const Document* const limit = healthy.find("limit"); limit != nullptr && !limit->text.empty()) {
    phase_run.print("At its limit: " + limit->text);
  }
  phase_run.expect(!blames_a_rail(healthy), "a healthy run blames no rail");
  LabFault rail(environment, phase_run, "B");
  // At a game day's rates a small model's exchange passes in the bursts of a slow rail: half of the cable is taken away
  // instead. scripts/soak-why plays slow rails.
  rail.make("rail-down", "half of the cable is dark");
  const Document slow = asked_why(environment, phase_run);
  for (const std::string& sentence : sentences(slow)) phase_run.print(sentence);
  phase_run.expect(names_rail(slow, "rail-unused", "B"), "'yoke why' names rail B, which carries nothing");
  rail.clear();
  report::HtmlFacts facts;
  for (const std::string& sentence : sentences(slow)) facts.facts.emplace_back("why it is slow", sentence);
  phase_run.block(std::move(facts));
}

}  // namespace yoke::gameday
