#include "yoke/watch/rates.h"

#include <algorithm>

namespace yoke::watch {
namespace {

constexpr double kEvents = 1e12;        // errors and packets of a second: more is a reset that looks like growth
constexpr double kWrap32 = 4294967296;  // counters of some drivers have 32 bits

std::optional<BytesPerSecond> bytes_rate(const Total& before, const Total& after, Seconds elapsed) {
  const auto value = rate(before, after, elapsed);
  return value ? std::optional(BytesPerSecond{*value}) : std::nullopt;
}

std::optional<double> share(const Total& before, const Total& after, Seconds elapsed, double per_second) {
  const auto value = rate(before, after, elapsed, per_second * 4);
  return value ? std::optional(std::min(1.0, *value / per_second)) : std::nullopt;
}

template <class Value>
std::optional<Value> sum(const std::optional<Value>& a, const std::optional<Value>& b) {
  if (!a || !b) return a ? a : b;
  return *a + *b;
}

template <class Item, class Same>
const Item* find_same(const std::vector<Item>* list, Same same) {
  if (!list) return nullptr;
  const auto found = std::find_if(list->begin(), list->end(), same);
  return found == list->end() ? nullptr : &*found;
}

RailRates rail_rates(const RailSample* before, const RailSample& after, Seconds elapsed) {
  if (!before) return {};
  return {.received = bytes_rate(before->rx_bytes, after.rx_bytes, elapsed),
          .sent = bytes_rate(before->tx_bytes, after.tx_bytes, elapsed),
          .rdma_received = bytes_rate(before->rdma_rx_bytes, after.rdma_rx_bytes, elapsed),
          .rdma_sent = bytes_rate(before->rdma_tx_bytes, after.rdma_tx_bytes, elapsed),
          .errors = growth(sum(sum(before->rx_errors, before->tx_errors), before->rdma_errors),
                           sum(sum(after.rx_errors, after.tx_errors), after.rdma_errors), kEvents),
          .discards = sum(growth(sum(sum(before->rx_dropped, before->tx_dropped), before->rdma_discards),
                                 sum(sum(after.rx_dropped, after.tx_dropped), after.rdma_discards), kEvents),
                          growth(before->discards_received, after.discards_received, kEvents)),
          .retransmits = growth(before->rdma_retransmits, after.rdma_retransmits, kEvents),
          .pauses = growth(sum(before->pause_received, before->pause_sent), sum(after.pause_received, after.pause_sent),
                           kEvents),
          .pauses_sent = growth(before->pause_sent, after.pause_sent, kEvents),
          .discards_received = growth(before->discards_received, after.discards_received, kEvents)};
}

GpuRates gpu_rates(const GpuSample* before, const GpuSample& after, Seconds elapsed) {
  if (!before || before->lost || after.lost) return {};
  return {.nvlink_received = bytes_rate(before->nvlink_rx_bytes, after.nvlink_rx_bytes, elapsed),
          .nvlink_sent = bytes_rate(before->nvlink_tx_bytes, after.nvlink_tx_bytes, elapsed),
          .thermal_share = share(before->thermal_violation_ns, after.thermal_violation_ns, elapsed, 1e9),
          .power_share = share(before->power_violation_ns, after.power_violation_ns, elapsed, 1e9),
          .xids = growth(before->xid_count, after.xid_count, kEvents),
          .ecc_uncorrected = growth(before->ecc_uncorrected, after.ecc_uncorrected, kEvents)};
}

EngineRates engine_rates(const EngineSample* before, const EngineSample& after, Seconds elapsed) {
  if (!before) return {};
  return {.prompt_tokens = rate(before->prompt_tokens, after.prompt_tokens, elapsed, 1e9),
          .generated_tokens = rate(before->generated_tokens, after.generated_tokens, elapsed, 1e9)};
}

void add_disks(const Sample& before, const Sample& after, Rates& rates) {
  for (const DiskSample& disk : after.disks) {
    const DiskSample* was = find_same(&before.disks, [&](const DiskSample& d) { return d.name == disk.name; });
    if (!was) continue;
    const auto read = bytes_rate(was->read_bytes, disk.read_bytes, rates.elapsed);
    const auto written = bytes_rate(was->written_bytes, disk.written_bytes, rates.elapsed);
    if (read) rates.disk_read = rates.disk_read.value_or(BytesPerSecond{}) + *read;
    if (written) rates.disk_written = rates.disk_written.value_or(BytesPerSecond{}) + *written;
  }
}

void add_machine(const Sample& before, const Sample& after, Rates& rates) {
  const std::int64_t ticks = after.cpu.total - before.cpu.total;
  const std::int64_t busy = after.cpu.busy - before.cpu.busy;
  if (ticks > 0 && busy >= 0 && busy <= ticks) {
    rates.cpu_busy = static_cast<double>(busy) / static_cast<double>(ticks);
  }
  const MemorySample& was = before.memory;
  const MemorySample& now = after.memory;
  rates.memory_some = share(was.pressure_some_us, now.pressure_some_us, rates.elapsed, 1e6);
  rates.memory_full = share(was.pressure_full_us, now.pressure_full_us, rates.elapsed, 1e6);
  if (was.available && now.available) {
    const auto change = static_cast<double>(now.available->value - was.available->value);
    rates.memory_available_change = BytesPerSecond{change / rates.elapsed.value};
  }
  rates.tcp_retransmits = growth(before.tcp_retransmits, after.tcp_retransmits, kEvents);
  add_disks(before, after, rates);
}

}  // namespace

std::optional<double> growth(const Total& before, const Total& after, double most) {
  if (!before || !after || *before < 0 || *after < 0) return std::nullopt;
  double grown = static_cast<double>(*after) - static_cast<double>(*before);
  // Only a counter that was near its end can have wrapped: one that begins again at a low value was reset.
  if (grown < 0 && static_cast<double>(*before) < kWrap32 && static_cast<double>(*before) > kWrap32 / 2) {
    grown += kWrap32;
  }
  if (grown < 0 || grown > most) return std::nullopt;
  return grown;
}

std::optional<double> rate(const Total& before, const Total& after, Seconds elapsed, double most_per_second) {
  if (elapsed.value <= 0) return std::nullopt;
  const auto grown = growth(before, after, most_per_second * elapsed.value);
  return grown ? std::optional(*grown / elapsed.value) : std::nullopt;
}

Rates rates_between(const Sample* before, const Sample& after) {
  Rates rates;
  // Uptime that went backwards: the node booted in between.
  const bool comparable = before && after.uptime > before->uptime;
  if (comparable) {
    rates.elapsed = {after.uptime - before->uptime};
    add_machine(*before, after, rates);
  }
  const Sample* was = comparable ? before : nullptr;
  for (const RailSample& rail : after.rails) {
    rates.rails.push_back(rail_rates(
        find_same(was ? &was->rails : nullptr, [&](const RailSample& r) { return r.interface == rail.interface; }),
        rail, rates.elapsed));
  }
  for (const GpuSample& gpu : after.gpus) {
    rates.gpus.push_back(
        gpu_rates(find_same(was ? &was->gpus : nullptr, [&](const GpuSample& g) { return g.index == gpu.index; }), gpu,
                  rates.elapsed));
  }
  for (const EngineSample& engine : after.engines) {
    const auto same = [&](const EngineSample& e) { return e.port == engine.port && e.kind == engine.kind; };
    rates.engines.push_back(engine_rates(find_same(was ? &was->engines : nullptr, same), engine, rates.elapsed));
  }
  return rates;
}

}  // namespace yoke::watch
