#include "yoke/watch/screen.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "yoke/base/text.h"
#include "yoke/watch/watch_text.h"

namespace yoke::watch {
namespace {

constexpr std::size_t kPlotLabel = 26;

// Cut at a column, never within a character.
std::string cut_to(std::string_view text, std::size_t width) {
  std::string line;
  std::size_t columns = 0;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t size = 1;
    while (i + size < text.size() && (static_cast<unsigned char>(text[i + size]) & 0xC0U) == 0x80U) ++size;
    if (columns == width) break;
    line += text.substr(i, size);
    ++columns;
    i += size;
  }
  return line;
}

// One value for each character of a plot: the mean of the samples that it stands for.
std::vector<double> zoomed(const History& history, const std::string& series, std::size_t width, std::size_t seconds) {
  const std::vector<double> values = history.last(series, width * seconds);
  std::vector<double> means;
  for (std::size_t end = values.size(); end > 0; end -= std::min(end, seconds)) {
    double sum = 0;
    std::size_t count = 0;
    for (std::size_t i = end - std::min(end, seconds); i < end; ++i) {
      if (!std::isfinite(values[i])) continue;
      sum += values[i];
      ++count;
    }
    means.push_back(count > 0 ? sum / static_cast<double>(count) : std::nan(""));
  }
  std::reverse(means.begin(), means.end());
  return means;
}

std::string value_text(const std::string& series, double value) {
  if (!std::isfinite(value)) return "-";
  if (series == "memory") return to_string(Bytes{static_cast<std::int64_t>(value)});
  if (series.starts_with("rail/")) return rate_text(BitsPerSecond{value});
  if (series.find("/nvlink/") != std::string::npos) return to_string(BytesPerSecond{value});
  if (series.ends_with("clock")) return fmt::format("{:.0f} MHz", value);
  if (series.ends_with("power")) return fmt::format("{:.0f} W", value);
  if (series.ends_with("temperature")) return fmt::format("{:.0f} C", value);
  if (series == "tokens") return fmt::format("{:.1f}/s", value);
  return fmt::format("{:.0f}%", value);
}

class ScreenPainter {
 public:
  ScreenPainter(const Board& board, const ScreenState& state, const ScreenSize& size)
      : board_(board), state_(state), size_(size) {}

  std::vector<ScreenLine> paint() {
    head();
    switch (state_.view) {
      case ScreenView::kNodes:
        nodes();
        break;
      case ScreenView::kRails:
        table(rail_table(board_));
        break;
      case ScreenView::kGpus:
        table(gpu_table(board_));
        break;
      case ScreenView::kProcesses:
        table(process_table(board_));
        add("");
        table(engine_table(board_));
        add("");
        table(job_table(board_));
        break;
      case ScreenView::kFindings:
        findings();
        break;
      case ScreenView::kHelp:
        help();
        break;
    }
    return fitted();
  }

 private:
  void add(std::string text, ScreenTone tone = ScreenTone::kPlain) { lines_.push_back({std::move(text), tone}); }

  void head() {
    const std::size_t open = board_.findings().open().size();
    const auto silent =
        std::count_if(board_.nodes().begin(), board_.nodes().end(), [](const BoardNode& node) { return node.silent; });
    add(fmt::format("yoke watch {}  {}  {} node{}{}  {} finding{}{}", board_.plan().cluster.name,
                    local_time_text(board_.now()), board_.nodes().size(), board_.nodes().size() == 1 ? "" : "s",
                    silent > 0 ? fmt::format(", {} silent", silent) : "", open, open == 1 ? "" : "s",
                    state_.paused ? "  PAUSED" : ""),
        open > 0 ? ScreenTone::kBad : ScreenTone::kTitle);
    add("1 nodes 2 rails 3 GPUs 4 processes 5 findings  p pause  z zoom  ? help  q quit", ScreenTone::kDim);
    add("");
  }

