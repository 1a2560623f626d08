// A shared library that is loaded at run time, where the machine has it: CUDA's driver, NCCL, MPI, NVML.
//
//   const SharedLibrary cuda = value_or_throw(SharedLibrary::open({.what = "the CUDA driver", .names =
//   {"libcuda.so.1"},
//                                                                  .missing_hint = "install the NVIDIA driver"}));
//   int (*init)(unsigned) = nullptr;
//   cuda.bind("cuInit", init);
//
// It stays loaded unless close() is called: such libraries leave threads behind that run their code. Safe from any
// thread.
#pragma once
#include <string>
#include <vector>

#include "yoke/base/result.h"

namespace yoke {

struct LibraryRequest {
  std::string what;                // for people: "the CUDA driver"
  std::vector<std::string> names;  // files to try, the first that the loader finds is taken
  std::string missing_hint = {};   // where there is none
  std::string old_hint = {};       // where it lacks a function
  enum class Symbols { kPrivate, kForAll } symbols = Symbols::kPrivate;  // kForAll: plug-ins of the library need them
};

class SharedLibrary {
 public:
  static Result<SharedLibrary> open(LibraryRequest request);  // kUnsupported with the loader's reasons

  void* find(const char* symbol) const;  // null where the library lacks it
  void* need(const char* symbol) const;  // throws Error(kUnsupported) instead
  template <class Function>
  void bind(const char* symbol, Function*& function) const {
    function = reinterpret_cast<Function*>(need(symbol));
  }
  void close();  // nothing that came from it may be used after

 private:
  SharedLibrary(void* handle, LibraryRequest request) : handle_(handle), request_(std::move(request)) {}
  void* handle_;
  LibraryRequest request_;
};

}  // namespace yoke
