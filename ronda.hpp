#pragma once
/// Everything that a training program needs.
#include <ronda/collectives/launch.hpp>
#include <ronda/collectives/phase.hpp>
#include <ronda/collectives/world.hpp>
#include <ronda/data/loader.hpp>
#include <ronda/data/memory_dataset.hpp>
#include <ronda/data/mnist.hpp>
#include <ronda/layers/layers.hpp>
#include <ronda/optim/make_optimizer.hpp>
#include <ronda/optim/schedule.hpp>
#include <ronda/runtime/core/error.hpp>
#include <ronda/runtime/observe/console.hpp>
#include <ronda/runtime/resilience/stop_signals.hpp>
#include <ronda/runtime/strategy/mirrored_strategy.hpp>
#include <ronda/runtime/trainer/parameter_files.hpp>
#include <ronda/runtime/trainer/trainer.hpp>
#include <ronda/runtime/trainer/version.hpp>
