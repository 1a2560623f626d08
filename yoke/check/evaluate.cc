#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "yoke/base/text.h"
#include "yoke/check/rule.h"

namespace yoke::check {
namespace {

struct Reported {
  const Rule* rule = nullptr;
  Advice advice;
};

bool is_on(const Advice& advice, const std::string& node) {
  return advice.node == node ||
         std::ranges::any_of(advice.rails, [&](const RailEnd* end) { return end->node->name == node; });
}

bool is_same_place(const Advice& a, const Advice& b) {
  if (!a.node || !b.node) return true;  // one of them is about all nodes
  for (const RailEnd* end : a.rails) {
    if (std::ranges::find(b.rails, end) != b.rails.end()) return true;
  }
  if (a.node == b.node && a.subject && a.subject == b.subject) return true;
  const bool whole_node = !a.subject && a.rails.empty();
  return whole_node && is_on(b, *a.node);
}

bool is_explained(const Reported& reported, const std::vector<Reported>& all) {
  return std::ranges::any_of(all, [&](const Reported& other) {
    return explains(*other.rule, *reported.rule) &&
           (reported.rule->scope != Scope::kPlace || is_same_place(other.advice, reported.advice));
  });
}

std::string names_of(Needs needs) {
  constexpr std::string_view kNames[] = {"links",   "addresses", "facts",      "trials",
                                         "cabling", "rates",     "collective", "log"};
  std::vector<std::string_view> names;
  for (std::size_t bit = 0; bit < std::size(kNames); ++bit) {
    if (needs & (1U << bit)) names.push_back(kNames[bit]);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

spec::Finding finding_of(Reported reported) {
  return {.rule = std::string(reported.rule->name),
          .severity = reported.rule->severity,
          .node = std::move(reported.advice.node),
          .subject = std::move(reported.advice.subject),
          .what = std::move(reported.advice.what),
          .evidence = std::move(reported.advice.evidence),
          .consequence = std::move(reported.advice.consequence),
          .fix = std::move(reported.advice.fix)};
}

}  // namespace

std::string needs_text(const Rule& rule) {
  return names_of(rule.needs) + (rule.or_needs == 0 ? "" : " or " + names_of(rule.or_needs));
}

Needs parts_of(const spec::Survey& survey) {
  Needs parts = 0;
  if (!survey.nodes.empty()) parts |= kNeedsLinks | kNeedsAddresses | kNeedsFacts | kNeedsTrials;
  if (survey.cabling) parts |= kNeedsCabling;
  if (survey.log) parts |= kNeedsLog;
  if (survey.measurement) parts |= kNeedsRates;
  if (survey.measurement && (survey.measurement->all_reduce || survey.measurement->all_reduce_failure)) {
    parts |= kNeedsCollective;
  }
  return parts;
}

bool explains(const Rule& rule, const Rule& other) {
  if (&rule == &other) return false;
  if (other.scope == Scope::kLastResort && rule.severity == spec::Severity::kError) return true;
  const std::vector<std::string> names = split(std::string(rule.explains), ' ');
  return std::ranges::find(names, other.name) != names.end();
}

bool applies(const Rule& rule, Needs parts) {
  return (rule.needs & ~parts) == 0 || (rule.or_needs != 0 && (rule.or_needs & ~parts) == 0);
}

std::vector<spec::Finding> evaluate(const spec::Survey& survey, Needs parts, Explained explained) {
  const ClusterView view(survey);
  const Needs there = parts & parts_of(survey);
  std::vector<Reported> all;
  for (const Rule& rule : rule_table()) {
    if (!applies(rule, there)) continue;
    for (Advice& advice : rule.look(view)) all.push_back({&rule, std::move(advice)});
  }
  std::vector<spec::Finding> findings;
  for (const Reported& reported : all) {
    if (explained == Explained::kDropped && is_explained(reported, all)) continue;
    findings.push_back(finding_of(reported));
  }
  std::ranges::stable_sort(findings, std::ranges::greater{}, &spec::Finding::severity);
  return findings;
}

std::vector<spec::Finding> withheld(const spec::Survey& survey, Needs parts) {
  if (!survey.measurement) return {};
  spec::Survey idle = survey;
  for (spec::RailMeasurement& rail : idle.measurement->rails) rail.taken = 0;
  if (idle.measurement->all_reduce) idle.measurement->all_reduce->taken = 0;
  std::vector<spec::Finding> all = evaluate(idle, parts);
  const std::vector<spec::Finding> reported = evaluate(survey, parts);
  std::erase_if(all, [&](const spec::Finding& finding) {
    return std::ranges::any_of(reported, [&](const spec::Finding& other) {
      return other.rule == finding.rule && other.node == finding.node && other.subject == finding.subject;
    });
  });
  return all;
}

}  // namespace yoke::check
