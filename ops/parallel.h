// How a kernel uses threads without knowing who owns them.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

namespace tessera {

template <typename Signature>
class FunctionRef;

// A reference to a callable that outlives the call; never allocates.
template <typename R, typename... Args>
class FunctionRef<R(Args...)> {
 public:
  template <typename F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef>)
      FunctionRef(F&& f)  // NOLINT: implicit on purpose
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(f)))),
        call_([](void* object, Args... args) -> R {
          return (*static_cast<std::remove_reference_t<F>*>(object))(std::forward<Args>(args)...);
        }) {}
  R operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

 private:
  void* object_;
  R (*call_)(void*, Args...);
};

// Threads that a run may use.
class Parallel {
 public:
  virtual ~Parallel() = default;
  // Upper bound of `thread` below, at least 1.
  virtual int num_threads() const = 0;
  // Calls body(i, thread) once for each i in [0, count), from up to num_threads() threads at a
  // time; two calls that run at the same time have different `thread` in [0, num_threads()).
  // Returns when all are done. An exception of a body is rethrown here.
  virtual void For(std::int64_t count, FunctionRef<void(std::int64_t i, int thread)> body) = 0;

  // Around calls of For that follow each other closely: threads stay at hand between them.
  virtual void Begin() {}
  virtual void End() {}
};

class ParallelSection {
 public:
  explicit ParallelSection(Parallel& parallel) : parallel_(parallel) { parallel_.Begin(); }
  ~ParallelSection() { parallel_.End(); }
  ParallelSection(const ParallelSection&) = delete;
  ParallelSection& operator=(const ParallelSection&) = delete;

 private:
  Parallel& parallel_;
};

// Runs everything on the calling thread.
class SerialParallel final : public Parallel {
 public:
  int num_threads() const override { return 1; }
  void For(std::int64_t count, FunctionRef<void(std::int64_t, int)> body) override {
    for (std::int64_t i = 0; i < count; ++i) body(i, 0);
  }
};

}  // namespace tessera
