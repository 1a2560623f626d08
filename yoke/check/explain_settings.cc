#include "yoke/check/explain_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "yoke/base/text.h"
#include "yoke/check/rule.h"
#include "yoke/check/servers.h"

namespace yoke::check {
namespace {

constexpr std::string_view kNameLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";

bool is_name(std::string_view text) {
  return !text.empty() && text.find_first_not_of(kNameLetters) == std::string_view::npos &&
         (text.front() < '0' || text.front() > '9');
}

// The value that begins the text: in quotes, or up to a blank, a comment's mark or a semicolon.
std::string take_value(std::string_view& text) {
  if (!text.empty() && (text.front() == '"' || text.front() == '\'')) {
    const std::size_t close = text.find(text.front(), 1);
    std::string value(text.substr(1, close == std::string_view::npos ? close : close - 1));
    text.remove_prefix(close == std::string_view::npos ? text.size() : close + 1);
    return value;
  }
  const std::size_t end = text.find_first_of(" \t;");
  std::string value(text.substr(0, end));
  text.remove_prefix(std::min(text.size(), end));
  return value;
}

// "export A=1 B='x y'  # why", "A=1 B=2 python3 train.py", "-x NCCL_DEBUG=INFO".
void read_assignments(std::string_view text, int line, std::vector<ExplainedSetting>& all) {
  while (!(text = trim(text)).empty() && text.front() != '#') {
    const std::size_t equals = text.find('=');
    const std::size_t blank = text.find_first_of(" \t");
    const bool word = blank < equals;  // export, -x, env, or a program's name
    if (equals == std::string_view::npos) return;
    if (word || !is_name(text.substr(0, equals))) {
      if (blank == std::string_view::npos) return;
      text.remove_prefix(blank + 1);
      continue;
    }
    ExplainedSetting setting{.line = line, .name = std::string(text.substr(0, equals))};
    text.remove_prefix(equals + 1);
    setting.value = take_value(text);
    while (!text.empty() && text.front() == ';') text.remove_prefix(1);
    all.push_back(std::move(setting));
  }
}

// "#SBATCH --nodes=2", "#SBATCH -N 2"
void read_directive(std::string_view text, int line, std::vector<ExplainedSetting>& all) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kShort = {
      {{"-N", "--nodes"}, {"-n", "--ntasks"}, {"-t", "--time"}, {"-w", "--nodelist"}}};
  text = trim(text);
  const std::size_t end = text.find_first_of("= \t");
  std::string name(text.substr(0, end));
  for (const auto& [letter, full] : kShort) {
    if (name == letter) name = full;
  }
  std::string_view rest = end == std::string_view::npos ? std::string_view() : trim(text.substr(end + 1));
  all.push_back({.line = line, .name = "SBATCH " + name, .value = take_value(rest)});
}

std::vector<ExplainedSetting> read_settings(std::string_view text) {
  constexpr std::string_view kDirective = "#SBATCH ";
  constexpr std::size_t kMaxSettings = 10'000;
  std::vector<ExplainedSetting> all;
  int number = 0;
  for (const std::string& line : split(text, '\n')) {
    ++number;
    const std::string_view content = trim(line);
    if (content.starts_with(kDirective)) {
      read_directive(content.substr(kDirective.size()), number, all);
    } else {
      read_assignments(content, number, all);
    }
    if (all.size() > kMaxSettings) break;
  }
  return all;
}

bool is_spark(const spec::Survey& facts) {
  return std::ranges::any_of(facts.nodes, [](const auto& node) { return node.machine && is_gb10(*node.machine); });
}

// A server of the survey; null: none.
const spec::Machine* server_in(const spec::Survey& facts) {
  for (const spec::SurveyedNode& node : facts.nodes) {
    if (node.machine && server_of(*node.machine)) return &*node.machine;
  }
  return nullptr;
}

struct Doubt {
  std::string why, fix;
  bool wrong = true;
};

std::optional<Doubt> doubt_on_server(const ExplainedSetting& setting) {
  const auto is = [&](std::string_view name, std::string_view value) {
    return setting.name == name && setting.value == value;
  };
  if (is("NCCL_P2P_DISABLE", "1"))
    return Doubt{"GPUs of a server then leave NVLink: ten times slower inside", "remove it"};
  if (is("NCCL_SHM_DISABLE", "1")) return Doubt{"ranks of one server then meet over the network", "remove it"};
  if (is("NCCL_NVLS_ENABLE", "0")) {
    return Doubt{"all-reduces inside the server lose about a quarter of their rate", "remove it"};
  }
  if (is("NCCL_CUMEM_ENABLE", "0")) return Doubt{"NVLS needs it", "remove it"};
  if (is("NCCL_DMABUF_ENABLE", "0")) {
    return Doubt{"without nvidia-peermem there is no GPUDirect RDMA then", "remove it", false};
  }
  if (is("NCCL_NET_GDR_LEVEL", "LOC") || is("NCCL_NET_GDR_LEVEL", "0")) {
    return Doubt{"it switches GPUDirect RDMA off: about half of the rate between nodes", "remove it"};
  }
  if (setting.name == "NCCL_ALGO" && setting.value.find("NVLS") == std::string::npos) {
    return Doubt{"it keeps NCCL from NVLS inside and from trees between nodes", "remove it: NCCL chooses by size",
                 false};
  }
  if (is("SBATCH --ntasks-per-node", "1")) {
    return Doubt{"right for torchrun, which starts the ranks itself; MPI and srun need one task for each GPU",
                 "--ntasks-per-node=8 unless torchrun starts the ranks", false};
  }
  return std::nullopt;
}

std::optional<Doubt> doubt_on_spark(const ExplainedSetting& setting) {
  if (setting.name.starts_with("NCCL_NET_GDR") || setting.name == "NCCL_DMABUF_ENABLE") {
    return Doubt{"a GB10 has no GPUDirect RDMA: it does nothing here", "remove it", false};
  }
  if (setting.name == "NCCL_NVLS_ENABLE" || setting.name == "NCCL_P2P_DISABLE") {
    return Doubt{"there is one GPU in a Spark: it does nothing here", "remove it", false};
  }
  return std::nullopt;
}

std::optional<Doubt> doubt_anywhere(const ExplainedSetting& setting) {
  int number = 0;
  const auto [rest, failure] =
      std::from_chars(setting.value.data(), setting.value.data() + setting.value.size(), number);
  const bool is_number = failure == std::errc{} && rest == setting.value.data() + setting.value.size();
  if (setting.name == "NCCL_MAX_NCHANNELS" && is_number && number < 8) {
    return Doubt{"each NIC needs a channel of its own, and few channels leave NVLink idle", "remove it"};
  }
  if (setting.name == "NCCL_IB_TIMEOUT" && is_number && (number < 14 || number > 24)) {
    return Doubt{
        "below 14 (67 ms) a short pause of the network ends the job, above 24 (69 s) a dead peer is found late",
        "20 to 23", false};
  }
  if (setting.name == "NCCL_IB_TC" && is_number && number % 4 != 0) {
    return Doubt{"the lower two bits are ECN's: a traffic class is DSCP times 4 (106 means DSCP 26 with ECN)",
                 "say which DSCP the switch maps to the lossless priority, times 4", number != 106};
  }
  if (setting.name == "CUDA_LAUNCH_BLOCKING" && setting.value == "1") {
    return Doubt{"it is for debugging: nothing overlaps", "remove it"};
  }
  if (setting.name == "NCCL_IB_GID_INDEX" && is_number) {
    return Doubt{"right at this moment, but indexes move when addresses change",
                 "remove it: NCCL finds the RoCE v2 GID", false};
  }
  if (setting.name == "NCCL_DEBUG" && (setting.value == "TRACE" || setting.value == "INFO")) {
    return Doubt{"every rank prints: for tests, not for long runs", "WARN", false};
  }
  return std::nullopt;
}

void evaluate(ExplainedSetting& setting, const spec::Survey& facts) {
  std::vector<std::string> names;
  for (const KnownSetting& known : known_settings()) {
    names.emplace_back(known.name);
    if (known.name == setting.name) setting.does = known.does;
  }
  const bool is_known = !setting.does.empty();
  if (!is_known) {
    const bool ours = setting.name.starts_with("NCCL_");
    const auto meant = ours ? nearest(setting.name, names) : std::nullopt;
    if (meant) {
      setting.verdict = SettingVerdict::kDoubtful;
      setting.why = "NCCL ignores names that it does not know";
      setting.fix = fmt::format("did you mean {}?", *meant);
    }
    return;
  }
  setting.verdict = SettingVerdict::kRight;
  std::optional<Doubt> doubt;
  if (server_in(facts)) doubt = doubt_on_server(setting);
  if (!doubt && is_spark(facts)) doubt = doubt_on_spark(setting);
  if (!doubt) doubt = doubt_anywhere(setting);
  if (!doubt) return;
  setting.verdict = doubt->wrong ? SettingVerdict::kWrong : SettingVerdict::kDoubtful;
  setting.why = doubt->why;
  setting.fix = doubt->fix;
}

}  // namespace

