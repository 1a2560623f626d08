#include "yoke/watch/watch_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace yoke::watch {
namespace {

using report::ColumnFit;
using report::TextAlign;

std::string size_text(const std::optional<Bytes>& size) { return size ? to_string(*size) : "-"; }

std::string gpu_summary(const Sample& sample) {
  if (sample.gpus.empty()) return sample.gpu_problem ? "failed" : "-";
  std::optional<double> busy;
  std::size_t lost = 0;
  for (const GpuSample& gpu : sample.gpus) {
    if (gpu.lost) ++lost;
    if (gpu.utilization_percent) busy = busy.value_or(0) + *gpu.utilization_percent / 100.0;
  }
  if (busy) *busy /= static_cast<double>(sample.gpus.size() - std::min(lost, sample.gpus.size() - 1));
  return fmt::format("{} x {}{}", sample.gpus.size() - lost, percent_text(busy),
                     lost > 0 ? ", lost " + std::to_string(lost) : "");
}

// Corrected and uncorrectable memory errors since the driver was loaded: "12/0".
std::string ecc_text(const GpuSample& gpu) {
  if (!gpu.ecc_corrected && !gpu.ecc_uncorrected) return "-";
  const auto count = [](const Total& total) { return total ? std::to_string(*total) : "-"; };
  return count(gpu.ecc_corrected) + "/" + count(gpu.ecc_uncorrected);
}

std::string hottest(const Sample& sample) {
  std::optional<double> celsius;
  for (const SensorSample& sensor : sample.sensors) {
    if (sensor.celsius) celsius = std::max(celsius.value_or(*sensor.celsius), *sensor.celsius);
  }
  return celsius ? fmt::format("{:.0f} C", *celsius) : "-";
}

std::string node_state(const BoardNode& node, double now) {
  if (node.silent && node.heard) return "silent for " + age_text(now - *node.heard);
  if (node.silent) return "not reached";
  return node.sample ? "ok" : "being reached";
}

}  // namespace

std::string percent_text(const std::optional<double>& share) {
  return share ? fmt::format("{:.0f}%", *share * 100) : "-";
}

std::string number_text(const std::optional<int>& value, std::string_view unit) {
  return value ? fmt::format("{}{}{}", *value, unit.empty() || unit == "%" ? "" : " ", unit) : "-";
}

std::string rate_text(const std::optional<BitsPerSecond>& rate) {
  if (!rate) return "-";
  return rate->value < 1e3 ? "0" : to_string(*rate);
}

std::string local_time_text(double time) {
  const auto seconds = static_cast<time_t>(time);
  tm parts{};
  localtime_r(&seconds, &parts);
  return fmt::format("{:02}:{:02}:{:02}", parts.tm_hour, parts.tm_min, parts.tm_sec);
}

