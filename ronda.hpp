#pragma once
/// @mainpage
/// `#include <ronda/ronda.hpp>` gives a program everything here, in the namespace ronda. A training program begins with
/// ronda::launch, and has a ronda::Sequential of layers, a ronda::Loss, a ronda::Dataset and a ronda::Trainer. A loop
/// of its own uses a ronda::MirroredStrategy. Ranks communicate through a ronda::Communicator; named values are in a
/// ronda::KeyValueStore. `ronda.h` and `ronda_kv.h` are the interface for C. The pages of `docs/` explain each of
/// these, with programs.
#include <ronda/collectives/launch.hpp>
#include <ronda/collectives/phase.hpp>
#include <ronda/collectives/world.hpp>
#include <ronda/core/error.hpp>
#include <ronda/data/cifar.hpp>
#include <ronda/data/csv.hpp>
#include <ronda/data/dataset_part.hpp>
#include <ronda/data/hdf5.hpp>
#include <ronda/data/image_folder.hpp>
#include <ronda/data/labelled_text.hpp>
#include <ronda/data/libsvm.hpp>
#include <ronda/data/loader.hpp>
#include <ronda/data/memory_dataset.hpp>
#include <ronda/data/mixup.hpp>
#include <ronda/data/mnist.hpp>
#include <ronda/data/numpy.hpp>
#include <ronda/data/picture_files.hpp>
#include <ronda/data/text_windows.hpp>
#include <ronda/data/transform.hpp>
#include <ronda/layers/check_gradients.hpp>
#include <ronda/layers/layers.hpp>
#include <ronda/optim/make_optimizer.hpp>
#include <ronda/optim/schedule.hpp>
#include <ronda/runtime/io/console.hpp>
#include <ronda/runtime/key_value/key_value_store.hpp>
#include <ronda/runtime/onnx/onnx_writer.hpp>
#include <ronda/runtime/onnx/write_onnx.hpp>
#include <ronda/runtime/strategy/exchange/own_exchange.hpp>
#include <ronda/runtime/strategy/mirrored/mirrored_strategy.hpp>
#include <ronda/runtime/strategy/pipeline/pipeline_strategy.hpp>
#include <ronda/runtime/strategy/split/split_strategy.hpp>
#include <ronda/runtime/strategy/strategies.hpp>
#include <ronda/runtime/trainer/node_data.hpp>
#include <ronda/runtime/trainer/parameter_files.hpp>
#include <ronda/runtime/trainer/predictor.hpp>
#include <ronda/runtime/trainer/quantization.hpp>
#include <ronda/runtime/trainer/stop_signals.hpp>
#include <ronda/runtime/trainer/trainer.hpp>
#include <ronda/runtime/trainer/training_run.hpp>
#include <ronda/runtime/trainer/version.hpp>
