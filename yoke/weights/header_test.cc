#include "yoke/weights/header.h"

#include <gtest/gtest.h>

#include "yoke/base/error.h"
#include "yoke/base/error_testing.h"

namespace yoke::weights {
namespace {

SafetensorsHeader parse(const std::string& json, std::uint64_t data_bytes) {
  return parse_header(json, kHeaderPrefixBytes + json.size() + data_bytes, "m.safetensors");
}

TEST(SafetensorsHeader, ReportsTypesShapesAndPlacesInTheFile) {
  const std::string json =
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"BF16","shape":[2,3],"data_offsets":[4,16]},)"
      R"("a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},)"
      R"("e":{"dtype":"F32","shape":[0,5],"data_offsets":[16,16]}}   )";
  const SafetensorsHeader header = parse(json, 16);
  ASSERT_EQ(header.entries.size(), 3U);
  EXPECT_EQ(header.entries[0].name, "a");
  EXPECT_EQ(header.entries[0].shape, tensor::Shape{});
  EXPECT_EQ(header.entries[1].type, tensor::DType::kBf16);
  EXPECT_EQ(header.entries[1].begin, 8 + json.size() + 4);
  EXPECT_EQ(header.entries[2].shape, (tensor::Shape{0, 5}));
  EXPECT_EQ(header.metadata.at("format"), "pt");
}

TEST(SafetensorsHeader, KnowsTypesThatNobodyReads) {
  const SafetensorsHeader header = parse(R"({"a":{"dtype":"F4","shape":[4],"data_offsets":[0,2]}})", 2);
  EXPECT_EQ(header.entries[0].type, std::nullopt);
}

TEST(SafetensorsHeader, LiesAreReportedWithFileAndTensor) {
  const auto tensor = [](const std::string& fields) { return R"({"lie":{)" + fields + "}}"; };
  const auto with = [&](const char* type, const char* shape, const char* offsets) {
    return tensor(R"("dtype":")" + std::string(type) + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets);
  };
  EXPECT_NO_THROW(parse(with("F32", "[2]", "[0,8]"), 8));
  const std::pair<std::string, const char*> lies[] = {
      {with("F32", "[2]", "[0,16]"), "claims bytes 0 to 16 of the 8 there are"},
      {with("F32", "[3]", "[0,8]"), "not those of its shape [3]"},
      {with("F32", "[4611686018427387904,4]", "[0,8]"), "not those of its shape"},
      {with("F32", "[2]", "[8,0]"), "claims bytes 8 to 0"},
      {with("F32", "[1]", "[0,4]"), "bytes follow the last tensor"},
      {with("F32", "[1]", "[4,8]"), "leaves a hole of 4 bytes"},
      {with("F31", "[2]", "[0,8]"), "unknown element type 'F31'"},
      {with("F4", "[15]", "[0,8]"), "not those of its shape"},
      {with("F32", "[-2]", "[0,8]"), "not those of its shape"},
      {with("F32", "[1,1,1,1,1,1,1,1,2]", "[0,8]"), "has 9 axes"},
      {with("F32", "[2]", "[0]"), "two data_offsets"},
      {tensor(R"("shape":[2],"data_offsets":[0,8])"), "has no dtype"},
      {with("F32", "[18446744073709551616]", "[0,8]"), "must be a whole number"},
      {with("F32", "[2]", "[0,1e30]"), "must be a whole number"},
      {R"({"lie":4})", "has no dtype"},
      {R"({"lie":)", "is not JSON"},
      {R"({"__metadata__":1})", "must be a map of texts"},
      {R"({"__metadata__":{"a":1}})", "must be a text"},
      {"[]", "is not a JSON object"},
      {"", "is not a JSON object"},
      {"{\"\xff\":{}}", "is not JSON"},
  };
  for (const auto& [json, words] : lies) {
    const Error error = error_of([&, &json = json] { parse(json, 8); });
    EXPECT_TRUE(is_error(error, ErrorCode::kInvalid, words)) << json;
    EXPECT_NE(error.message().find("m.safetensors"), std::string::npos) << error.message();
  }
}

TEST(SafetensorsHeader, OverlapsAndDuplicatesAreReported) {
  const std::string a = R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  const std::string b = R"("b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]})";
  EXPECT_ERROR(parse("{" + a + "," + b + "}", 12), ErrorCode::kInvalid, "'b' overlaps");
  EXPECT_ERROR(parse("{" + a + "," + a + "}", 8), ErrorCode::kInvalid, "stands twice");
}

TEST(SafetensorsHeader, ALengthThatTheFileCannotHoldIsReported) {
  const auto length = [](std::uint64_t claimed, std::uint64_t file_size) {
    std::string bytes;
    for (int i = 0; i < 8; ++i) bytes += static_cast<char>(claimed >> (8 * i) & 0xff);
    return header_length(bytes, file_size, "m");
  };
  EXPECT_EQ(length(0, 8), 0U);
  EXPECT_EQ(length(92, 100), 92U);
  EXPECT_ERROR(length(93, 100), ErrorCode::kInvalid, "the header claims 93 bytes, in a file of 100");
  EXPECT_ERROR(length(1ULL << 60, 1ULL << 62), ErrorCode::kInvalid, "the header claims");
  EXPECT_ERROR(length(~0ULL, 100), ErrorCode::kInvalid, "the header claims");
  EXPECT_ERROR(length(kMaxHeaderBytes + 1, 1ULL << 40), ErrorCode::kInvalid, "the header claims");
  EXPECT_ERROR(header_length("1234567", 7, "m"), ErrorCode::kInvalid, "7 bytes long: too short");
}

TEST(SafetensorsHeader, WhiteSpaceMayStandBeforeIt) {
  const std::string json = std::string(4, ' ') + "\n\t\r" + R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})";
  const SafetensorsHeader header = parse(json, 2);
  ASSERT_EQ(header.entries.size(), 1U);
  EXPECT_EQ(header.entries[0].begin, 8 + json.size()) << "the data begin behind all of the header";
  EXPECT_ERROR(parse("    ", 0), ErrorCode::kInvalid, "not a JSON object");
  EXPECT_ERROR(parse(" [1]", 0), ErrorCode::kInvalid, "not a JSON object");
}

TEST(SafetensorsHeader, ANulByteIsNoEnd) {
  EXPECT_ERROR(parse(std::string("{}\0garbage", 10), 0), ErrorCode::kInvalid, "NUL byte");
}

TEST(SafetensorsHeader, NamesHaveALimit) {
  const auto named = [](std::size_t bytes) {
    return "{\"" + std::string(bytes, 'a') + R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})";
  };
  EXPECT_NO_THROW(parse(named(512), 0));
  EXPECT_ERROR(parse(named(513), 0), ErrorCode::kInvalid, "has 513 bytes, more than 512");
  EXPECT_ERROR(parse(named(10'000'000), 0), ErrorCode::kInvalid, "more than 512");
}

}  // namespace
}  // namespace yoke::weights
