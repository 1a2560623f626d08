#include "yoke/gameday/dcgm_answer.h"

#include <fmt/format.h>
#include <strings.h>

#include <algorithm>

#include "yoke/base/document.h"
#include "yoke/base/json.h"
#include "yoke/base/result.h"
#include "yoke/base/text.h"

namespace yoke::gameday {
namespace {

constexpr std::size_t kShownProblem = 200;
constexpr std::string_view kNoDcgm = "yoke: no dcgmi";
constexpr std::string_view kEnded = "yoke: dcgmi was ended: ";

const Document* member(const Document& document, std::string_view key) {
  return document.kind == Document::Kind::kMap ? document.find(key) : nullptr;
}

const std::vector<Document>& members(const Document& document, std::string_view key) {
  static const std::vector<Document> none;
  const Document* const list = member(document, key);
  return list && list->kind == Document::Kind::kList ? list->items : none;
}

std::string text_of(const Document& document, std::string_view key) {
  const Document* const text = member(document, key);
  return text && text->kind != Document::Kind::kNull ? printable(text->text, kShownProblem) : "";
}

// "Pass", "PASS", "Fail", "Warn", "Skip", "SKIPPED"; what is unknown did not pass.
DcgmStatus status_of(const std::string& word) {
  const auto is = [&](std::string_view wanted) {
    return word.size() >= wanted.size() && strncasecmp(word.data(), wanted.data(), wanted.size()) == 0;
  };
  if (is("pass")) return DcgmStatus::kPass;
  if (is("warn")) return DcgmStatus::kWarn;
  return is("skip") || is("not") ? DcgmStatus::kSkip : DcgmStatus::kFail;
}

// Skipped says nothing; of the others the worst counts.
DcgmStatus worse(DcgmStatus a, DcgmStatus b) {
  const auto weight = [](DcgmStatus status) {
    return status == DcgmStatus::kSkip ? 0 : status == DcgmStatus::kPass ? 1 : status == DcgmStatus::kWarn ? 2 : 3;
  };
  return weight(a) >= weight(b) ? a : b;
}

std::string gpu_of(const Document& result) {
  for (const char* key : {"gpu_id", "gpu_ids", "entity_id"}) {
    if (const std::string id = text_of(result, key); !id.empty()) return "GPU " + id;
  }
  return "";
}

void add_warnings(const Document& result, DcgmTest& test) {
  for (const Document& warning : members(result, "warnings")) {
    const std::string words =
        warning.kind == Document::Kind::kMap ? text_of(warning, "warning") : printable(warning.text, kShownProblem);
    if (words.empty()) continue;
    const std::string gpu = gpu_of(result);
    test.says.push_back(gpu.empty() ? words : gpu + ": " + words);
  }
}

DcgmTest read_test(const Document& document) {
  DcgmTest test{.name = text_of(document, "name"), .status = DcgmStatus::kSkip, .says = {}};
  for (const Document& result : members(document, "results")) {
    test.status = worse(test.status, status_of(text_of(result, "status")));
    add_warnings(result, test);
  }
  if (const Document* const sum = member(document, "test_summary")) {
    test.status = worse(test.status, status_of(text_of(*sum, "status")));
    add_warnings(*sum, test);
  }
  return test;
}

void add_tests(const Document& root, std::vector<DcgmTest>& tests) {
  for (const Document& test : members(root, "tests")) {
    if (!text_of(test, "name").empty()) tests.push_back(read_test(test));
  }
}

std::string last_line(std::string_view text) {
  const std::vector<std::string> lines = split(trim(text), '\n');
  return lines.empty() ? "" : printable(trim(lines.back()), kShownProblem);
}

}  // namespace

bool DcgmAnswer::passed() const {
  return problem.empty() && count(DcgmStatus::kFail) == 0 && count(DcgmStatus::kPass) + count(DcgmStatus::kWarn) > 0;
}

int DcgmAnswer::count(DcgmStatus status) const {
  return static_cast<int>(std::ranges::count(tests, status, &DcgmTest::status));
}

// timeout's status is 124 where the diagnostic ended at SIGTERM, and 137 where it took SIGKILL.
std::string dcgm_script(const DcgmRun& run) {
  return fmt::format(
      "command -v dcgmi > /dev/null || {{ echo '{}'; exit 0; }}; timeout -k {} {} dcgmi diag -r {} -j 2>&1; "
      "case $? in 124 | 137) echo; echo '{}it did not end within {}';; esac",
      kNoDcgm, run.grace.value, run.limit.value, run.level, kEnded, yoke::to_string(run.limit));
}

bool has_no_dcgm(std::string_view text) { return text.starts_with(kNoDcgm); }

DcgmAnswer read_dcgm(std::string_view text) {
  DcgmAnswer answer;
  if (const std::size_t at = text.rfind(kEnded); at != std::string_view::npos) {
    answer.problem = last_line(text.substr(at + kEnded.size()));
    return answer;
  }
  const std::size_t begin = text.find('{');
  const std::size_t end = text.rfind('}');
  const bool is_json = begin != std::string_view::npos && end != std::string_view::npos && end > begin;
  const auto document =
      try_to([&] { return parse_json(is_json ? text.substr(begin, end - begin + 1) : text, "the answer of dcgmi"); });
  if (!document || document->kind != Document::Kind::kMap) {
    const std::string said = last_line(text);
    answer.problem = said.empty() ? "dcgmi said nothing" : "dcgmi said: " + said;
    return answer;
  }
  for (const char* name : {"DCGM Diagnostic", "DCGM GPU Diagnostic"}) {
    const Document* const root = member(*document, name);
    if (!root) continue;
    for (const Document& category : members(*root, "test_categories")) add_tests(category, answer.tests);
    add_tests(*root, answer.tests);
    if (answer.problem.empty()) answer.problem = text_of(*root, "runtime_error");
  }
  if (answer.problem.empty()) answer.problem = text_of(*document, "runtime_error");
  if (answer.problem.empty() && answer.tests.empty()) answer.problem = "dcgmi ran no test";
  return answer;
}

std::map<std::string, std::string> lines_by_node(std::string_view output) {
  std::map<std::string, std::string> nodes;
  for (const std::string& line : split(output, '\n')) {
    const std::size_t bar = line.find(" | ");
    const std::size_t slash = line.find('/');
    if (bar == std::string::npos || slash > bar) continue;
    nodes[line.substr(0, slash)] += line.substr(bar + 3) + "\n";
  }
  return nodes;
}

}  // namespace yoke::gameday
