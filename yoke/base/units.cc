#include "yoke/base/units.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <span>

namespace yoke {
namespace {

struct Unit {
  std::string_view name;
  double factor;
  bool printed = true;  // false: understood, but never written
};

constexpr std::array kSizes = {Unit{"B", 1},
                               Unit{"KiB", 1024.0},
                               Unit{"MiB", 1048576.0},
                               Unit{"GiB", 1073741824.0},
                               Unit{"TiB", 1099511627776.0},
                               Unit{"PiB", 1125899906842624.0},
                               Unit{"kB", 1e3, false},
                               Unit{"MB", 1e6, false},
                               Unit{"GB", 1e9, false},
                               Unit{"TB", 1e12, false},
                               Unit{"PB", 1e15, false}};
constexpr std::array kBitRates = {Unit{"b/s", 1},
                                  Unit{"kb/s", 1e3},
                                  Unit{"Mb/s", 1e6},
                                  Unit{"Gb/s", 1e9},
                                  Unit{"Tb/s", 1e12},
                                  Unit{"bit/s", 1, false},
                                  Unit{"kbit/s", 1e3, false},
                                  Unit{"Mbit/s", 1e6, false},
                                  Unit{"Gbit/s", 1e9, false},
                                  Unit{"Tbit/s", 1e12, false},
                                  Unit{"bps", 1, false},
                                  Unit{"kbps", 1e3, false},
                                  Unit{"Mbps", 1e6, false},
                                  Unit{"Gbps", 1e9, false},
                                  Unit{"Tbps", 1e12, false}};
constexpr std::array kByteRates = {Unit{"B/s", 1}, Unit{"kB/s", 1e3}, Unit{"MB/s", 1e6}, Unit{"GB/s", 1e9},
                                   Unit{"TB/s", 1e12}};
constexpr std::array kTimes = {Unit{"ns", 1e-9}, Unit{"us", 1e-6},       Unit{"ms", 1e-3},
                               Unit{"s", 1},     Unit{"min", 60, false}, Unit{"h", 3600, false}};

struct Kind {
  std::string_view name;
  std::span<const Unit> units;
  std::string_view example;
};
constexpr Kind kSizeKind{"a size", kSizes, "128GiB"};
constexpr Kind kBitRateKind{"a rate in bits per second", kBitRates, "200Gb/s"};
constexpr Kind kByteRateKind{"a rate in bytes per second", kByteRates, "23.7GB/s"};
constexpr Kind kTimeKind{"a time", kTimes, "2.5s"};
constexpr std::array kKinds = {kSizeKind, kBitRateKind, kByteRateKind, kTimeKind};

const Unit* find(std::span<const Unit> units, std::string_view name) {
  for (const Unit& unit : units) {
    if (unit.name == name) return &unit;
  }
  return nullptr;
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

std::string hint_for(const Kind& wanted, std::string_view number, std::string_view unit) {
  if (unit.empty()) return fmt::format("give a unit, as in {}", wanted.example);
  for (const Kind& kind : kKinds) {
    if (kind.name != wanted.name && find(kind.units, unit)) {
      return fmt::format("{} is {}, this must be {}, as in {}", unit, kind.name, wanted.name, wanted.example);
    }
  }
  for (const Unit& candidate : wanted.units) {
    if (equal_ignoring_case(candidate.name, unit)) return fmt::format("did you mean {}{}?", number, candidate.name);
  }
  std::string names;
  for (const Unit& candidate : wanted.units) {
    if (candidate.printed) names += fmt::format("{}{}", names.empty() ? "" : ", ", candidate.name);
  }
  return fmt::format("the units are {}", names);
}

struct Parsed {
  double number;
  double factor;
};

Result<Parsed> parse(const Kind& kind, std::string_view text) {
  const auto fail = [&](std::string hint) {
    const std::string_view shown = text.substr(0, 40);
    return Unexpected(Error(ErrorCode::kInvalid, fmt::format("'{}' is not {}", shown, kind.name), std::move(hint)));
  };
  double number = 0;
  const auto [rest, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure == std::errc::result_out_of_range) return fail("the number is out of range");
  if (failure != std::errc{}) return fail(fmt::format("write a number and a unit, as in {}", kind.example));
  if (!std::isfinite(number) || number < 0 || std::signbit(number)) return fail("it must be a number from 0 up");
  const std::string_view digits = text.substr(0, static_cast<std::size_t>(rest - text.data()));
  std::string_view unit = text.substr(digits.size());
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  const Unit* found = find(kind.units, unit);
  if (!found) return fail(hint_for(kind, digits, unit));
  return Parsed{number, found->factor};
}

template <class Rate>
Result<Rate> parse_real(const Kind& kind, std::string_view text) {
  return parse(kind, text).and_then([&](Parsed parsed) -> Result<Rate> {
    const double value = parsed.number * parsed.factor;
    if (std::isfinite(value)) return Rate{value};
    return Unexpected(Error(ErrorCode::kInvalid, fmt::format("'{}' is too large", text.substr(0, 40))));
  });
}

// Four digits from 100 up to the next unit, three below: 121.6 GiB, 23.7 GB/s, 1.47 us.
std::string number_for_people(double value) {
  if (value == std::floor(value) && std::abs(value) < 10000) return fmt::format("{:.0f}", value);
  const double size = std::abs(value);
  return size < 10 ? fmt::format("{:.2f}", value) : fmt::format("{:.1f}", value);
}

std::string for_people(std::span<const Unit> units, double value) {
  const Unit* best = nullptr;
  for (const Unit& unit : units) {
    if (!unit.printed) continue;
    if (!best || std::abs(value) >= unit.factor) best = &unit;
  }
  return fmt::format("{} {}", number_for_people(value / best->factor), best->name);
}

// The largest unit in which the value has a short exact text, tried by parsing it back: 0.5s and 100Gb/s.
std::string exact_real(const Kind& kind, double value) {
  std::string best = fmt::format("{}{}", value, kind.units.front().name);
  bool found = false;
  for (const Unit& unit : kind.units) {
    if (!unit.printed) continue;
    const std::string text = fmt::format("{}{}", value / unit.factor, unit.name);
    const Result<Parsed> parsed = parse(kind, text);
    const bool same = parsed && parsed->number * parsed->factor == value;
    const bool shorter = text.size() < best.size() || (text.size() == best.size() && std::abs(value) >= unit.factor);
    if (same && (!found || shorter)) {
      best = text;
      found = true;
    }
  }
  return best;
}

}  // namespace

std::string to_string(Bytes size) { return for_people(kSizes, static_cast<double>(size.value)); }
std::string to_string(BitsPerSecond rate) { return for_people(kBitRates, rate.value); }
std::string to_string(BytesPerSecond rate) { return for_people(kByteRates, rate.value); }
std::string to_string(Seconds time) { return for_people(kTimes, time.value); }

std::string exact(Bytes size) {
  for (auto unit = kSizes.rbegin(); unit != kSizes.rend(); ++unit) {
    const auto factor = static_cast<std::int64_t>(unit->factor);
    if (unit->printed && size.value != 0 && size.value % factor == 0) {
      return fmt::format("{}{}", size.value / factor, unit->name);
    }
  }
  return "0B";
}
std::string exact(BitsPerSecond rate) { return exact_real(kBitRateKind, rate.value); }
std::string exact(BytesPerSecond rate) { return exact_real(kByteRateKind, rate.value); }
std::string exact(Seconds time) { return exact_real(kTimeKind, time.value); }

// A whole number of some unit in integers: a double holds only 53 bits of it.
static std::optional<Bytes> parse_whole_bytes(std::string_view text) {
  std::int64_t count = 0;
  const auto [rest, failure] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (failure != std::errc{} || text.starts_with('-')) return std::nullopt;
  std::string_view name = text.substr(static_cast<std::size_t>(rest - text.data()));
  while (name.starts_with(' ')) name.remove_prefix(1);
  const Unit* unit = find(kSizes, name);
  Bytes size;
  if (!unit || __builtin_mul_overflow(count, static_cast<std::int64_t>(unit->factor), &size.value)) return std::nullopt;
  return size;
}

Result<Bytes> parse_bytes(std::string_view text) {
  if (const auto whole = parse_whole_bytes(text)) return *whole;
  return parse(kSizeKind, text).and_then([&](Parsed parsed) -> Result<Bytes> {
    const double value = parsed.number * parsed.factor;
    if (value < 9.2e18) return Bytes{std::llround(value)};
    return Unexpected(Error(ErrorCode::kInvalid, fmt::format("'{}' is too large", text.substr(0, 40))));
  });
}
Result<BitsPerSecond> parse_bits_per_second(std::string_view text) {
  return parse_real<BitsPerSecond>(kBitRateKind, text);
}
Result<BytesPerSecond> parse_bytes_per_second(std::string_view text) {
  return parse_real<BytesPerSecond>(kByteRateKind, text);
}
Result<Seconds> parse_seconds(std::string_view text) { return parse_real<Seconds>(kTimeKind, text); }

}  // namespace yoke
