#include "yoke/probe/kernel_log.h"

#include <sys/klog.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string>

#include "yoke/base/text.h"

namespace yoke::probe {
namespace {

constexpr std::size_t kMaxXids = 64;           // entries: 8 GPUs with 8 numbers each
constexpr std::streamoff kMaxLog = 8LL << 20;  // of kern.log, from its end: it can be of any size
constexpr std::size_t kMaxLine = 1 << 10;      // the kernel's own lines have at most 1 kB
constexpr int kReadAll = 3, kBufferSize = 10;  // klogctl's SYSLOG_ACTION_READ_ALL and _SIZE_BUFFER

// "(PCI:0000:1b:00): 79, pid=4711, …" behind "NVRM: Xid "
std::optional<spec::XidLine> parse_xid(std::string_view text) {
  constexpr std::string_view kPci = "(PCI:";
  if (!text.starts_with(kPci)) return std::nullopt;
  const std::size_t close = text.find("): ");
  if (close == std::string_view::npos || close > 40) return std::nullopt;
  const std::string_view digits = text.substr(close + 3);
  spec::XidLine xid{.pci_address = printable(text.substr(kPci.size(), close - kPci.size()), 40)};
  const auto [rest, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), xid.number);
  if (failure != std::errc{} || xid.number <= 0) return std::nullopt;
  return xid;
}

// A line of the log from before this start of the machine tells of another one: kern.log is kept over restarts. The
// kernel's first line has its time before it, "[    0.000000] ", or the word of a daemon that leaves the time out.
std::string_view since_start(std::string_view log) {
  std::size_t start = 0;
  for (const std::string_view mark : {"] Linux version ", "kernel: Linux version "}) {
    if (const std::size_t at = log.rfind(mark); at != std::string_view::npos) start = std::max(start, at);
  }
  return log.substr(start);
}

}  // namespace

std::vector<spec::XidLine> parse_xids(std::string_view log) {
  constexpr std::string_view kMark = "NVRM: Xid ";
  std::vector<spec::XidLine> all;
  std::vector<std::string_view> lines;  // the last of each
  for (std::size_t at = log.find(kMark); at != std::string_view::npos; at = log.find(kMark, at + kMark.size())) {
    std::string_view line = log.substr(at, kMaxLine);
    line = line.substr(0, line.find('\n'));
    auto xid = parse_xid(line.substr(kMark.size()));
    if (!xid) continue;
    const auto known = std::find_if(all.begin(), all.end(), [&](const spec::XidLine& other) {
      return other.number == xid->number && other.pci_address == xid->pci_address;
    });
    if (known != all.end()) {
      ++known->count;
      lines[static_cast<std::size_t>(known - all.begin())] = line;
    } else if (all.size() < kMaxXids) {
      all.push_back(*std::move(xid));
      lines.push_back(line);
    }
  }
  for (std::size_t i = 0; i < all.size(); ++i) all[i].line = printable(trim(lines[i]), 200);
  return all;
}

std::vector<spec::XidLine> read_xids_of(const std::filesystem::path& path) {
  std::error_code failure;
  if (!std::filesystem::is_regular_file(path, failure)) return {};  // a pipe would keep us waiting
  std::ifstream file(path, std::ios::binary);
  if (!file.seekg(0, std::ios::end)) return {};
  const std::streamoff end = file.tellg();
  file.seekg(std::max<std::streamoff>(0, end - kMaxLog));
  std::string tail(static_cast<std::size_t>(std::min(end, kMaxLog)), '\0');
  file.read(tail.data(), static_cast<std::streamsize>(tail.size()));
  tail.resize(static_cast<std::size_t>(file.gcount()));
  return parse_xids(since_start(tail));
}

std::vector<spec::XidLine> read_xids_here() {
  const int size = klogctl(kBufferSize, nullptr, 0);
  if (size > 0) {
    std::string buffer(static_cast<std::size_t>(size), '\0');
    const int read = klogctl(kReadAll, buffer.data(), size);
    if (read >= 0) return parse_xids(std::string_view(buffer).substr(0, static_cast<std::size_t>(read)));
  }
  return read_xids_of("/var/log/kern.log");
}

}  // namespace yoke::probe