std::string_view to_string(SettingVerdict verdict) {
  switch (verdict) {
    case SettingVerdict::kRight:
      return "right";
    case SettingVerdict::kWrong:
      return "wrong";
    case SettingVerdict::kDoubtful:
      return "doubtful";
    case SettingVerdict::kUnknown:
      break;
  }
  return "not known";
}

std::vector<ExplainedSetting> explain_settings(std::string_view text, std::string_view file,
                                               const spec::Survey& facts) {
  std::vector<ExplainedSetting> all = read_settings(text);
  for (ExplainedSetting& setting : all) evaluate(setting, facts);
  // As if every node had these settings and no others; the last of a name counts.
  spec::Survey asked = facts;
  for (spec::SurveyedNode& node : asked.nodes) {
    if (!node.machine) continue;
    node.machine->settings.clear();
    for (const ExplainedSetting& setting : all) {
      std::erase_if(node.machine->settings, [&](const auto& other) { return other.name == setting.name; });
      node.machine->settings.push_back({setting.name, setting.value, fmt::format("{}:{}", file, setting.line)});
    }
  }
  for (const spec::Finding& finding : evaluate(asked, kNeedsLinks | kNeedsAddresses | kNeedsFacts)) {
    if (!finding.rule.starts_with("pin-") && finding.rule != "gid-pinned") continue;
    const auto last = std::find_if(all.rbegin(), all.rend(),
                                   [&](const ExplainedSetting& setting) { return setting.name == finding.subject; });
    if (last == all.rend() || last->verdict == SettingVerdict::kWrong) continue;
    last->verdict = SettingVerdict::kWrong;
    last->why = finding.what;
    last->fix = finding.fix;
  }
  return all;
}

Document to_json(const std::vector<ExplainedSetting>& settings) {
  Document list = Document::list();
  for (const ExplainedSetting& setting : settings) {
    list.items.push_back(Document::map({{"line", Document::number(std::int64_t{setting.line})},
                                        {"name", Document::string(setting.name)},
                                        {"value", Document::string(setting.value)},
                                        {"does", Document::string(setting.does)},
                                        {"verdict", Document::string(std::string(to_string(setting.verdict)))},
                                        {"why", Document::string(setting.why)},
                                        {"fix", Document::string(setting.fix)}}));
  }
  return list;
}

}  // namespace yoke::check
