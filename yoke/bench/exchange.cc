#include "yoke/bench/exchange.h"

#include <algorithm>
#include <cstring>

namespace yoke::bench {
namespace {

// Bytes as they are: every backend moves int8 untouched.
std::vector<std::byte> gather_bytes(comm::Communicator& comm, const void* own, std::size_t size, Seconds timeout) {
  std::vector<std::byte> all(size * static_cast<std::size_t>(comm.size()));
  comm::all_gather(comm, own, all.data(), size, tensor::DType::kI8);
  comm.wait(comm.record(tensor::Stream::cpu()), Deadline::after(timeout));
  return all;
}

}  // namespace

std::vector<std::vector<double>> gather_numbers(comm::Communicator& comm, const std::vector<double>& own,
                                                Seconds timeout) {
  const std::size_t size = own.size() * sizeof(double);
  const std::vector<std::byte> all = gather_bytes(comm, own.data(), size, timeout);
  std::vector<std::vector<double>> lists(static_cast<std::size_t>(comm.size()), std::vector<double>(own.size()));
  for (std::size_t rank = 0; rank < lists.size() && size > 0; ++rank)
    std::memcpy(lists[rank].data(), all.data() + rank * size, size);
  return lists;
}

std::vector<std::string> gather_texts(comm::Communicator& comm, const std::string& own, Seconds timeout) {
  constexpr std::size_t kSize = 2048;
  std::string padded = own.substr(0, kSize);
  padded.resize(kSize, '\0');
  const std::vector<std::byte> all = gather_bytes(comm, padded.data(), kSize, timeout);
  std::vector<std::string> texts;
  for (std::size_t at = 0; at < all.size(); at += kSize) {
    const auto* text = reinterpret_cast<const char*>(all.data() + at);
    texts.emplace_back(text, static_cast<std::size_t>(std::find(text, text + kSize, '\0') - text));
  }
  return texts;
}

void barrier_until(comm::Communicator& comm, Seconds timeout) {
  comm::barrier(comm);
  comm.wait(comm.record(tensor::Stream::cpu()), Deadline::after(timeout));
}

}  // namespace yoke::bench
