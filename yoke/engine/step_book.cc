#include "yoke/engine/step_book.h"

#include <arpa/inet.h>
#include <ifaddrs.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>

#include "yoke/base/fields.h"
#include "yoke/base/ip.h"
#include "yoke/base/json.h"
#include "yoke/base/result.h"
#include "yoke/base/text.h"
#include "yoke/engine/plan.h"
#include "yoke/probe/route_query.h"

namespace yoke::engine {

namespace {

struct BookPage {
  spec::RankAccount account;
  std::vector<double> decode, prefill;  // seconds of exchanges
  double machine_busy = 0;              // seconds of all processors
};
template <class Visitor>
void visit_fields(Visitor& visit, BookPage& page) {
  visit.required("account", page.account);
  visit.optional("decode", page.decode);
  visit.optional("prefill", page.prefill);
  visit.optional("machine_busy", page.machine_busy);
}

constexpr double kNanosecond = 1e-9;

double number_in(std::string_view text) {
  double value = 0;
  const std::string_view digits = trim(text);
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

// "throttled_usec 123" of version 2, "throttled_time 123" (nanoseconds) of version 1.
double throttled_in(const FileTree& tree, const std::string& folder) {
  for (const std::string& line : split(tree.read(folder + "/cpu.stat").value_or(""), '\n')) {
    if (line.starts_with("throttled_usec ")) return 1e-6 * number_in(line.substr(15));
    if (line.starts_with("throttled_time ")) return kNanosecond * number_in(line.substr(15));
  }
  return 0;
}

// The most that any of this process's groups was throttled.
double throttled_time(const FileTree& tree) {
  double most = 0;
  for (const std::string& line : split(tree.read("/proc/self/cgroup").value_or(""), '\n')) {
    const std::vector<std::string> parts = split(line, ':');
    if (parts.size() < 3) continue;
    const bool is_version2 = parts[0] == "0" && parts[1].empty();
    const std::vector<std::string> names = split(parts[1], ',');
    if (!is_version2 && std::ranges::find(names, "cpu") == names.end()) continue;
    const std::string root = is_version2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/" + parts[1];
    for (std::string path = parts[2] == "/" ? "" : parts[2]; !path.empty(); path.erase(path.rfind('/'))) {
      most = std::max(most, throttled_in(tree, root + path));
    }
  }
  return most;
}

// "cpu  user nice system idle iowait irq softirq steal …", in hundredths of a second, of all processors together.
void read_machine_times(const FileTree& tree, ProcessTimes& times) {
  const std::string text = tree.read("/proc/stat").value_or("");
  double stolen = 0;
  int processors = 0;
  for (const std::string& line : split(text, '\n')) {
    if (line.starts_with("cpu ")) {
      const std::vector<std::string> words = split(trim(line.substr(4)), ' ');
      if (words.size() > 7) stolen = 0.01 * number_in(words[7]);
      for (const std::size_t i : {0, 1, 2, 5, 6}) {
        if (i < words.size()) times.busy += 0.01 * number_in(words[i]);
      }
    } else if (line.starts_with("cpu")) {
      ++processors;
    }
  }
  times.stolen = processors > 0 ? stolen / processors : 0;
}

// The word in brackets of "always [madvise] never".
std::string chosen_word(const std::string& text) {
  const std::size_t begin = text.find('[');
  const std::size_t end = text.find(']', begin == std::string::npos ? 0 : begin);
  return begin == std::string::npos || end == std::string::npos ? "" : text.substr(begin + 1, end - begin - 1);
}

void read_memory_facts(const FileTree& tree, spec::RankAccount& account) {
  account.huge_pages = chosen_word(tree.read("/sys/kernel/mm/transparent_hugepage/enabled").value_or(""));
  for (const std::string& line : split(tree.read("/proc/self/smaps_rollup").value_or(""), '\n')) {
    if (line.starts_with("Anonymous:")) account.memory_anonymous = 1024 * number_in(line.substr(10));
    if (line.starts_with("AnonHugePages:")) account.memory_huge = 1024 * number_in(line.substr(14));
  }
}

void keep_times(std::vector<float>& kept, const std::vector<float>& fresh, std::size_t most) {
  if (kept.size() + fresh.size() <= most) kept.insert(kept.end(), fresh.begin(), fresh.end());
}

// By whole microseconds: what is sent stays short.
std::vector<double> rounded(const std::vector<float>& times) {
  std::vector<double> out;
  for (const float time : times) out.push_back(std::round(1e7 * double{time}) / 1e7);
  return out;
}

// The steps whose exchanges were kept are the first ones: their part of all is taken for the whole.
spec::ExchangeShares share_out(const std::vector<const std::vector<double>*>& times,
                               const std::vector<spec::StepSums>& sums) {
  spec::ExchangeShares shares;
  std::size_t count = SIZE_MAX;
  for (const auto* one : times) count = std::min(count, one->size());
  if (times.size() < 2 || count == 0 || count == SIZE_MAX || sums.front().steps == 0 || sums.front().exchanges == 0) {
    return shares;
  }
  double own = 0;
  std::vector<double> all(times.size());
  for (std::size_t i = 0; i < count; ++i) {
    double least = (*times.front())[i];
    for (std::size_t rank = 0; rank < times.size(); ++rank) {
      least = std::min(least, (*times[rank])[i]);
      all[rank] += (*times[rank])[i];
    }
    own += least;
  }
  const double per_step = sums.front().exchanges / sums.front().steps / static_cast<double>(count);
  shares.seconds = own * per_step;
  for (const double one : all) shares.waiting.push_back((one - own) * per_step);
  return shares;
}

}  // namespace

ProcessTimes read_process_times(const FileTree& tree) {
  ProcessTimes times;
  for (const std::string& task : tree.list("/proc/self/task")) {
    // "run wait slices", in nanoseconds
    const std::vector<std::string> words =
        split(tree.read_trimmed("/proc/self/task/" + task + "/schedstat").value_or(""), ' ');
    if (words.size() < 2) continue;
    times.run += kNanosecond * number_in(words[0]);
    times.wait += kNanosecond * number_in(words[1]);
  }
  times.throttled = throttled_time(tree);
  read_machine_times(tree, times);
  return times;
}

StepTokens count_tokens(const StepPlan& plan) {
  StepTokens tokens;
  for (const PlanRow& row : plan.rows) (row.made ? tokens.answers : tokens.prompt) += row.fresh;
  return tokens;
}

StepTokens sum_of_stages(const std::deque<StepTokens>& under_way) {
  StepTokens all;
  for (const StepTokens& one : under_way) {
    all.prompt = std::max(all.prompt, one.prompt);
    all.answers += one.answers;
  }
  return all;
}

void StepBook::watch(ops::TimedBackend* ops, comm::TimedCommunicator* exchange, bool is_aligned) {
  ops_ = ops;
  exchange_ = exchange;
  is_aligned_ = is_aligned;
  if (ops_ != nullptr) ops_->take_shares();  // what loading did is no step
}

void StepBook::before_step(const StepTokens& tokens) {
  rails_before_.clear();
  if (tokens.prompt > 0 && exchange_ != nullptr && exchange_->size() > 1) rails_before_ = exchange_->rail_uses();
}

void StepBook::count_long_step() {
  const comm::ExchangeTimes& times = exchange_->times();
  if (rails_before_.empty() || times.each.empty()) return;
  if (times.bytes / static_cast<double>(times.each.size()) < kLongExchange) return;
  const std::vector<spec::RailUse> now = exchange_->rail_uses();
  if (long_uses_.size() != now.size()) long_uses_.assign(now.size(), {});
  for (std::size_t i = 0; i < now.size() && now.size() == rails_before_.size(); ++i) {
    const spec::RailUse& before = rails_before_[i];
    if (now[i].state != spec::RailState::kUsed || before.state != spec::RailState::kUsed) continue;
    long_uses_[i].long_bytes += now[i].bytes - before.bytes;
    long_uses_[i].long_busy += now[i].busy - before.busy;
  }
}

spec::StepSums& StepBook::sums_of(const StepTokens& tokens) {
  if (tokens.prompt == 0) return decode_;
  return tokens.answers == 0 ? prefill_ : mixed_;
}

void StepBook::skip() {
  if (ops_ != nullptr) ops_->take_shares();
  if (exchange_ != nullptr) exchange_->forget_times();
}

void StepBook::add(const StepTokens& tokens, Seconds took) {
  end_ = real_clock().now();
  if (!has_begun_) {
    // The first step warms caches and wakes threads: it counts for nothing.
    has_begun_ = true;
    start_ = end_;
    first_ = read_process_times(DiskTree("/"));
    skip();
    return;
  }
  spec::StepSums& sums = sums_of(tokens);
  sums.steps += 1;
  sums.tokens += static_cast<double>(tokens.prompt + tokens.answers);
  sums.seconds += took.value;
  if (ops_ != nullptr) {
    const ops::OperationShares shares = ops_->take_shares();
    sums.weights += shares.weights;
    sums.cache += shares.cache;
    sums.others += shares.others;
    sums.weight_bytes += shares.weight_bytes;
    sums.operations += shares.operations;
  }
  if (exchange_ == nullptr) return;
  count_long_step();
  const comm::ExchangeTimes& times = exchange_->times();
  sums.exchange += times.seconds;
  sums.exchanges += static_cast<double>(times.each.size());
  sums.exchange_bytes += times.bytes;
  if (is_aligned_ && &sums == &decode_) keep_times(decode_exchanges_, times.each, kMaxExchanges);
  if (is_aligned_ && &sums == &prefill_) keep_times(prefill_exchanges_, times.each, kMaxExchanges);
  exchange_->forget_times();
}

std::string StepBook::page(const BookFacts& facts, std::vector<spec::RailUse> rails) {
  BookPage page;
  spec::RankAccount& account = page.account;
  for (std::size_t i = 0; i < rails.size() && rails.size() == long_uses_.size(); ++i) {
    rails[i].long_bytes = long_uses_[i].long_bytes;
    rails[i].long_busy = long_uses_[i].long_busy;
  }
  account = {.rank = facts.rank,
             .node = facts.node,
             .machine = facts.machine,
             .threads = facts.threads,
             .decode = decode_,
             .prefill = prefill_,
             .mixed = mixed_,
             .wall = has_begun_ ? to_seconds(end_ - start_).value : 0,
             .weights_held = facts.weights,
             .huge_pages = {},
             .rails = std::move(rails)};
  if (has_begun_) {
    const ProcessTimes now = read_process_times(DiskTree("/"));
    // A thread that has ended took its counts with it.
    account.processor_time = std::max(0.0, now.run - first_.run);
    account.processor_wait = std::max(0.0, now.wait - first_.wait);
    account.throttled = std::max(0.0, now.throttled - first_.throttled);
    account.stolen = std::max(0.0, now.stolen - first_.stolen);
    page.machine_busy = std::max(0.0, now.busy - first_.busy);
  }
  read_memory_facts(DiskTree("/"), account);
  page.decode = rounded(decode_exchanges_);
  page.prefill = rounded(prefill_exchanges_);
  return print_json(to_document(page), JsonLayout::kOneLine);
}

namespace {

// How much of a machine's busy time was not its ranks'.
double others_share(const BookPage& page, const std::vector<BookPage>& all) {
  double ours = 0;
  for (const BookPage& one : all) {
    if (one.account.machine == page.account.machine) ours += one.account.processor_time;
  }
  return page.machine_busy > 0 ? std::clamp(1 - ours / page.machine_busy, 0.0, 1.0) : 1;
}

}  // namespace

spec::StepAccount join_books(const std::vector<std::string>& pages, std::string transport) {
  std::vector<BookPage> books;
  for (const std::string& text : pages) books.push_back(from_json<BookPage>(parse_json(text, "a page of a rank")));
  spec::StepAccount account{.transport = std::move(transport), .ranks = {}, .decode = {}, .prefill = {}};
  std::vector<const std::vector<double>*> decode, prefill;
  std::vector<spec::StepSums> decode_sums, prefill_sums;
  for (const BookPage& book : books) {
    account.ranks.push_back(book.account);
    account.ranks.back().processor_wait *= others_share(book, books);
    decode.push_back(&book.decode);
    prefill.push_back(&book.prefill);
    decode_sums.push_back(book.account.decode);
    prefill_sums.push_back(book.account.prefill);
  }
  account.decode = share_out(decode, decode_sums);
  account.prefill = share_out(prefill, prefill_sums);
  return account;
}

void look_up_routes(std::vector<spec::RailUse>& rails) {
  std::map<std::string, std::string> names;  // of interfaces, by address
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owned(list, freeifaddrs);
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    char text[INET_ADDRSTRLEN] = {};
    const auto* const address = reinterpret_cast<const sockaddr_in*>(one->ifa_addr);
    if (inet_ntop(AF_INET, &address->sin_addr, text, sizeof text) != nullptr) names[text] = one->ifa_name;
  }
  for (spec::RailUse& use : rails) {
    const auto found = names.find(use.local);
    if (found != names.end()) use.interface = found->second;
    const auto to = parse_ipv4(use.remote);
    const auto from = parse_ipv4(use.local);
    if (!to || !from) continue;
    const auto routes =
        try_to([&] { return probe::ask_route(*to, found != names.end() ? std::optional(*from) : std::nullopt); });
    if (routes && !routes->empty()) use.route = routes->front();
  }
}

}  // namespace yoke::engine
