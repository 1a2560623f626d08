// Result<T>: an answer to branch on, where failure is ordinary (a host unreachable in a sweep). What ends the unit of
// work is thrown instead.
#pragma once
#include <tl/expected.hpp>

#include "yoke/base/error.h"

namespace yoke {

template <class T>
using Result = tl::expected<T, Error>;

using Unexpected = tl::unexpected<Error>;

// The value, or the error thrown: for the caller that cannot go on without it.
template <class T>
T value_or_throw(Result<T>&& result) {
  if (!result) throw std::move(result).error();
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

// The reverse: what a throwing function answers, as a Result. Anything but an Error passes through.
template <class Function>
auto try_to(Function&& function) -> Result<decltype(function())> {
  try {
    if constexpr (std::is_void_v<decltype(function())>) {
      function();
      return {};
    } else {
      return function();
    }
  } catch (const Error& error) {
    return Unexpected(error);
  }
}

}  // namespace yoke
