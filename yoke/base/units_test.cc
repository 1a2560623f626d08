#include "yoke/base/units.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <concepts>

namespace yoke {
namespace {

using namespace literals;

template <class A, class B>
concept CanAdd = requires(A a, B b) {
  a + b;
};
template <class A, class B>
concept CanCompare = requires(A a, B b) {
  a < b;
};
template <class A, class B>
concept CanAssign = requires(A a, B b) {
  a = b;
};
template <class A, class B>
concept CanMultiply = requires(A a, B b) {
  a* b;
};

TEST(Units, OfDifferentKindsDoNotMix) {
  static_assert(CanAdd<Bytes, Bytes> && CanCompare<BitsPerSecond, BitsPerSecond>);
  static_assert(!CanAdd<BitsPerSecond, BytesPerSecond>);
  static_assert(!CanCompare<BitsPerSecond, BytesPerSecond>);
  static_assert(!CanAssign<BytesPerSecond, BitsPerSecond>);
  static_assert(!CanAdd<Bytes, std::int64_t>);
  static_assert(!CanAssign<Bytes, std::int64_t>);
  static_assert(!CanAdd<Seconds, double>);
  static_assert(!CanMultiply<Bytes, Bytes>);
  static_assert(std::same_as<decltype(1_GiB / 1_s), BytesPerSecond>);
  static_assert(std::same_as<decltype(1_GiB / 1_GBps), Seconds>);
  EXPECT_DOUBLE_EQ(to_bytes_per_second(200_Gbps).value, 25e9);
  EXPECT_DOUBLE_EQ((4_GiB / to_bytes_per_second(200_Gbps)).value, 4.0 * (1 << 30) / 25e9);
  EXPECT_DOUBLE_EQ(3_GiB / 2_GiB, 1.5);
}

TEST(Units, ArePrintedForPeople) {
  EXPECT_EQ(to_string(128_GiB), "128 GiB");
  EXPECT_EQ(to_string(Bytes{127601452LL * 1024}), "121.7 GiB");
  EXPECT_EQ(to_string(0_B), "0 B");
  EXPECT_EQ(to_string(1023_B), "1023 B");
  EXPECT_EQ(to_string(Bytes{-1}), "-1 B");
  EXPECT_EQ(to_string(200_Gbps), "200 Gb/s");
  EXPECT_EQ(to_string(23.7_GBps), "23.7 GB/s");
  EXPECT_EQ(to_string(12.94_Gbps), "12.9 Gb/s");
  EXPECT_EQ(to_string(Seconds{1.47e-6}), "1.47 us");
  EXPECT_EQ(to_string(Seconds{0}), "0 ns");
  EXPECT_EQ(to_string(Seconds{90}), "90 s");
}

TEST(Units, AreParsedWithAndWithoutSpace) {
  EXPECT_EQ(*parse_bits_per_second("200Gb/s"), 200_Gbps);
  EXPECT_EQ(*parse_bits_per_second("200 Gbit/s"), 200_Gbps);
  EXPECT_EQ(*parse_bits_per_second("0.2Tbps"), 200_Gbps);
  EXPECT_EQ(*parse_bytes_per_second("23.7 GB/s"), 23.7_GBps);
  EXPECT_EQ(*parse_bytes("128 GiB"), 128_GiB);
  EXPECT_EQ(*parse_bytes("1.5KiB"), 1536_B);
  EXPECT_EQ(*parse_bytes("1kB"), 1000_B);
  EXPECT_EQ(*parse_bytes("9223372036854775807B"), Bytes{INT64_MAX});
  EXPECT_EQ(*parse_bytes("9003906251419816KiB"), Bytes{9220000001453891584});  // beyond a double's 53 bits
  EXPECT_FALSE(parse_bytes("-0B").has_value());
  EXPECT_EQ(*parse_seconds("250ms"), 0.25_s);
  EXPECT_EQ(*parse_seconds("2min"), 120_s);
}

struct Wrong {
  const char* text;
  const char* hint;
};

class UnitsRefuse : public testing::TestWithParam<Wrong> {};
TEST_P(UnitsRefuse, WithAHintAtWhatWasMeant) {
  const Result<BitsPerSecond> parsed = parse_bits_per_second(GetParam().text);
  ASSERT_FALSE(parsed.has_value());
  EXPECT_EQ(parsed.error().code(), ErrorCode::kInvalid);
  EXPECT_NE(parsed.error().hint().find(GetParam().hint), std::string::npos) << parsed.error().hint();
}
INSTANTIATE_TEST_SUITE_P(Rates, UnitsRefuse,
                         testing::Values(Wrong{"200", "give a unit"}, Wrong{"", "a number and a unit"},
                                         Wrong{"fast", "a number and a unit"}, Wrong{"2GB/s", "bytes per second"},
                                         Wrong{"2GiB", "a size"}, Wrong{"2 gb/S", "did you mean 2Gb/s?"},
                                         Wrong{"-2Gb/s", "from 0 up"}, Wrong{"nan b/s", "from 0 up"},
                                         Wrong{"inf b/s", "from 0 up"}, Wrong{"1e999b/s", "out of range"},
                                         Wrong{"2 parsecs", "the units are"}, Wrong{"2Gb/s ", "the units"},
                                         Wrong{"0x2Gb/s", "the units"}, Wrong{" 2Gb/s", "a number and a unit"}));

TEST(Units, TooLargeForTheirTypeAreRefused) {
  EXPECT_FALSE(parse_bytes("9000PiB").has_value());
  EXPECT_FALSE(parse_bits_per_second("1e308Tb/s").has_value());
}

TEST(Units, ExactFormIsTheUsualOne) {
  EXPECT_EQ(exact(BitsPerSecond{100e9}), "100Gb/s");
  EXPECT_EQ(exact(BitsPerSecond{200e9}), "200Gb/s");
  EXPECT_EQ(exact(BitsPerSecond{1.6e12}), "1.6Tb/s");
  EXPECT_EQ(exact(BytesPerSecond{23.7e9}), "23.7GB/s");
  EXPECT_EQ(exact(Seconds{0.5}), "0.5s");
}

RC_GTEST_PROP(Units, BytesInExactFormParseBack, ()) {
  const Bytes size{*rc::gen::inRange<std::int64_t>(0, INT64_MAX)};
  RC_ASSERT(*parse_bytes(exact(size)) == size);
  const Bytes round{size.value >> 30 << 30};
  RC_ASSERT(*parse_bytes(exact(round)) == round);
}

RC_GTEST_PROP(Units, RatesAndTimesInExactFormParseBack, (double x)) {
  const double value = std::abs(x);
  RC_PRE(std::isfinite(value));
  RC_ASSERT(parse_bits_per_second(exact(BitsPerSecond{value}))->value == value);
  RC_ASSERT(parse_bytes_per_second(exact(BytesPerSecond{value}))->value == value);
  RC_ASSERT(parse_seconds(exact(Seconds{value}))->value == value);
}

}  // namespace
}  // namespace yoke
