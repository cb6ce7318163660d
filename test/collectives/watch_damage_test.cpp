// Bytes that no rank has written: in records, and in what ranks announce to each other. Changed at random, the same
// each time; a sanitizer looks on.
#include "support/catch.hpp"
#include "support/seed.hpp"
#include "support/temporary_folder.hpp"

#include <ronda/collectives/watch/recorder.hpp>
#include <ronda/collectives/watch/trace.hpp>
#include <ronda/coordinator/detail/descriptor.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <limits>
#include <random>

namespace ronda::watch_damage_test {
namespace {

namespace fs = std::filesystem;

/// Records of two ranks, kept.
class Records : public test::Folder {
 public:
  explicit Records(std::string_view label = "bucket") : test::Folder("damage") {
    for (int rank = 0; rank < 2; ++rank) {
      const auto recorder = std::make_shared<Recorder>(path(), true, rank, 2);
      recorder->met(rank, 2, 42);
      Ledger ledger{recorder};
      for (int i = 0; i < 20; ++i)
        ledger.end(ledger.begin({Kind::allreduce, label, "ring", 512, DType::float32}), Outcome::done);
      static_cast<void>(ledger.begin({Kind::allreduce, label, "ring", 512, DType::float32}));
    }
  }
  [[nodiscard]] fs::path of(int rank) const { return record_path(path(), rank); }
};

std::string bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const fs::path& path, const std::string& bytes) {
  fs::permissions(path, fs::perms::owner_all);
  std::ofstream(path, std::ios::binary) << bytes;
}

/// A few bytes at random places, most of them where something is, become others, or one number the greatest or least.
void damage(std::span<char> bytes, std::span<const std::size_t> places, std::mt19937_64& random) {
  constexpr std::array<std::uint64_t, 6> odd{0, 1, ~std::uint64_t{0}, std::uint64_t{1} << 63, 0x7fffffff, 0xff};
  for (std::uint64_t changes = 1 + random() % 6; changes > 0; --changes) {
    const std::size_t at = (random() % 8 == 0 ? random() : places[random() % places.size()]) % (bytes.size() - 8);
    if (random() % 2 == 0)
      bytes[at] = static_cast<char>(random());
    else
      std::memcpy(&bytes[at / 8 * 8], &odd[random() % odd.size()], 8);
  }
}

TEST_CASE("of damaged records what can be told is told, and the rest refused") {
  const Records records;
  const std::string whole = bytes_of(records.of(0));
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < sizeof(RecordHead); ++i) places.push_back(i);
  for (std::size_t i = 0; i < 22 * sizeof(Record); ++i) places.push_back(offsetof(RecordFile, ring) + i);
  std::mt19937_64 random(34 * test::seed());
  const std::vector<fs::path> folder{records.path()};
  std::size_t told = 0, refused = 0;
  for (int i = 0; i < 400; ++i) {
    std::string bytes = whole;
    damage(bytes, places, random);
    write(records.of(0), bytes);
    try {
      const Explanation explanation = explain(read_trace(folder));
      told += explanation.text.empty() ? 0 : 1;
    } catch (const InputError&) {
      ++refused;
    }
    const auto view = RecordView::open(records.of(0));
    const auto state = view == nullptr ? std::nullopt : view->state(512);
    if (!state) continue;
    std::vector<RankReport> reports{{0, "a", RankReport::Answer::yes, state}, {1, "b", RankReport::Answer::none, {}}};
    CHECK(diagnose(reports).text.size() < 10000);
    reports[1] = {1, "b", RankReport::Answer::yes, state};
    reports[1].state->status.still = reports[1].state->status.inside_mpi = false;
    CHECK(diagnose(reports).text.size() < 10000);
  }
  CHECK(told > 100);
}

TEST_CASE("a record that claims two thousand million ranks is damaged") {
  const Records records;
  std::string bytes = bytes_of(records.of(0));
  const std::int32_t many = std::numeric_limits<std::int32_t>::max();
  std::memcpy(&bytes[offsetof(RecordHead, size)], &many, sizeof many);
  write(records.of(0), bytes);
  const std::vector<fs::path> one{records.of(0)};
  CHECK_THROWS_AS(read_trace(one), InputError);
}

