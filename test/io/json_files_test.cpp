#include <cstdlib>
#include <nlohmann/json.hpp>

#include <ronda/core/error.hpp>
#include <ronda/runtime/io/plan_file.hpp>
#include <ronda/runtime/io/summary.hpp>

#include "support/catch.hpp"
#include "support/message.hpp"
#include "support/temporary_folder.hpp"

using namespace ronda;
using namespace ronda::test;

namespace {

const PlanFile example{.environment = {{"processor", "abacus"}, {"ranks", "2"}},
                       .picks = {{"conv1 forward (64, 28, 28, 1)", "winograd"}},
                       .entries = {"bucket 1: 1.2 MiB", "bucket 2: \"quoted\""},
                       .hash = "0123456789abcdef"};

/// Sets an environment variable (null: none) until the end of the block.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    set(value);
  }
  ~Variable() { set(old_ ? old_->c_str() : nullptr); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  void set(const char* value) {
    if (value != nullptr)
      ::setenv(name_, value, 1);
    else
      ::unsetenv(name_);
  }
  const char* name_;
  std::optional<std::string> old_;
};

}  // namespace

TEST_CASE("a summary has the promised keys in their order, and null for what was not measured") {
  const TemporaryFolder folder;
  Summary summary;
  summary.application = "mnist_cnn";
  summary.metric = {"accuracy", true};
  summary.samples_per_second = 0.1;
  summary.allreduce.algorithm = "ring";
  summary.allreduce.compression = "bf16";
  summary.epoch_history.push_back({.epoch = 1, .train_loss = 0.5});
  write_summary(folder / "file", summary);
  const auto json = nlohmann::ordered_json::parse(read_file(folder / "file"));
  std::string keys;
  for (const auto& [key, value] : json.items()) keys += key + " ";
  REQUIRE(keys ==
          "application version world_size hosts device dtype global_batch_size epochs steps samples parameters "
          "gradient_bytes train_seconds samples_per_second step_microseconds final_train_loss test_loss test_accuracy "
          "parameter_hash "
          "allreduce checkpoint guard startup_seconds plan_hash options epoch_history ");
  REQUIRE(json["samples_per_second"] == 0.1);
  REQUIRE(json["test_accuracy"].is_null());
  REQUIRE(json["step_microseconds"]["p99"].is_null());
  REQUIRE(json["allreduce"]["algorithm"] == "ring");
  REQUIRE(json["allreduce"]["compression"] == "bf16");
  REQUIRE(json["allreduce"].size() == 5);
  REQUIRE(json["epoch_history"][0]["train_loss"] == 0.5);
  REQUIRE(json["epoch_history"][0]["test_accuracy"].is_null());
  REQUIRE(json["epoch_history"][0].size() == 6);
}

TEST_CASE("a summary has the metrics of tests: numbers of each epoch, and matrices as arrays in the end") {
  const TemporaryFolder folder;
  Summary summary;
  summary.metric = {"mae", false};
  summary.test_metrics = {{{"r2"}, {0.5}}, {{"confusion_matrix"}, {1, 2, 3, 4, 5, 6}, {2, 3}}};
  summary.epoch_history.push_back({.epoch = 1, .test_metrics = summary.test_metrics});
  write_summary(folder / "file", summary);
  const auto json = nlohmann::json::parse(read_file(folder / "file"));
  CHECK(json["test_metrics"] == nlohmann::json::parse(R"({"r2": 0.5, "confusion_matrix": [[1, 2, 3], [4, 5, 6]]})"));
  CHECK(json["epoch_history"][0]["test_metrics"] == nlohmann::json::parse(R"({"r2": 0.5})"));
  CHECK_FALSE(json["epoch_history"][0].contains("validation_metrics"));
}

TEST_CASE("a plan is read back as it was written") {
  const TemporaryFolder folder;
  write_plan(folder / "plan", example);
  REQUIRE(read_plan(folder / "plan") == example);
}

TEST_CASE("a plan that is none is refused, with the place") {
  const TemporaryFolder folder;
  write_plan(folder / "plan", example);
  const auto good = nlohmann::json::parse(read_file(folder / "plan"));
  const auto message = [&](auto change) {
    auto json = good;
    change(json);
    write_file(folder / "plan", json.dump());
    return message_of<InputError>([&] { (void)read_plan(folder / "plan"); });
  };
  using Json = nlohmann::json;
  REQUIRE(message([](Json&) {}).empty());
  require_mentions(message([](Json& json) { json["version"] = 2; }), {"plan", "version 1", "found 2", "remove"});
  require_mentions(message([](Json& json) { json.erase("format"); }), {"ronda-plan"});
  require_mentions(message([](Json& json) { json.erase("picks"); }), {"\"picks\""});
  require_mentions(message([](Json& json) { json["picks"]["a"] = 1; }), {"\"picks\""});
  require_mentions(message([](Json& json) { json["entries"] = "text"; }), {"\"entries\""});
  require_mentions(message([](Json& json) { json["hash"] = "xyz"; }), {"\"hash\"", "\"xyz\""});
  require_mentions(message([](Json& json) { json["more"] = 1; }), {"does not know"});
  require_mentions(message([](Json& json) { json = Json::array(); }), {"an object", "a list"});
  write_file(folder / "plan", "{\"format\"");
  require_mentions(message_of<InputError>([&] { (void)read_plan(folder / "plan"); }), {"plan", "JSON"});
  require_mentions(message_of<InputError>([&] { (void)read_plan(folder / "none"); }), {"none", "No such file"});
}

TEST_CASE("the cache is where its variables say, and made there") {
  const TemporaryFolder folder;
  const Variable home("HOME", (folder / "home").c_str());
  {
    const Variable own("RONDA_CACHE_DIR", (folder / "own/deep").c_str()), xdg("XDG_CACHE_HOME", folder.path().c_str());
    REQUIRE(cache_directory() == folder / "own/deep");
    REQUIRE(std::filesystem::is_directory(folder / "own/deep"));
  }
  const Variable own("RONDA_CACHE_DIR", nullptr);
  {
    const Variable xdg("XDG_CACHE_HOME", (folder / "xdg").c_str());
    REQUIRE(cache_directory() == folder / "xdg/ronda");
  }
  const Variable xdg("XDG_CACHE_HOME", nullptr);
  REQUIRE(cache_directory() == folder / "home/.cache/ronda");
  const Variable none("HOME", nullptr);
  REQUIRE_FALSE(cache_directory());
}

TEST_CASE("where the cache cannot be written there is none") {
  const TemporaryFolder folder;
  write_file(folder / "file", "");
  const Variable own("RONDA_CACHE_DIR", (folder / "file/cache").c_str());
  REQUIRE_FALSE(cache_directory());
}