  void table(report::Table table) {
    if (table.rows.empty()) {
      add(fmt::format("no {}", table.columns[std::min<std::size_t>(1, table.columns.size() - 1)].header + " here"),
          ScreenTone::kDim);
      return;
    }
    const std::size_t column = state_.sort % (table.columns.size() + 1);
    if (column > 0) {  // 0: as the cluster file has them
      std::stable_sort(table.rows.begin(), table.rows.end(),
                       [&](const auto& a, const auto& b) { return a[column - 1] < b[column - 1]; });
    }
    const std::string text = report::render_text(table, {.width = report::kUnlimitedWidth});
    std::size_t row = 0;
    for (const std::string& line : split(text, '\n')) {
      const bool is_head = row < 2;
      if (!line.empty() && (is_head || row >= 2 + state_.scroll)) {
        add(line, row == 0 ? ScreenTone::kTitle : tone_of(line));
      }
      ++row;
    }
  }

  static ScreenTone tone_of(const std::string& line) {
    for (const char* word : {"silent", "not reached", "lost", "no link", " down "}) {
      if (line.find(word) != std::string::npos) return ScreenTone::kBad;
    }
    return line.find("thermal") != std::string::npos ? ScreenTone::kWarning : ScreenTone::kPlain;
  }

  void nodes() {
    const std::size_t before = lines_.size();
    table(node_table(board_));
    const std::size_t place = std::min(state_.selected, board_.nodes().size() - 1);
    if (state_.sort == 0 && place >= state_.scroll && before + 2 + place - state_.scroll < lines_.size()) {
      ScreenLine& line = lines_[before + 2 + place - state_.scroll];
      if (line.tone == ScreenTone::kPlain) line.tone = ScreenTone::kMarked;
    }
    // Findings come before plots: they must fit.
    add("");
    finding_lines(3);
    plots(board_.nodes()[place]);
  }

  void plots(const BoardNode& node) {
    const std::size_t seconds = kZoomSeconds[state_.zoom % std::size(kZoomSeconds)];
    if (size_.width < kPlotLabel + 10) return;
    const std::size_t width = size_.width - kPlotLabel - 12;
    add(fmt::format("{}, one character is {} s", node.name, seconds), ScreenTone::kDim);
    for (const auto& [series, values] : node.history.series()) {
      const std::vector<double> last = node.history.last(series, 1);
      std::string label = series;
      for (const BoardRail& rail : node.rails) {
        const std::string prefix = "rail/" + rail.interface;
        if (series.starts_with(prefix)) {
          label = fmt::format("rail {} {}", rail.title.empty() ? rail.interface : rail.title,
                              series.substr(prefix.size() + 1));
        }
      }
      add(fmt::format("{:<{}}{:>11} {}", cut_to(label, kPlotLabel - 1), kPlotLabel - 1,
                      value_text(series, last.empty() ? std::nan("") : last.back()),
                      spark_line(zoomed(node.history, series, width, seconds), width, size_.utf8)));
    }
  }

  void finding_lines(std::size_t most) {
    const std::vector<TrackedFinding> open = board_.findings().open();
    for (std::size_t i = 0; i < std::min(most, open.size()); ++i) {
      add(fmt::format("{} {} {}: {}", spec::to_string(open[i].finding.severity), open[i].finding.rule,
                      span_text(open[i], board_.now()), open[i].finding.what),
          tone_of(open[i]));
    }
    if (open.size() > most) add(fmt::format("and {} more: key 5", open.size() - most), ScreenTone::kDim);
  }

  static ScreenTone tone_of(const TrackedFinding& tracked) {
    return tracked.finding.severity == spec::Severity::kError ? ScreenTone::kBad : ScreenTone::kWarning;
  }

