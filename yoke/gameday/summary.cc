#include "yoke/gameday/summary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "yoke/base/build_info.h"
#include "yoke/report/table.h"

namespace yoke::gameday {
namespace {

std::string time_of(const PhaseResult& phase) {
  return phase.verdict == Verdict::kSkipped ? "" : fmt::format("{:.1f} s", phase.seconds.value);
}

// What went wrong first, then the figures.
std::string reported_by(const PhaseResult& phase) {
  std::vector<std::string> texts;
  if (!phase.why.empty()) texts.push_back(phase.why);
  for (const Figure& figure : phase.figures) texts.push_back(to_string(figure));
  return fmt::format("{}", fmt::join(texts, ", "));
}

report::Table overview(const GamedayResult& result) {
  report::Table table{.columns = {{.header = "phase"},
                                  {.header = "verdict"},
                                  {.header = "time", .align = report::TextAlign::kRight},
                                  {.header = "figures", .fit = report::ColumnFit::kShrinks}}};
  for (const PhaseResult& phase : result.phases)
    table.rows.push_back({phase.name, to_string(phase.verdict), time_of(phase), reported_by(phase)});
  return table;
}

std::string verdict_line(const GamedayResult& result) {
  const auto count = [&](Verdict verdict) {
    return std::count_if(result.phases.begin(), result.phases.end(),
                         [&](const PhaseResult& phase) { return phase.verdict == verdict; });
  };
  std::string text = fmt::format("{} of {} phases passed", count(Verdict::kPass), result.phases.size());
  if (const auto failed = count(Verdict::kFail)) text += fmt::format(", {} failed", failed);
  if (const auto skipped = count(Verdict::kSkipped)) text += fmt::format(", {} skipped", skipped);
  return fmt::format("{} in {:.0f} s.", text, result.seconds.value);
}

report::HtmlNote note_of(const PhaseResult& phase) {
  switch (phase.verdict) {
    case Verdict::kPass:
      return {
          .tone = report::NoteTone::kGood, .title = "Passed", .text = fmt::format("{}", fmt::join(phase.held, "; "))};
    case Verdict::kFail:
      return {.tone = report::NoteTone::kBad, .title = "Failed", .text = phase.why};
    case Verdict::kSkipped:
      break;
  }
  return {.tone = report::NoteTone::kInfo, .title = "Skipped", .text = phase.why};
}

void add_phase(report::HtmlPage& page, const PhaseResult& phase) {
  page.blocks.push_back(report::HtmlHeading{phase.title});
  page.blocks.push_back(note_of(phase));
  report::HtmlFacts figures;
  for (const Figure& figure : phase.figures) {
    const std::string note = figure.note.empty() ? "" : fmt::format(" ({})", figure.note);
    figures.facts.emplace_back(figure.name, fmt::format("{:.3g} {}{}", figure.value, figure.unit, note));
  }
  if (!figures.facts.empty()) page.blocks.push_back(std::move(figures));
  page.blocks.insert(page.blocks.end(), phase.blocks.begin(), phase.blocks.end());
  std::string lines;
  for (const PlayedCommand& command : phase.commands) {
    lines +=
        fmt::format("# {}, status {}\n$ {}\n", yoke::to_string(command.seconds), command.exit_status, command.line);
  }
  if (!lines.empty())
    page.blocks.push_back(
        report::HtmlPreformatted{std::move(lines), fmt::format("Commands of this phase: {}", phase.commands.size())});
}

}  // namespace

std::string summary_text(const GamedayResult& result) {
  return fmt::format("{}\n{}\n", report::render_text(overview(result), report::for_output(100)), verdict_line(result));
}

report::HtmlPage gameday_page(const GamedayResult& result) {
  report::HtmlPage page{.title = "Game day"};
  const BuildInfo build = build_info();
  page.blocks.push_back(report::HtmlFacts{{{"place", result.place},
                                           {"began", result.started},
                                           {"program", fmt::format("yoke {} ({})", build.version, build.commit)}}});
  page.blocks.push_back(report::HtmlNote{.tone = result.passed() ? report::NoteTone::kGood : report::NoteTone::kBad,
                                         .title = result.passed() ? "Passed" : "Failed",
                                         .text = verdict_line(result)});
  page.blocks.push_back(overview(result));
  page.blocks.push_back(report::HtmlParagraph{
      "Every figure below comes from a command of the program, shown with it: each can be typed again."});
  if (!result.strip.empty()) {
    page.blocks.push_back(report::HtmlHeading{"The day in plots"});
    page.blocks.push_back(report::HtmlParagraph{
        "Recorded by 'yoke watch' beside the phases: what the rails carried, tokens and memory, with a mark where a "
        "finding began. The faults below are among them."});
    page.blocks.insert(page.blocks.end(), result.strip.begin(), result.strip.end());
  }
  for (const PhaseResult& phase : result.phases) add_phase(page, phase);
  return page;
}

}  // namespace yoke::gameday