TEST_CASE("records that are cut off while others look at them") {
  const Records records;
  const auto view = RecordView::open(records.of(0));
  REQUIRE(view != nullptr);
  CHECK(view->state(10)->trail.size() == 10);
  write(records.of(0), bytes_of(records.of(0)).substr(0, 5000));
  CHECK_FALSE(view->state(10));
  CHECK(view->head().rank == 0);
  write(records.of(0), "");
  CHECK_FALSE(view->refresh());
  CHECK(RecordView::open(records.of(0)) == nullptr);
}

TEST_CASE("a rank whose own record is cut off goes on") {
  const test::Folder folder("cut");
  const auto recorder = std::make_shared<Recorder>(folder.path(), false, 0, 2);
  Ledger ledger{recorder};
  const auto run = [&] { ledger.end(ledger.begin({Kind::allreduce, "bucket", "ring", 512}), Outcome::done); };
  run();
  for (const std::uintmax_t left : {5000U, 0U}) {
    fs::resize_file(recorder->path(), left);
    for (std::uint32_t i = 0; i < 2 * record_ring; ++i) run();
    recorder->beat();
    recorder->stands_still();
  }
  CHECK(recorder->file().head.last.nanoseconds > 0);
  CHECK(state_of(recorder->file(), 10).status.still);
  CHECK(RecordView::open(recorder->path()) == nullptr);
}

TEST_CASE("what is no plain file is no record, and nobody waits for it") {
  const Records records;
  fs::remove(records.of(0));
  REQUIRE(::mkfifo(records.of(0).c_str(), 0600) == 0);
  CHECK(RecordView::open(records.of(0)) == nullptr);
  const std::vector<fs::path> folder{records.path()}, pipe{records.of(0)};
  CHECK(read_trace(folder).notes.size() == 1);
  CHECK_THROWS_AS(read_trace(pipe), InputError);
  fs::remove(records.of(0));
  fs::create_symlink(records.of(1), records.of(0));
  CHECK(RecordView::open(records.of(0)) == nullptr);
}

TEST_CASE("what a record says reaches the terminal as plain characters") {
  const Records records("\x1b[31mred\nronda: error: forged\x9b\u202e");
  fs::rename(records.of(1), records.path() / "rank-\x1b[2J.ronda");
  std::ofstream(records.path() / "rank-\x1b]0;title.ronda") << "no record";
  const std::vector<fs::path> folder{records.path()};
  const Trace trace = read_trace(folder);
  std::string all = explain(trace).text;
  for (const std::string& note : trace.notes) all += note;
  CHECK(all.find('\x1b') == std::string::npos);
  CHECK(all.find('\x9b') == std::string::npos);
  CHECK(all.find("\nronda: error") == std::string::npos);
  CHECK(all.find("\u202e") == std::string::npos);
}

TEST_CASE("printable keeps characters, and nothing that acts on a terminal") {
  CHECK(printable("Schicht 1: größer, 層") == "Schicht 1: größer, 層");
  CHECK(printable("a\x1b[0m\tb\n") == "a?[0m?b?");
  CHECK(printable("\xc2\x9b \x9b \xc0\x80 \xed\xa0\x80 \xe5\xb1") == "? ? ?? ??? ??");
}

TEST_CASE("damaged announcements are refused, however they are") {
  std::vector<std::byte> block(1024);
  AnnouncementBlock writer(block);
  const Descriptor several{
      NamedKind::broadcast, ReduceOp::sum, 3, {{Shape{2, 3}, DType::int8}, {Shape{}, DType::float64}}};
  while (writer.add({Announcement::What::tensors, "a name", several, RankSet(3)})) continue;
  const std::string whole(reinterpret_cast<const char*>(block.data()), block.size());
  const auto refused = [](const std::string& bytes) {
    try {
      static_cast<void>(Announcements::read(std::as_bytes(std::span(bytes))));
      return 0;
    } catch (const CommunicationError&) {
      return 1;
    }
  };
  int times = 0;
  for (std::size_t length = 0; length < whole.size(); ++length) times += refused(whole.substr(0, length));
  CHECK(times > 900);
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < 200; ++i) places.push_back(i);
  std::mt19937_64 random(34 * test::seed());
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = whole;
    damage(bytes, places, random);
    times += refused(bytes);
  }
  CHECK(times > 5000);
}

}  // namespace
}  // namespace ronda::watch_damage_test
