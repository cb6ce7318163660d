#include <ronda/core/cuda/launch.cuh>
#include <ronda/core/cuda/stream.hpp>
#include <ronda/layers/cudnn/kernels.hpp>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <tuple>
#include <type_traits>

namespace ronda::cudnn {

using cuda::handle_of;

template <class Body>
void launch(Stream& stream, std::int64_t count, const Body& body) {
  cuda::for_each(handle_of(stream), count, body);
}

template <class Body>
void launch_teams(Stream& stream, std::int64_t count, const Body& body) {
  cuda::for_each_by_warp(handle_of(stream), count, body);
}

template <Number T>
void sum_columns(Stream& stream, const T* x, std::int64_t rows, std::int64_t columns, float* scratch, T* sums) {
  const std::int64_t chunks = column_chunks(rows, columns);
  launch(stream, chunks * columns, SumRows<T>{x, scratch, rows, columns, chunks});
  launch_teams(stream, columns, SumChunks<T>{scratch, sums, chunks, columns});
}

namespace {

template <int width, Number T>
const Run<T, width>* runs(const T* numbers) {
  return reinterpret_cast<const Run<T, width>*>(numbers);
}
template <int width, Number T>
Run<T, width>* runs(T* numbers) {
  return reinterpret_cast<Run<T, width>*>(numbers);
}

/// Calls with how many numbers a thread moves at once, where these arrays have rows of so many channels.
template <class Body, Number T>
void with_width(std::int64_t channels, std::initializer_list<const T*> arrays, const Body& body) {
  const auto begins_a_run = [](const T* array) {
    return reinterpret_cast<std::uintptr_t>(array) % (4 * sizeof(T)) == 0;
  };
  if (channels % 4 == 0 && std::ranges::all_of(arrays, begins_a_run))
    body(std::integral_constant<int, 4>());
  else
    body(std::integral_constant<int, 1>());
}

template <class Geometry>
Geometry in_runs(Geometry geometry, int width) {
  geometry.channels /= width;
  return geometry;
}

}  // namespace

template <Number T>
void add_bias(Stream& stream, T* y, const T* bias, std::int64_t rows, std::int64_t channels, bool relu) {
  with_width(channels, {static_cast<const T*>(y), bias}, [&](auto width) {
    launch(stream, rows * channels / width,
           AddBias<T, width>{runs<width>(y), runs<width>(bias), channels / width, relu});
  });
}

template <Number T>
void pool(Stream& stream, const PoolGeometry& geometry, std::int64_t images, const T* x, T* y, bool relu) {
  with_width(geometry.channels, {x, static_cast<const T*>(y)}, [&](auto width) {
    const PoolGeometry g = in_runs(geometry, width);
    launch(stream, images * g.vertical.windows * g.horizontal.windows * g.channels,
           Pool<T, width>{g, runs<width>(x), runs<width>(y), relu});
  });
}

template <Number T>
void pool_gradient(Stream& stream, const PoolGeometry& geometry, std::int64_t images, const T* x, const T* dy, T* dx,
                   bool relu) {
  if (!PoolCellGradient<T>::suits(geometry))
    return launch(stream, images * geometry.vertical.extent * geometry.horizontal.extent * geometry.channels,
                  PoolGradient<T>{geometry, x, dy, dx, relu});
  with_width(geometry.channels, {x, dy, static_cast<const T*>(dx)}, [&](auto width) {
    using Cell = PoolCellGradient<T, width>;
    const PoolGeometry g = in_runs(geometry, width);
    launch(stream, images * Cell::cells(g.vertical) * Cell::cells(g.horizontal) * g.channels,
           Cell{g, runs<width>(x), runs<width>(dy), runs<width>(dx), relu});
  });
}

void gather_patches(Stream& stream, const PatchGeometry& geometry, std::int64_t images, const float* x,
                    float* patches) {
  with_width(geometry.channels, {x, static_cast<const float*>(patches)}, [&](auto width) {
    const PatchGeometry g = in_runs(geometry, width);
    launch(stream, images * g.rows_an_image() * g.runs_a_patch(),
           Patches<width>{g, runs<width>(x), runs<width>(patches)});
  });
}

void sum_patches(Stream& stream, const PatchGeometry& geometry, std::int64_t images, const float* patches, float* dx) {
  with_width(geometry.channels, {patches, static_cast<const float*>(dx)}, [&](auto width) {
    const PatchGeometry g = in_runs(geometry, width);
    launch(stream, images * g.runs_an_image(), PatchSums<width>{g, runs<width>(patches), runs<width>(dx)});
  });
}

// What the files that are not compiled by nvcc call.
#define RONDA_KERNELS(T)                                                                                 \
  template void launch(Stream&, std::int64_t, const Transpose<T>&);                                      \
  template void launch(Stream&, std::int64_t, const Add<T>&);                                            \
  template void launch(Stream&, std::int64_t, const CopyColumns<T>&);                                    \
  template void add_bias(Stream&, T*, const T*, std::int64_t, std::int64_t, bool);                       \
  template void pool(Stream&, const PoolGeometry&, std::int64_t, const T*, T*, bool);                    \
  template void pool_gradient(Stream&, const PoolGeometry&, std::int64_t, const T*, const T*, T*, bool); \
  template void launch_teams(Stream&, std::int64_t, const SoftmaxRow<T>&);                               \
  template void sum_columns(Stream&, const T*, std::int64_t, std::int64_t, float*, T*);
RONDA_KERNELS(float)
RONDA_KERNELS(Float16)
RONDA_KERNELS(BFloat16)
#undef RONDA_KERNELS

template <class Body>
using Launch = void (*)(Stream&, std::int64_t, const Body&);

template <class Row, Number T>
struct ElementwiseLaunches {
  Launch<Elementwise<Row, T>> value = launch;
  Launch<ElementwiseGradient<Row, T>> gradient = launch;
};
template <class Functions>
struct FunctionLaunches;
template <class... Rows>
struct FunctionLaunches<std::tuple<Rows...>> {
  std::tuple<ElementwiseLaunches<Rows, float>...> of_float;
  std::tuple<ElementwiseLaunches<Rows, Float16>...> of_float16;
  std::tuple<ElementwiseLaunches<Rows, BFloat16>...> of_bfloat16;
};
/// Its pointers have the kernels of every function compiled.
extern const FunctionLaunches<elementwise::Functions> function_launches;
const FunctionLaunches<elementwise::Functions> function_launches{};

template void launch_teams(Stream&, std::int64_t, const SumLosses&);
template void launch_teams(Stream&, std::int64_t, const SumLossesOfParts&);
template void launch(Stream&, std::int64_t, const Convert<float, Float16>&);
template void launch(Stream&, std::int64_t, const Convert<float, BFloat16>&);
template void launch(Stream&, std::int64_t, const Convert<Float16, float>&);
template void launch(Stream&, std::int64_t, const Convert<BFloat16, float>&);

}  // namespace ronda::cudnn
