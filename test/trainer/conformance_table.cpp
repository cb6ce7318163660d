#include "trainer/conformance_table.hpp"

namespace ronda::test {
namespace {

using enum Holds;

/// Half of all operations, by hand: by default a model this small is not split.
Split halves() { return {.layers = {"conv1=columns", "conv2=columns", "dense1=rows"}}; }

constexpr StrategyColumn columns[] = {
    {"mirrored", [](TrainingOptions&) {}},
    {"sharded", [](TrainingOptions& o) { o.strategy = "sharded"; }},
    {"sharded --one-copy", [](TrainingOptions& o) { o.strategy = Sharded{.one_copy = true}; }},
    {"sharded --shard-gradients", [](TrainingOptions& o) { o.strategy = Sharded{.shard_gradients = true}; }},
    {"local_sgd", [](TrainingOptions& o) { o.strategy = LocalSgd{.synchronise_every = 3}; }},
    {"easgd", [](TrainingOptions& o) { o.strategy = Easgd{.communicate_every = 3}; }},
    {"parameter_server", [](TrainingOptions& o) { o.strategy = "parameter_server"; }},
    // Bounded, so that the loss falls in any order of the workers.
    {"parameter_server --asynchronous",
     [](TrainingOptions& o) { o.strategy = ParameterServer{.asynchronous = true, .max_staleness = 0}; }},
    {"pipeline", [](TrainingOptions& o) { o.strategy = "pipeline"; }},
    {"split", [](TrainingOptions& o) { o.strategy = halves(); }},
};

const Feature features[] = {
    // mirrored, sharded, --one-copy, --shard-gradients, local_sgd, easgd, parameter_server, --asynchronous, pipeline,
    // split
    {"a plain step",
     TrialKind::images,
     [](TrainingOptions&) {},
     {bits, bits, bits, bits, works, works, rounding, works, rounding, rounding}},
    {"accumulation: `--accumulate`",
     TrialKind::images,
     [](TrainingOptions& o) { o.accumulate = 2; },
     {bits, bits, bits, rounding, works, works, rounding, works, rounding, rounding}},
    {"clipping by the norm: `--clip-norm`",
     TrialKind::images,
     [](TrainingOptions& o) { o.clip_norm = 0.2; },
     {bits, bits, bits, rounding, works, works, rounding, works, rounding, rounding}},
    {"clipping by value: `--clip-value`",
     TrialKind::images,
     [](TrainingOptions& o) { o.clip_value = 0.01; },
     {bits, bits, bits, bits, works, works, rounding, works, rounding, rounding}},
    {"an average of the parameters: `--ema-decay`",
     TrialKind::images,
     [](TrainingOptions& o) { o.ema_decay = 0.8; },
     {bits, bits, bits, bits, works, works, rounding, works, rounding, rounding}},
    {"freezing and groups: `--freeze`, `--group`",
     TrialKind::images,
     [](TrainingOptions& o) {
       o.freeze = {"conv2.weight"};
       o.groups = {parse_group("*.bias:learning_rate=0.01,weight_decay=0")};
     },
     {bits, bits, bits, bits, works, works, rounding, works, rounding, rounding}},
    {"pruning: `--prune`",
     TrialKind::images,
     [](TrainingOptions& o) { o.prune = 0.5; },
     {bits, bits, bits, bits, works, works, rounding, works, rounding, rounding}},
    {"the best epoch: `--keep-best`",
     TrialKind::images,
     [](TrainingOptions& o) { o.keep_best = true; },
     {bits, bits, bits, bits, works, works, rounding, works, rounding, rounding}},
    {"`--on-nonfinite skip`",
     TrialKind::images,
     [](TrainingOptions& o) {
       o.on_nonfinite = OnNonfinite::skip;
       o.faults = {parse_fault("nan@5:0")};
     },
     {bits, bits, bits, bits, works, works, rounding, works, works, works}},
    {"`--optimizer adam`",
     TrialKind::images,
     [](TrainingOptions& o) { o.optimizer.name = "adam", o.learning_rate = 0.005; },
     {bits, bits, bits, bits, works, works, works, works, works, works}},
    {"`--optimizer lars`",
     TrialKind::images,
     [](TrainingOptions& o) { o.optimizer.name = "lars"; },
     {bits, bits, bits, refused, works, works, refused, refused, rounding, refused},
     {"lars"}},
    {"`--optimizer lamb`, `muon`",
     TrialKind::images,
     [](TrainingOptions& o) { o.optimizer.name = "lamb"; },
     {bits, refused, refused, refused, works, works, refused, refused, works, refused},
     {"lamb"}},
    {"`--dtype mixed_bfloat16`",
     TrialKind::images,
     [](TrainingOptions& o) { o.precision = Precision::mixed_bfloat16, o.emulate_dtype = true; },
     {bits, bits, refused, refused, refused, refused, refused, refused, refused, refused},
     {"bfloat16"}},
    {"SyncBatchNorm",
     TrialKind::norms,
     [](TrainingOptions&) {},
     {bits, bits, bits, bits, refused, refused, rounding, refused, rounding, rounding},
     {"SyncBatchNorm"}},
    {"embeddings with sparse gradients",
     TrialKind::texts,
     [](TrainingOptions&) {},
     {bits, refused, refused, refused, refused, refused, rounding, refused, refused, refused},
     {"sparse"}},
    {"`--compression int8`",
     TrialKind::images,
     [](TrainingOptions& o) { o.compression = Compression::int8; },
     {bits, bits, bits, refused, refused, refused, works, works, works, works},
     {".compression"}},
    {"unequal shares: `--shares measured`",
     TrialKind::images,
     [](TrainingOptions& o) { o.shares = "measured", o.accumulate = 2; },
     {works, works, works, refused, refused, refused, refused, refused, refused, refused},
     {".shares"}},
    {"comparing replicas: `--audit-every`",
     TrialKind::images,
     [](TrainingOptions& o) { o.audit_every = 2; },
     {bits, refused, refused, refused, refused, refused, refused, refused, refused, refused},
     {".audit_every", ".strategy"}},
    {"a step called in parts by a loop of one's own",
     TrialKind::by_hand,
     [](TrainingOptions&) {},
     {bits, bits, bits, refused, works, works, rounding, works, refused, refused}},
    {"resuming with the same bits: `--exact`",
     TrialKind::resumed,
     [](TrainingOptions& o) { o.exact = true; },
     {bits, bits, bits, bits, bits, bits, bits, refused, bits, bits},
     {".exact"}},
    {"GPUs",
     TrialKind::device,
     [](TrainingOptions& o) { o.device = DeviceChoice::cuda; },
     {rounding, refused, refused, refused, refused, refused, refused, refused, refused, refused},
     {"GPU"}},
};

}  // namespace

std::span<const StrategyColumn> columns_of_strategies() { return columns; }
std::span<const Feature> rows_of_features() { return features; }

}  // namespace ronda::test
