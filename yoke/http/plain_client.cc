#include "yoke/http/plain_client.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "yoke/base/error.h"
#include "yoke/base/interrupt.h"

namespace yoke::http {
namespace {

std::string question_text(const Endpoint& server, const HttpQuestion& question) {
  std::string text = fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", question.method, question.path,
                                 to_string(server));
  for (const auto& [name, value] : question.headers) text += fmt::format("{}: {}\r\n", name, value);
  if (!question.body.empty()) {
    text += fmt::format("Content-Type: application/json\r\nContent-Length: {}\r\n", question.body.size());
  }
  return text + "\r\n" + question.body;
}

}  // namespace

HttpAnswer ask(const Endpoint& server, const HttpQuestion& question, Deadline deadline) {
  Socket socket = connect_tcp(server, {}, deadline);
  socket.send_all(question_text(server, question), deadline);
  AnswerReader reader;
  std::array<char, 16 << 10> buffer{};
  while (!reader.is_complete()) {
    pollfd waited{.fd = socket.fd(), .events = POLLIN, .revents = 0};
    throw_if_interrupted();
    if (deadline.expired()) {
      throw Error(ErrorCode::kTimeout, fmt::format("{} did not answer {} in time", to_string(server), question.path));
    }
    if (poll(&waited, 1, deadline.poll_timeout_ms(200)) <= 0) continue;
    const ssize_t count = recv(socket.fd(), buffer.data(), buffer.size(), 0);
    if (count > 0) {
      reader.take({buffer.data(), static_cast<std::size_t>(count)});
    } else if (count == 0) {
      reader.take_end();
    } else if (errno != EAGAIN && errno != EINTR) {
      throw system_error(errno, fmt::format("cannot receive from {}", to_string(server)));
    }
  }
  return std::move(reader.answer());
}

AnswerStream::AnswerStream(const Endpoint& server, const HttpQuestion& question, Deadline deadline)
    : server_(server), socket_(connect_tcp(server, {}, deadline)) {
  socket_.send_all(question_text(server, question), deadline);
}

bool AnswerStream::receive(Seconds wait) {
  pollfd waited{.fd = socket_.fd(), .events = POLLIN, .revents = 0};
  if (poll(&waited, 1, static_cast<int>(wait.value * 1000)) <= 0) return false;
  std::array<char, 16 << 10> buffer{};
  const ssize_t count = recv(socket_.fd(), buffer.data(), buffer.size(), 0);
  if (count > 0) {
    reader_.take({buffer.data(), static_cast<std::size_t>(count)});
  } else if (count == 0) {
    reader_.take_end();
  } else if (errno != EAGAIN && errno != EINTR) {
    throw Error(ErrorCode::kUnavailable, fmt::format("the connection to {} broke", to_string(server_)));
  }
  return true;
}

const HttpAnswer* AnswerStream::head(Seconds wait) {
  if (reader_.answer().status < 200) receive(wait);
  return reader_.answer().status < 200 ? nullptr : &reader_.answer();
}

std::string AnswerStream::read(Seconds wait) {
  if (reader_.answer().body.empty() && !reader_.is_complete()) receive(wait);
  return std::exchange(reader_.answer().body, {});
}

}  // namespace yoke::http
