// A regression on a table: a CSV file in, a multi-layer perceptron, mean squared and absolute errors and R² out.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <CLI/CLI.hpp>

#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>
#include <ronda/data/csv.hpp>
#include <ronda/data/dataset_part.hpp>
#include <ronda/data/memory_dataset.hpp>
#include <ronda/layers/layers.hpp>

#include "model_card.hpp"
#include "models.hpp"
#include "tool.hpp"
#include "training_application.hpp"

namespace {

using namespace ronda;

struct TabularOptions {
  std::filesystem::path data, test;
  std::string target;
  double test_split = 0.2;
  std::vector<std::int64_t> hidden{64, 64};
  CsvOptions csv;
};

/// Mean and standard deviation of each column; 1 for one that does not vary.
struct Scales {
  std::vector<double> means, deviations;

  Scales(const CsvTable& table, std::span<const std::uint64_t> rows)
      : means(table.columns.size()), deviations(table.columns.size()) {
    const auto count = static_cast<double>(rows.size());
    for (const std::uint64_t row : rows)
      for (std::size_t i = 0; i < means.size(); ++i) means[i] += table.row(row)[i] / count;
    for (const std::uint64_t row : rows)
      for (std::size_t i = 0; i < means.size(); ++i)
        deviations[i] += (table.row(row)[i] - means[i]) * (table.row(row)[i] - means[i]) / count;
    for (std::size_t i = 0; i < means.size(); ++i) {
      const double first = table.row(rows[0])[i];
      const bool varies = std::ranges::any_of(rows, [&](std::uint64_t row) { return table.row(row)[i] != first; });
      if (!varies) means[i] = first;  // the sum is rounded
      deviations[i] = varies && deviations[i] > 0 ? std::sqrt(deviations[i]) : 1;
    }
  }
  [[nodiscard]] float scaled(std::size_t column, double value) const {
    return static_cast<float>((value - means[column]) / deviations[column]);
  }
};

/// Rows as samples, scaled.
MemoryDataset samples_of(const CsvTable& table, std::span<const std::uint64_t> rows, std::size_t target,
                         const Scales& scales) {
  std::vector<float> inputs, targets;
  for (const std::uint64_t row : rows)
    for (std::size_t i = 0; i < table.columns.size(); ++i)
      (i == target ? targets : inputs).push_back(scales.scaled(i, table.row(row)[i]));
  return {std::move(inputs), Shape{static_cast<std::int64_t>(table.columns.size()) - 1}, std::move(targets), Shape{1}};
}

/// The columns of `table`, in the order of `columns`.
CsvTable reordered(const CsvTable& table, const std::vector<std::string>& columns) {
  std::vector<std::size_t> places;
  for (const std::string& name : columns) places.push_back(table.column(name));
  CsvTable result{columns, {}};
  for (std::size_t row = 0; row < table.rows(); ++row)
    for (const std::size_t place : places) result.values.push_back(table.row(row)[place]);
  return result;
}

/// Of another file: whatever columns it has beside them, and in whatever order.
CsvTable read_columns(const std::filesystem::path& path, const std::vector<std::string>& columns, char separator) {
  return reordered(read_csv(path, {.separator = separator, .only = columns}), columns);
}

std::vector<std::uint64_t> all_rows(const CsvTable& table) {
  std::vector<std::uint64_t> rows(table.rows());
  std::iota(rows.begin(), rows.end(), std::uint64_t{0});
  return rows;
}

void add_options(apps::CommandLine& command_line, TabularOptions& options) {
  CLI::App& app = command_line.app();
  const char* const group = "Data and length";
  app.add_option("--data", options.data, "The table, a CSV file with a line of names")->required()->group(group);
  app.add_option("--target", options.target, "The column to predict; all others are its inputs [the last]")
      ->default_str("")
      ->group(group);
  app.add_option("--ignore", options.csv.ignore, "Columns to leave out")->delimiter(',')->default_str("")->group(group);
  apps::add_separator(app, options.csv.separator, "Between two fields")->group(group);
  auto* test = app.add_option("--test", options.test, "A table to test with")->default_str("")->group(group);
  app.add_option("--test-split", options.test_split, "Share of the rows that is kept for tests")
      ->check(CLI::Range(0.0, 0.9))
      ->excludes(test)
      ->group(group);
  app.add_option("--hidden", options.hidden, "Sizes of the hidden layers")
      ->delimiter(',')
      ->check(CLI::Range(1, 1 << 24))
      ->group("Model");
}

void describe(apps::CommandLine& command_line, const TabularOptions& options, const CsvTable& table, std::size_t target,
              const Scales& scales) {
  std::vector<std::string> inputs;
  std::vector<double> means, deviations;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (i == target) continue;
    inputs.push_back(table.columns[i]);
    means.push_back(scales.means[i]);
    deviations.push_back(scales.deviations[i]);
  }
  apps::describe_model(command_line, {{"hidden", options.hidden},
                                      {"inputs", inputs},
                                      {"means", means},
                                      {"deviations", deviations},
                                      {"target", table.columns[target]},
                                      {"target_mean", scales.means[target]},
                                      {"target_deviation", scales.deviations[target]},
                                      {"separator", std::string(1, options.csv.separator)}});
}

int run(World& world, apps::CommandLine& command_line, const TabularOptions& options) {
  CsvTable table, test_table;
  std::vector<std::uint64_t> rows, test_rows;
  std::size_t target = 0;
  agree(world.communicator(), [&] {
    table = read_csv(options.data, options.csv);
    command_line.warn(table.remark());
    if (table.columns.size() < 2) throw InputError(options.data.string() + " has one column, and no inputs for it");
    target = options.target.empty() ? table.columns.size() - 1 : table.column(options.target);
    rows = all_rows(table);
    if (!options.test.empty()) {
      test_table = read_columns(options.test, table.columns, options.csv.separator);
      test_rows = all_rows(test_table);
    } else if (options.test_split > 0) {
      if (rows.size() < 2)
        throw InputError(options.data.string() + " has one row: give --test-split 0, or a table for --test");
      ValidationSplit split = split_for_validation(rows.size(), options.test_split, command_line.training.seed);
      rows = std::move(split.training);
      test_rows = std::move(split.validation);
    }
  });
  const CsvTable& tests = options.test.empty() ? table : test_table;
  const Scales scales(table, rows);
  for (const std::int64_t size : options.hidden)
    command_line.training.variant += "hidden " + std::to_string(size) + ", ";
  describe(command_line, options, table, target, scales);
  MeanSquaredError loss(scales.deviations[target]);
  command_line.training.prediction_units = {scales.deviations[target], scales.means[target]};
  const auto describe = [&](const Evaluation& result) {
    TextWriter text;
    text << "test mse " << result.loss;
    return text.str();
  };
  MemoryDataset training = samples_of(table, rows, target, scales);
  training.set_origin(options.data.string());
  MemoryDataset test = samples_of(tests, test_rows.empty() ? rows : test_rows, target, scales);
  test.set_origin((options.test.empty() ? options.data : options.test).string());
  return apps::train(world, command_line, apps::perceptron(options.hidden, 1), loss, training,
                     DatasetPart(test, 0, test_rows.size()), {std::make_shared<R2Score>()}, describe);
}

}  // namespace

int main(int argc, char** argv) {
  apps::CommandLine command_line("tabular", "Trains a multi-layer perceptron to predict a column of a table.",
                                 {.epochs = 20, .learning_rate = 0.05});
  TabularOptions options;
  add_options(command_line, options);
  return apps::launch_with(command_line, argc, argv, [&](World& world) { return run(world, command_line, options); });
}
