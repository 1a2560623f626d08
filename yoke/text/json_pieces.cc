#include "yoke/text/json_pieces.h"

#include <algorithm>
#include <string>

#include "yoke/text/json_pattern.h"

namespace yoke::text {
namespace {

constexpr std::uint64_t kLargest = 9'999'999'999'999'999;  // 16 digits

std::uint64_t magnitude(std::int64_t value) {
  return std::min(kLargest, value < 0 ? ~static_cast<std::uint64_t>(value) + 1 : static_cast<std::uint64_t>(value));
}

}  // namespace

using At = GrammarBuilder::At;

// Short, as a model that may write blanks for ever sometimes does.
At JsonPieces::space(At from) {
  if (!space_) {
    space_ = builder_.reserve_rule();
    const At begin = builder_.begin(*space_);
    const At end = builder_.node();
    builder_.join(begin, end);
    builder_.range(begin, end, ' ', ' ');
    const At line = builder_.range(begin, '\n', '\n');
    builder_.join(builder_.repeat(line, 0, 20,
                                  [&](At at) {
                                    const At next = builder_.range(at, ' ', ' ');
                                    builder_.range(at, next, '\t', '\t');
                                    return next;
                                  }),
                  end);
    builder_.end_rule(end);
  }
  return builder_.call(from, *space_);
}

At JsonPieces::character(At from) {
  if (!character_) {
    character_ = builder_.reserve_rule();
    const At begin = builder_.begin(*character_);
    const At end = builder_.any_text_byte(begin);
    builder_.range(begin, end, 0x20, 0x21);
    builder_.range(begin, end, 0x23, 0x5B);
    builder_.range(begin, end, 0x5D, 0x7F);
    const At escape = builder_.range(begin, '\\', '\\');
    for (const char c : std::string_view("\"\\/bfnrt")) builder_.range(escape, end, c, c);
    // No halves of surrogate pairs, which no reader could make a character of.
    const auto hex = [&](At at, At to) {
      builder_.range(at, to, '0', '9');
      builder_.range(at, to, 'a', 'f');
      builder_.range(at, to, 'A', 'F');
    };
    const At u = builder_.range(escape, 'u', 'u');
    const At second = builder_.node(), third = builder_.node(), last = builder_.node();
    builder_.range(u, second, '0', '9');
    builder_.range(u, second, 'a', 'c');
    builder_.range(u, second, 'A', 'C');
    builder_.range(u, second, 'e', 'f');
    builder_.range(u, second, 'E', 'F');
    hex(second, third);
    const At d = builder_.range(u, 'd', 'd');
    builder_.range(u, d, 'D', 'D');
    builder_.range(d, third, '0', '7');
    hex(third, last);
    hex(last, end);
    builder_.end_rule(end);
  }
  return builder_.call(from, *character_);
}

At JsonPieces::string(At from, std::int64_t least, std::int64_t most) {
  At at = builder_.literal(from, "\"");
  at = builder_.repeat(at, least, most, [&](At one) { return character(one); });
  return builder_.literal(at, "\"");
}

At JsonPieces::matching(At from, std::string_view pattern) {
  const At begin = builder_.literal(from, "\"");
  const At end = add_json_pattern(builder_, begin, pattern, [this](At at) { return character(at); });
  return builder_.literal(end, "\"");
}

// ---- numbers

At JsonPieces::digits(At from, std::int64_t least, std::int64_t most) {
  return builder_.repeat(from, least, most, [&](At at) { return builder_.range(at, '0', '9'); });
}

At JsonPieces::fraction(At from) {
  const At end = builder_.node();
  builder_.join(from, end);
  builder_.join(digits(builder_.literal(from, "."), 1, 16), end);
  return end;
}

At JsonPieces::integer(At from) { return integer(from, std::nullopt, std::nullopt); }

At JsonPieces::number(At from) {
  const At sign = builder_.node(), whole = builder_.node();
  builder_.join(from, sign);
  builder_.range(from, sign, '-', '-');
  natural(sign, whole, 0, kLargest);
  const At end = fraction(whole);
  const At done = builder_.node();
  builder_.join(end, done);
  const At e = builder_.range(end, 'e', 'e');
  builder_.range(end, e, 'E', 'E');
  const At power = builder_.node();
  builder_.join(e, power);
  builder_.range(e, power, '+', '+');
  builder_.range(e, power, '-', '-');
  builder_.join(digits(power, 1, 2), done);
  return done;
}

// Numbers of as many digits as both have, from low to high.
void JsonPieces::same_length(At from, At to, std::string_view low, std::string_view high) {
  if (low.find_first_not_of('0') == std::string_view::npos && high.find_first_not_of('9') == std::string_view::npos) {
    const auto all = static_cast<std::int64_t>(low.size());
    return builder_.join(digits(from, all, all), to);  // also where none are left
  }
  const char a = low.front(), b = high.front();
  if (a == b) return same_length(builder_.range(from, a, a), to, low.substr(1), high.substr(1));
  const auto rest = static_cast<std::int64_t>(low.size() - 1);
  same_length(builder_.range(from, a, a), to, low.substr(1), std::string(low.size() - 1, '9'));
  if (b - a > 1) builder_.join(digits(builder_.range(from, a + 1, b - 1), rest, rest), to);
  same_length(builder_.range(from, b, b), to, std::string(low.size() - 1, '0'), high.substr(1));
}

void JsonPieces::natural(At from, At to, std::uint64_t low, std::uint64_t high) {
  if (low > high) return;
  const std::string first = std::to_string(low), last = std::to_string(high);
  for (std::size_t length = first.size(); length <= last.size(); ++length) {
    const std::string begin = length == first.size() ? first : "1" + std::string(length - 1, '0');
    const std::string end = length == last.size() ? last : std::string(length, '9');
    same_length(from, to, begin, end);
  }
}

At JsonPieces::integer(At from, std::optional<std::int64_t> low, std::optional<std::int64_t> high) {
  const At end = builder_.node();
  if (!high || *high >= 0) {
    natural(from, end, low && *low > 0 ? magnitude(*low) : 0, high ? magnitude(*high) : kLargest);
  }
  if (!low || *low < 0) {
    natural(builder_.literal(from, "-"), end, high && *high < 0 ? magnitude(*high) : 1,
            low ? magnitude(*low) : kLargest);
  }
  return end;
}

// The bound itself, or a whole number that is nearer to zero and any fraction.
At JsonPieces::number(At from, std::optional<std::int64_t> low, std::optional<std::int64_t> high) {
  const At end = builder_.node();
  const auto side = [&](At at, std::uint64_t least, std::uint64_t most) {
    if (least > most) return;
    const At exact = builder_.node(), inside = builder_.node();
    natural(at, exact, most, most);
    builder_.join(exact, end);
    if (most > least) natural(at, inside, least, most - 1);
    builder_.join(fraction(inside), end);
  };
  if (!high || *high >= 0) side(from, low && *low > 0 ? magnitude(*low) : 0, high ? magnitude(*high) : kLargest);
  if (!low || *low < 0) {
    side(builder_.literal(from, "-"), high && *high < 0 ? magnitude(*high) : 0, low ? magnitude(*low) : kLargest);
  }
  return end;
}

// ---- any JSON

std::int32_t JsonPieces::object_rule() {
  if (object_) return *object_;
  object_ = builder_.reserve_rule();
  At at = space(builder_.literal(builder_.begin(*object_), "{"));
  const At end = builder_.node();
  const auto field = [&](At from) {
    from = space(builder_.literal(space(string(from)), ":"));
    return space(builder_.call(from, value_rule()));
  };
  const At first = field(at);
  builder_.join(at, end);
  builder_.join(builder_.repeat(first, 0, -1, [&](At from) { return field(space(builder_.literal(from, ","))); }), end);
  builder_.end_rule(builder_.literal(end, "}"));
  return *object_;
}

std::int32_t JsonPieces::value_rule() {
  if (value_) return *value_;
  value_ = builder_.reserve_rule();
  const At begin = builder_.begin(*value_), end = builder_.node();
  for (const char* word : {"true", "false", "null"}) builder_.join(builder_.literal(begin, word), end);
  builder_.join(string(begin), end);
  builder_.join(number(begin), end);
  builder_.join(builder_.call(begin, object_rule()), end);
  const At open = space(builder_.literal(begin, "["));
  const At close = builder_.node();
  builder_.join(open, close);
  const At first = space(builder_.call(open, *value_));
  builder_.join(
      builder_.repeat(first, 0, -1,
                      [&](At from) { return space(builder_.call(space(builder_.literal(from, ",")), *value_)); }),
      close);
  builder_.join(builder_.literal(close, "]"), end);
  builder_.end_rule(end);
  return *value_;
}

At JsonPieces::any_value(At from) { return builder_.call(from, value_rule()); }

}  // namespace yoke::text
