// One table of rules (rules.cc; docs/checks.md describes each with source and fixture) and the one place where it is
// applied. A rule is a small pure function from a survey to advice. The table says what each rule looks at, so that
// every command runs the part that it has the data for, and which other rules it explains: evaluate() drops what is
// explained, so that one cause is one finding.
//
//   const std::vector<Finding> findings = evaluate(survey);                         // all that the survey holds
//   const std::vector<Finding> advice = evaluate(survey, kNeedsLinks | kNeedsCabling);  // a part of the table
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/check/cluster_view.h"
#include "yoke/spec/finding.h"

namespace yoke::check {

// What of a survey a rule looks at, as bits.
using Needs = std::uint32_t;
inline constexpr Needs kNeedsLinks = 1U << 0U;      // which nodes answer; interfaces that are there, up, with a carrier
inline constexpr Needs kNeedsAddresses = 1U << 1U;  // addresses, MTUs and routes of these interfaces
inline constexpr Needs kNeedsFacts = 1U << 2U;      // everything else of the machines
inline constexpr Needs kNeedsTrials = 1U << 3U;     // pings, connections, names and packet filters
inline constexpr Needs kNeedsCabling = 1U << 4U;    // who hears whom
inline constexpr Needs kNeedsRates = 1U << 5U;      // what the rails carry
inline constexpr Needs kNeedsCollective = 1U << 6U;  // an all-reduce over all nodes
inline constexpr Needs kNeedsLog = 1U << 7U;         // the log of a job that used NCCL
inline constexpr Needs kNeedsAll = (1U << 8U) - 1;
Needs parts_of(const spec::Survey& survey);  // what it holds

// A finding without what the table knows of its rule.
struct Advice {
  std::optional<std::string> node = {};
  std::optional<std::string> subject = {};
  std::string what = {};
  std::string evidence = {};
  std::string consequence = {};
  std::string fix = {};
  std::vector<const RailEnd*> rails = {};  // the ends that it is about: of a pair both
};
using AdviceList = std::vector<Advice>;

// By what a finding of this rule can be explained.
enum class Scope {
  kPlace,       // by findings about the same rail, the same subject, or its whole node
  kCluster,     // by findings anywhere: it is about all nodes
  kLastResort,  // as kCluster, and by every fault
};

struct Rule {
  std::string_view name;
  spec::Severity severity;
  std::string_view about;  // what it looks for, in a few words
  Needs needs;
  std::string_view explains;  // rules, with blanks between, that would only repeat what this one says
  AdviceList (*look)(const ClusterView& view);
  Scope scope = Scope::kPlace;
  Needs or_needs = 0;  // what does as well; 0: nothing
};
std::string needs_text(const Rule& rule);  // "addresses, cabling"; "trials or cabling"
std::span<const Rule> rule_table();
bool explains(const Rule& rule, const Rule& other);
bool applies(const Rule& rule, Needs parts);  // whether what it needs is among the parts
// How much of the table had something to examine: a rule about GPUs has nothing on nodes without any.
struct Coverage {
  std::size_t examined = 0;
  std::size_t rules = 0;                  // of the whole table
  std::vector<std::string> missing = {};  // in words, what the others would have needed: "a GPU", "a measurement"
};
Coverage coverage_of(const spec::Survey& survey, Needs parts = kNeedsAll);

enum class Explained { kDropped, kKept };
// The findings of all rules whose needs are among `parts` and in the survey: worst first, then in the table's order.
std::vector<spec::Finding> evaluate(const spec::Survey& survey, Needs parts = kNeedsAll,
                                    Explained explained = Explained::kDropped);

// What would be a finding if the processors had not been busy with other programs while it was measured: such a link is
// neither healthy nor at fault.
std::vector<spec::Finding> withheld(const spec::Survey& survey, Needs parts = kNeedsAll);

}  // namespace yoke::check
