#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

namespace ronda {

/// A worker's question.
struct Asked {
  int worker = 0;
  std::uint64_t operation = 0;
};

/// Values as they were at a version; never written again.
struct PartValues {
  std::shared_ptr<const float[]> elements;
  std::size_t count = 0;
  std::uint64_t version = 0;
};

/// Takes a server's answers to its workers.
class Answers {
 public:
  virtual void done(const Asked& asked) = 0;
  virtual void dropped(const Asked& asked) = 0;
  virtual void values(const Asked& asked, const PartValues& values) = 0;

 protected:
  ~Answers() = default;
};

}  // namespace ronda