std::string age_text(double seconds) {
  if (seconds < 120) return fmt::format("{:.0f} s", std::max(0.0, seconds));
  if (seconds < 7200) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

std::string span_text(const TrackedFinding& tracked, double now) {
  if (!tracked.began) return {};
  if (tracked.ended) {
    return fmt::format("{} to {}", local_time_text(*tracked.began), local_time_text(*tracked.ended));
  }
  return fmt::format("since {} ({})", local_time_text(*tracked.began), age_text(now - *tracked.began));
}

report::Table node_table(const Board& board) {
  report::Table table{.columns = {{.header = "node"},
                                  {.header = "state"},
                                  {.header = "CPU", .align = TextAlign::kRight},
                                  {.header = "memory free", .align = TextAlign::kRight},
                                  {.header = "GPUs", .align = TextAlign::kRight},
                                  {.header = "rails in", .align = TextAlign::kRight},
                                  {.header = "out", .align = TextAlign::kRight},
                                  {.header = "tokens/s", .align = TextAlign::kRight},
                                  {.header = "hottest", .align = TextAlign::kRight}}};
  for (const BoardNode& node : board.nodes()) {
    std::vector<std::string> row = {node.name, node_state(node, board.now())};
    if (!node.sample || node.silent) {
      row.resize(table.columns.size(), "-");
      table.rows.push_back(std::move(row));
      continue;
    }
    std::optional<BitsPerSecond> in;
    std::optional<BitsPerSecond> out;
    for (const BoardRail& rail : node.rails) {
      if (!rail.is_listed) continue;
      if (rail.in) in = in.value_or(BitsPerSecond{}) + *rail.in;
      if (rail.out) out = out.value_or(BitsPerSecond{}) + *rail.out;
    }
    row.insert(row.end(),
               {percent_text(node.rates.cpu_busy), size_text(node.sample->memory.available), gpu_summary(*node.sample),
                rate_text(in), rate_text(out),
                node.tokens_per_second ? fmt::format("{:.1f}", *node.tokens_per_second) : "-", hottest(*node.sample)});
    table.rows.push_back(std::move(row));
  }
  return table;
}

report::Table rail_table(const Board& board) {
  report::Table table{.columns = {{.header = "node"},
                                  {.header = "rail"},
                                  {.header = "interface"},
                                  {.header = "link"},
                                  {.header = "in", .align = TextAlign::kRight},
                                  {.header = "out", .align = TextAlign::kRight},
                                  {.header = "errors", .align = TextAlign::kRight},
                                  {.header = "discards", .align = TextAlign::kRight},
                                  {.header = "again", .align = TextAlign::kRight},
                                  {.header = "pauses", .align = TextAlign::kRight},
                                  {.header = "PCIe"}}};
  const auto count = [](const std::optional<double>& value) { return value ? fmt::format("{:.0f}", *value) : "-"; };
  for (const BoardNode& node : board.nodes()) {
    if (!node.sample || node.silent) continue;
    for (const BoardRail& rail : node.rails) {
      if (!rail.is_listed && !rail.sample.carrier) continue;
      table.rows.push_back({node.name, rail.title.empty() ? "-" : rail.title, rail.interface,
                            rail.sample.carrier ? "up"
                            : rail.sample.up    ? "no link"
                                                : "down",
                            rate_text(rail.in), rate_text(rail.out), count(rail.rates.errors),
                            count(rail.rates.discards), count(rail.rates.retransmits), count(rail.rates.pauses),
                            rail.sample.pcie_width ? fmt::format("x{}", *rail.sample.pcie_width) : "-"});
    }
  }
  return table;
}

report::Table gpu_table(const Board& board) {
  report::Table table{.columns = {{.header = "node"},
                                  {.header = "GPU"},
                                  {.header = "busy", .align = TextAlign::kRight},
                                  {.header = "SM clock", .align = TextAlign::kRight},
                                  {.header = "temp", .align = TextAlign::kRight},
                                  {.header = "power", .align = TextAlign::kRight},
                                  {.header = "memory used", .align = TextAlign::kRight},
                                  {.header = "held down by", .fit = ColumnFit::kShrinks},
                                  {.header = "ECC", .align = TextAlign::kRight},
                                  {.header = "NVLink in", .align = TextAlign::kRight},
                                  {.header = "NVLink out", .align = TextAlign::kRight}}};
  for (const BoardNode& node : board.nodes()) {
    if (!node.sample || node.silent) continue;
    for (std::size_t i = 0; i < node.sample->gpus.size(); ++i) {
      const GpuSample& gpu = node.sample->gpus[i];
      if (gpu.lost) {
        table.rows.push_back(
            {node.name, std::to_string(gpu.index), "-", "-", "-", "-", "-", "lost: " + *gpu.lost, "-", "-", "-"});
        continue;
      }
      const GpuRates& rates = node.rates.gpus[i];
      table.rows.push_back({node.name, std::to_string(gpu.index), number_text(gpu.utilization_percent, "%"),
                            number_text(gpu.sm_clock_mhz, "MHz"), number_text(gpu.temperature_c, "C"),
                            gpu.power_w ? fmt::format("{:.0f} W", *gpu.power_w) : "-", size_text(gpu.memory_used),
                            fmt::format("{}", fmt::join(gpu.clock_limits, ", ")), ecc_text(gpu),
                            rates.nvlink_received ? to_string(*rates.nvlink_received) : "-",
                            rates.nvlink_sent ? to_string(*rates.nvlink_sent) : "-"});
    }
  }
  return table;
}

report::Table engine_table(const Board& board) {
  report::Table table{.columns = {{.header = "node"},
                                  {.header = "engine"},
                                  {.header = "port", .align = TextAlign::kRight},
                                  {.header = "model", .fit = ColumnFit::kShrinks},
                                  {.header = "running", .align = TextAlign::kRight},
                                  {.header = "waiting", .align = TextAlign::kRight},
                                  {.header = "cache", .align = TextAlign::kRight},
                                  {.header = "tokens/s", .align = TextAlign::kRight}}};
  const auto count = [](const std::optional<std::int64_t>& value) { return value ? std::to_string(*value) : "-"; };
  for (const BoardNode& node : board.nodes()) {
    if (!node.sample || node.silent) continue;
    for (std::size_t i = 0; i < node.sample->engines.size(); ++i) {
      const EngineSample& engine = node.sample->engines[i];
      const auto rate = node.rates.engines[i].generated_tokens;
      const auto tokens = rate ? rate : engine.tokens_per_second;
      table.rows.push_back({node.name, engine.kind, std::to_string(engine.port), engine.model.value_or("-"),
                            count(engine.running), count(engine.waiting), percent_text(engine.cache_usage),
                            tokens ? fmt::format("{:.1f}", *tokens) : "-"});
    }
  }
  return table;
}

report::Table process_table(const Board& board) {
  report::Table table{.columns = {{.header = "node"},
                                  {.header = "GPU"},
                                  {.header = "PID", .align = TextAlign::kRight},
                                  {.header = "user"},
                                  {.header = "memory", .align = TextAlign::kRight},
                                  {.header = "command", .fit = ColumnFit::kShrinks}}};
  for (const BoardNode& node : board.nodes()) {
    if (!node.sample || node.silent) continue;
    for (const GpuSample& gpu : node.sample->gpus) {
      for (const GpuProcessSample& process : gpu.processes) {
        table.rows.push_back({node.name, std::to_string(gpu.index), std::to_string(process.pid),
                              process.user.value_or("-"), size_text(process.memory), process.command.value_or("-")});
      }
    }
  }
  return table;
}

report::Table job_table(const Board& board) {
  report::Table table{.columns = {{.header = "head node"},
                                  {.header = "job"},
                                  {.header = "ranks", .align = TextAlign::kRight},
                                  {.header = "since"},
                                  {.header = "command", .fit = ColumnFit::kShrinks}}};
  for (const BoardNode& node : board.nodes()) {
    if (!node.sample || node.silent) continue;
    for (const JobSample& job : node.sample->jobs) {
      table.rows.push_back(
          {node.name, job.name, job.ranks > 0 ? std::to_string(job.ranks) : "-", job.since, job.command});
    }
  }
  return table;
}

std::string once_text(const Board& board) {
  std::string text = report::render_text(node_table(board));
  for (const report::Table& table :
       {rail_table(board), gpu_table(board), engine_table(board), job_table(board), process_table(board)}) {
    if (!table.rows.empty()) text += "\n" + report::render_text(table);
  }
  const std::vector<TrackedFinding> findings = board.findings().open();
  text += findings.empty() ? "\nNo findings.\n" : "\n";
  for (const TrackedFinding& tracked : findings) {
    const spec::Finding& finding = tracked.finding;
    text += fmt::format("{}: {} ({})\n  evidence: {}\n  cost: {}\n  fix: {}\n", spec::to_string(finding.severity),
                        finding.what, finding.rule, finding.evidence, finding.consequence, finding.fix);
  }
  return text;
}

std::string spark_line(const std::vector<double>& values, std::size_t width, bool utf8) {
  static constexpr std::array<const char*, 8> kBlocks = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  static constexpr std::string_view kAscii = "_.-=+*#@";
  double most = 0;
  for (const double value : values) {
    if (std::isfinite(value)) most = std::max(most, value);
  }
  std::string line;
  const std::size_t shown = std::min(width, values.size());
  line.append(width - shown, ' ');
  for (std::size_t i = values.size() - shown; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) {
      line += ' ';
      continue;
    }
    const double part = most > 0 ? std::max(0.0, values[i]) / most : 0;
    const auto step = static_cast<std::size_t>(std::min(7.0, std::floor(part * 8)));
    if (utf8) {
      line += kBlocks[step];
    } else {
      line += kAscii[step];
    }
  }
  return line;
}

}  // namespace yoke::watch
