// Requests and small numbers as bytes, little-endian, for plans and for the line to the client. A reader checks every
// count before it takes memory: what claims more than there are bytes is Error(kInvalid).
#pragma once
#include <bit>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "yoke/engine/request.h"

namespace yoke::engine {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they lie in memory");

class WireWriter {
 public:
  explicit WireWriter(std::string& bytes) : bytes_(bytes) {}

  template <class T>
  void put(T value) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  template <class T>
  void put_list(std::span<const T> values) {
    put(static_cast<std::uint32_t>(values.size()));
    bytes_.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  }
  void put_text(std::string_view text) { put_list(std::span(text.data(), text.size())); }

 private:
  std::string& bytes_;
};

class WireReader {
 public:
  WireReader(std::string_view bytes, std::string_view what) : rest_(bytes), what_(what) {}

  template <class T>
  T get() {
    T value;
    std::memcpy(&value, take(sizeof value), sizeof value);
    return value;
  }
  // A count of things that take at least so many bytes each.
  std::size_t get_count(std::size_t bytes_each);
  template <class T>
  std::vector<T> get_list() {
    const std::size_t count = get_count(sizeof(T));
    std::vector<T> values(count);
    if (count > 0) std::memcpy(values.data(), take(count * sizeof(T)), count * sizeof(T));
    return values;
  }
  std::string get_text() {
    const std::size_t count = get_count(1);
    return {take(count), count};
  }
  bool at_end() const { return rest_.empty(); }
  void expect_end() const {
    if (!at_end()) refuse("has bytes too many");
  }
  [[noreturn]] void refuse(std::string_view why) const;

 private:
  const char* take(std::size_t size);

  std::string_view rest_;
  std::string_view what_;  // the subject of errors
};

void put_request(WireWriter& writer, const Request& request);
Request get_request(WireReader& reader);

}  // namespace yoke::engine
