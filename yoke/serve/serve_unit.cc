#include "yoke/serve/serve_unit.h"

#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/files.h"
#include "yoke/base/text.h"

namespace yoke::serve {

// systemd.service(5), "Command lines": '%' is a specifier and '$' a variable, also inside quotes.
std::string systemd_word(const std::string& word) {
  constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@+=:,./-%$";
  const bool plain = !word.empty() && word.find_first_not_of(kPlain) == std::string::npos;
  std::string out = plain ? "" : "\"";
  for (const char c : word) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '%' || c == '$') out += c;
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return plain ? out : out + "\"";
}

std::string serve_unit_text(const ServeUnit& unit, const std::string& title) {
  std::string line = systemd_word(unit.program);
  for (const std::string& word : unit.arguments) {
    if (word != "--unit" && word != "--check") line += " " + systemd_word(word);
  }
  std::string environment;
  for (const auto& [name, value] : unit.environment) {
    std::string assignment = name + "=" + value;
    std::string quoted;
    for (const char c : assignment)
      quoted += c == '%' ? "%%" : c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
    environment += fmt::format("Environment=\"{}\"\n", quoted);
  }
  std::string folder;
  for (const char c : unit.folder) folder += c == '%' ? "%%" : std::string(1, c);
  return fmt::format(
      "# Put this into /etc/systemd/system/yoke-serve.service, then: systemctl enable --now yoke-serve\n"
      "[Unit]\nDescription=yoke serve {}\nAfter=network-online.target\nWants=network-online.target\n\n"
      "[Service]\nType=notify\nExecStart={}\nWorkingDirectory={}\nUser={}\n{}"
      "# The key for --upstream, as OPENAI_API_KEY=…, in a file with mode 600.\nEnvironmentFile=-/etc/yoke/serve.env\n"
      "Restart=on-failure\nRestartSec=5\n"
      "TimeoutStartSec=1800\nTimeoutStopSec={:.0f}\nKillMode=mixed\nLimitNOFILE=65536\nLimitMEMLOCK=infinity\n\n"
      "[Install]\nWantedBy=multi-user.target\n",
      printable(title, 80), line, folder, unit.user, environment, unit.drain_limit.value + 15);
}

std::vector<std::string> own_arguments() {
  const std::string line = read_file("/proc/self/cmdline", Bytes{1 << 20});
  std::vector<std::string> words = split(line, '\0');
  if (!words.empty() && words.back().empty()) words.pop_back();  // each word ends in a zero
  if (!words.empty()) words.erase(words.begin());
  return words;
}

}  // namespace yoke::serve