  void finding(const TrackedFinding& tracked, ScreenTone tone) {
    const spec::Finding& finding = tracked.finding;
    add(fmt::format("{}: {} ({})", spec::to_string(finding.severity), finding.what, finding.rule), tone);
    add(fmt::format("  {}  evidence: {}", span_text(tracked, board_.now()), finding.evidence));
    if (tracked.ended) return;
    for (const BoardNode& node : board_.nodes()) {
      const auto series = node.name == finding.node ? board_.series_of(finding) : std::nullopt;
      if (!series || node.history.last(*series, 1).empty() || size_.width < 40) continue;
      const std::size_t width = std::min<std::size_t>(60, size_.width - 30);
      add(fmt::format("  {:<24} {}", cut_to(*series, 24),
                      spark_line(node.history.last(*series, width), width, size_.utf8)),
          ScreenTone::kDim);
    }
    add("  cost: " + finding.consequence);
    add("  fix: " + finding.fix);
  }

  void findings() {
    const std::vector<TrackedFinding> open = board_.findings().open();
    if (open.empty()) add("No findings.", ScreenTone::kGood);
    for (std::size_t i = std::min(state_.scroll, open.empty() ? 0 : open.size() - 1); i < open.size(); ++i) {
      finding(open[i], tone_of(open[i]));
    }
    const std::vector<TrackedFinding>& closed = board_.findings().closed();
    if (!closed.empty()) add("");
    if (!closed.empty()) add("Ended:", ScreenTone::kTitle);
    for (auto ended = closed.rbegin(); ended != closed.rend(); ++ended) finding(*ended, ScreenTone::kDim);
  }

  void help() {
    for (const char* line :
         {"1..5      nodes, rails, GPUs, processes (with engines and jobs), findings",
          "up, down  choose a node, or move the table", "p, blank  pause: samples are still taken, and recorded",
          "z         zoom the time axis: 1, 5, 15 or 60 s for a character", "s         sort by the next column",
          "?, h      this help", "q         quit", "",
          "'-' is what a machine does not give. A rail's rate is that of its",
          "interface or of its RDMA port, whichever is higher.", "docs/watch.md explains every value and finding."}) {
      add(line);
    }
  }

  std::vector<ScreenLine> fitted() {
    for (ScreenLine& line : lines_) line.text = cut_to(terminal_safe(line.text), size_.width);
    lines_.resize(size_.height);
    return std::move(lines_);
  }

  const Board& board_;
  const ScreenState& state_;
  const ScreenSize& size_;
  std::vector<ScreenLine> lines_;
};

}  // namespace

KeyResult take_key(ScreenState& state, int key, std::size_t nodes) {
  const bool chooses = state.view == ScreenView::kNodes;
  const auto show = [&](ScreenView view) {
    state.view = view;
    state.scroll = 0;
    state.sort = 0;
  };
  switch (key) {
    case 'q':
    case 'Q':
      return KeyResult::kQuit;
    case '1':
    case '2':
    case '3':
    case '4':
    case '5':
      show(static_cast<ScreenView>(key - '1'));
      break;
    case '?':
    case 'h':
      show(state.view == ScreenView::kHelp ? ScreenView::kNodes : ScreenView::kHelp);
      break;
    case 'p':
    case ' ':
      state.paused = !state.paused;
      break;
    case 'z':
      state.zoom = (state.zoom + 1) % std::size(kZoomSeconds);
      break;
    case 's':
      ++state.sort;
      break;
    case kKeyUp:
    case 'k':
      if (chooses && state.selected > 0) --state.selected;
      if (!chooses && state.scroll > 0) --state.scroll;
      break;
    case kKeyDown:
    case 'j':
      if (chooses && state.selected + 1 < nodes) ++state.selected;
      if (!chooses) ++state.scroll;
      break;
    case kKeyPageUp:
      state.scroll -= std::min<std::size_t>(state.scroll, 10);
      break;
    case kKeyPageDown:
      state.scroll += 10;
      break;
    default:
      break;
  }
  return KeyResult::kShown;
}

std::vector<ScreenLine> render_screen(const Board& board, const ScreenState& state, const ScreenSize& size) {
  return ScreenPainter(board, state, size).paint();
}

}  // namespace yoke::watch
