#include <ronda/core/buffer.hpp>
#include <ronda/layers/onednn/dense_products.hpp>
#include <ronda/layers/onednn/images.hpp>
#include <ronda/layers/onednn/panels.hpp>
#include <ronda/layers/onednn/strassen.hpp>
#include <ronda/layers/onednn/sums.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

namespace ronda::onednn {
namespace {

using dnnl::memory;

/// One of the three products, by the library or, where the weights are plain, by Strassen.
struct Direction {
  std::unique_ptr<Computation> computation;
  std::optional<Strassen> strassen;

  [[nodiscard]] std::size_t scratch_bytes() const {
    if (strassen) return strassen->scratch_bytes();
    return computation ? computation->scratch_bytes() : 0;
  }
  /// @param bias  null for none
  void run(const void* a, const void* b, const void* bias, void* c, std::byte* scratch) {
    const auto floats = [](const void* numbers) { return static_cast<const float*>(numbers); };
    if (strassen)
      strassen->run(floats(a), floats(b), floats(bias), static_cast<float*>(c), scratch);
    else if (bias != nullptr)
      computation->run({a, b, bias}, c, scratch);
    else
      computation->run({a, b}, c, scratch);
  }
};

/// The parts of the batch's rows that weight gradients are summed over. A product adds up its rows in one float32 sum
/// for each weight, so one product is made for a part of the rows, and another for the rest.
class RowParts {
 public:
  explicit RowParts(const DenseMatrices& m)
      : parts_(m.dtype == DType::float32 ? SumParts::of(m.batch, 1, m.inputs * m.outputs) : SumParts::whole(m.batch)),
        part_(m.of_rows(parts_.most)),
        rest_(m.of_rows(parts_.rest() > 0 ? parts_.rest() : parts_.most)) {}

  [[nodiscard]] std::size_t count() const { return parts_.count(); }
  [[nodiscard]] bool has_rest() const { return parts_.rest() > 0; }
  [[nodiscard]] const DenseMatrices& part() const { return part_; }
  [[nodiscard]] const DenseMatrices& rest() const { return rest_; }

  /// @param weight_bytes  bytes of the gradient, in its layout
  [[nodiscard]] std::size_t scratch_bytes(std::size_t weight_bytes) const { return parts_.scratch_bytes(weight_bytes); }
  /// @param run  (whether it is the rest, x, dz, dw, scratch): writes the gradient of a part's rows
  template <class Run>
  void sum(const void* x, const void* dz, void* dw, std::size_t weight_bytes, std::byte* scratch, int threads,
           Run&& run) const {
    if (count() == 1) return run(false, x, dz, dw, scratch);
    sum_by_pairs({0, count()}, static_cast<float*>(dw), weight_bytes / sizeof(float), reinterpret_cast<float*>(scratch),
                 threads, [&](std::size_t part, float* to) {
                   run(parts_.size(part) < parts_.most,
                       static_cast<const float*>(x) + parts_.first(part) * part_.inputs,
                       static_cast<const float*>(dz) + parts_.first(part) * part_.outputs, to,
                       scratch + scratch_bytes(weight_bytes));
                 });
  }

 private:
  SumParts parts_;
  DenseMatrices part_, rest_;
};

/// By the library, but for large products, and for the ReLU: its own make 0 of NaN.
struct LibraryProducts final : DenseProducts {
  std::size_t rectified;  ///< how many outputs, where there is a ReLU
  int threads;
  DType dtype;
  memory::desc layout;
  std::size_t weight_bytes;
  RowParts parts;
  Direction forwards, backwards_weights, rest_of_weights,
      backwards_data;   ///< empty if not needed, except `forwards`
  Direction evaluates;  ///< for tests and predictions if `forwards` is Strassen's; otherwise empty
  std::string names;

  LibraryProducts(const DenseMatrices& m, int thread_count, const memory::desc& weight, std::string name)
      : rectified(m.relu ? static_cast<std::size_t>(m.batch * m.outputs) : 0),
        threads(thread_count),
        dtype(m.dtype),
        layout(weight),
        weight_bytes(to_tensor_desc(layout, Axes::weight).value().bytes()),
        parts(m),
        names(std::move(name)) {}

  [[nodiscard]] TensorDesc weight() const override { return to_tensor_desc(layout, Axes::weight).value(); }
  [[nodiscard]] std::string picks() const override { return names; }
  [[nodiscard]] std::size_t scratch_bytes() const override {
    const std::size_t of_weights = std::max(backwards_weights.scratch_bytes(), rest_of_weights.scratch_bytes());
    return std::max({forwards.scratch_bytes(), parts.scratch_bytes(weight_bytes) + of_weights,
                     backwards_data.scratch_bytes(), evaluates.scratch_bytes()});
  }
  void forward(const void* x, const void* w, const void* b, void* y, std::byte* scratch, Mode mode) override {
    (mode == Mode::evaluation && evaluates.computation ? evaluates : forwards).run(x, w, b, y, scratch);
    if (rectified > 0)
      with_layer_number(dtype,
                        [&]<class T>(std::type_identity<T>) { rectify(static_cast<T*>(y), rectified, threads); });
  }
  void backward_weights(const void* x, const void* dz, void* dw, std::byte* scratch) override {
    parts.sum(x, dz, dw, weight_bytes, scratch, threads,
              [this](bool rest, const void* part_x, const void* part_dz, void* to, std::byte* memory) {
                Direction& direction = rest ? rest_of_weights : backwards_weights;
                if (direction.strassen)
                  direction.run(part_dz, part_x, nullptr, to, memory);
                else
                  direction.run(part_x, part_dz, nullptr, to, memory);
              });
  }
  void backward_data(const void* dz, const void* w, void* dx, std::byte* scratch) override {
    backwards_data.run(dz, w, nullptr, dx, scratch);
  }
};

/// By our own kernel, in float32.
class PanelProducts final : public DenseProducts {
 public:
  PanelProducts(const DenseMatrices& m, int threads)
      : threads_(threads),
        parts_(m),
        panels_(panels_of(m, threads)),
        weight_bytes_(panels_.weight().bytes()),
        part_(panels_of(parts_.part(), threads)),
        rest_(panels_of(parts_.rest(), threads)) {}

  [[nodiscard]] TensorDesc weight() const override { return panels_.weight(); }
  [[nodiscard]] std::string picks() const override { return "weights in panels"; }
  [[nodiscard]] std::size_t scratch_bytes() const override {
    return std::max(panels_.scratch_bytes(),
                    parts_.scratch_bytes(weight_bytes_) + std::max(part_.scratch_bytes(), rest_.scratch_bytes()));
  }
  void forward(const void* x, const void* w, const void* b, void* y, std::byte* scratch, Mode) override {
    panels_.forward(floats(x), floats(w), floats(b), static_cast<float*>(y), scratch);
  }
  void backward_weights(const void* x, const void* dz, void* dw, std::byte* scratch) override {
    parts_.sum(
        x, dz, dw, weight_bytes_, scratch, threads_,
        [this](bool rest, const void* part_x, const void* part_dz, void* to, std::byte* memory) {
          (rest ? rest_ : part_).backward_weights(floats(part_x), floats(part_dz), static_cast<float*>(to), memory);
        });
  }
  void backward_data(const void* dz, const void* w, void* dx, std::byte* scratch) override {
    panels_.backward_data(floats(dz), floats(w), static_cast<float*>(dx), scratch);
  }

 private:
  static const float* floats(const void* numbers) { return static_cast<const float*>(numbers); }
  static Panels panels_of(const DenseMatrices& m, int threads) {
    return {m.batch, m.inputs, m.outputs, m.relu, threads};
  }

  int threads_;
  RowParts parts_;
  Panels panels_;
  std::size_t weight_bytes_;
  Panels part_, rest_;  ///< for weight gradients of a part of the rows, and of the rest
};

/// The library's inner product, with weights in a given layout or (`any`) in the one it likes best.
class InnerProduct {
 public:
  InnerProduct(const Runtime& runtime, const DenseMatrices& matrices, const memory::desc& weight)
      : runtime_(runtime),
        m_(matrices),
        bias_(m_.bias ? plain_layout({m_.outputs}, Axes::weight, m_.dtype) : memory::desc()),
        forward_(adapter::inner_product_forward(runtime.engine, m_.x, weight, bias_, m_.y, Computation::attributes())) {
  }

  [[nodiscard]] memory::desc weight() const { return forward_.weights_desc(); }

  [[nodiscard]] std::unique_ptr<Computation> forward() const {
    std::vector<Computation::Argument> inputs{{DNNL_ARG_SRC, m_.x, m_.x}, {DNNL_ARG_WEIGHTS, weight(), weight()}};
    if (m_.bias) inputs.push_back({DNNL_ARG_BIAS, bias_, bias_});
    return computation(forward_, dnnl::inner_product_forward(forward_), inputs, {DNNL_ARG_DST, m_.y, m_.y});
  }
  [[nodiscard]] std::unique_ptr<Computation> backward_weights() const {
    auto description = weights_description(weight());
    if (is_fallback(description.impl_info_str())) description = weights_description(m_.any_weight());
    return computation(description, dnnl::inner_product_backward_weights(description),
                       {{DNNL_ARG_SRC, m_.x, m_.x}, {DNNL_ARG_DIFF_DST, m_.y, m_.y}},
                       {DNNL_ARG_DIFF_WEIGHTS, weight(), description.diff_weights_desc()});
  }
  [[nodiscard]] std::unique_ptr<Computation> backward_data() const {
    auto description = data_description(weight());
    if (is_fallback(description.impl_info_str())) description = data_description(m_.any_weight());
    return computation(description, dnnl::inner_product_backward_data(description),
                       {{DNNL_ARG_DIFF_DST, m_.y, m_.y}, {DNNL_ARG_WEIGHTS, weight(), description.weights_desc()}},
                       {DNNL_ARG_DIFF_SRC, m_.x, m_.x});
  }

 private:
  [[nodiscard]] dnnl::inner_product_backward_weights::primitive_desc weights_description(
      const memory::desc& weight) const {
    return adapter::inner_product_backward_weights(runtime_.engine, m_.x, weight, m_.y, forward_,
                                                   Computation::attributes());
  }
  [[nodiscard]] dnnl::inner_product_backward_data::primitive_desc data_description(const memory::desc& weight) const {
    return adapter::inner_product_backward_data(runtime_.engine, m_.x, weight, m_.y, forward_,
                                                Computation::attributes());
  }
  template <class Description>
  std::unique_ptr<Computation> computation(const Description& description, const dnnl::primitive& primitive,
                                           std::vector<Computation::Argument> inputs,
                                           const Computation::Argument& output) const {
    return std::make_unique<Computation>(runtime_, primitive, description.scratchpad_desc(), std::move(inputs), output);
  }

  const Runtime& runtime_;
  const DenseMatrices& m_;
  memory::desc bias_;
  dnnl::inner_product_forward::primitive_desc forward_;
};

/// Plain matrix products, with weights as (outputs, inputs): the other way round, rows of a power of two collide in
/// cache.
class MatrixProduct {
 public:
  MatrixProduct(const Runtime& runtime, const DenseMatrices& matrices) : runtime_(runtime), m_(matrices) {}

  [[nodiscard]] std::unique_ptr<Computation> forward() const {
    const memory::desc w = m_.transposed(m_.inputs, m_.outputs);
    const memory::desc b = m_.bias ? m_.matrix(1, m_.outputs) : memory::desc();
    std::vector<Computation::Argument> inputs{{DNNL_ARG_SRC, m_.x, m_.x}, {DNNL_ARG_WEIGHTS, w, w}};
    if (m_.bias) inputs.push_back({DNNL_ARG_BIAS, b, b});
    return product(m_.x, w, b, m_.y, inputs);
  }
  [[nodiscard]] std::unique_ptr<Computation> backward_weights() const {
    const memory::desc dz = m_.transposed(m_.outputs, m_.batch);
    return product(dz, m_.x, memory::desc(), m_.plain_weight(),
                   {{DNNL_ARG_WEIGHTS, m_.x, m_.x}, {DNNL_ARG_SRC, dz, dz}});
  }
  [[nodiscard]] std::unique_ptr<Computation> backward_data() const {
    const memory::desc w = m_.plain_weight();
    return product(m_.y, w, memory::desc(), m_.x, {{DNNL_ARG_SRC, m_.y, m_.y}, {DNNL_ARG_WEIGHTS, w, w}});
  }

 private:
  std::unique_ptr<Computation> product(const memory::desc& a, const memory::desc& b, const memory::desc& bias,
                                       const memory::desc& c, const std::vector<Computation::Argument>& inputs) const {
    const auto description = adapter::matmul(runtime_.engine, a, b, bias, c, Computation::attributes());
    return std::make_unique<Computation>(runtime_, dnnl::matmul(description), description.scratchpad_desc(), inputs,
                                         Computation::Argument{DNNL_ARG_DST, c, c});
  }

  const Runtime& runtime_;
  const DenseMatrices& m_;
};

/// Weights in the library's own (blocked) layout. Empty where it has none or one that Ronda cannot name.
std::unique_ptr<DenseProducts> blocked_products(const Runtime& runtime, const DenseMatrices& m,
                                                const OperationContext& context) {
  try {
    const InnerProduct product(runtime, m, m.any_weight());
    if (!to_tensor_desc(product.weight(), Axes::weight)) return nullptr;
    auto result = std::make_unique<LibraryProducts>(m, runtime.threads, product.weight(), "blocked weights");
    result->forwards.computation = product.forward();
    if (context.mode != Mode::training) return result;
    const RowParts& parts = result->parts;
    result->backwards_weights.computation = InnerProduct(runtime, parts.part(), product.weight()).backward_weights();
    if (parts.has_rest())
      result->rest_of_weights.computation = InnerProduct(runtime, parts.rest(), product.weight()).backward_weights();
    if (context.input_gradient) result->backwards_data.computation = product.backward_data();
    return result;
  } catch (const dnnl::error&) {
    return nullptr;
  }
}

/// Whether Strassen's algorithm pays: in a training, where all sides are long. The same on all ranks, whatever their
/// processors.
bool strassen_pays(const DenseMatrices& m, const OperationContext& context) {
  constexpr std::int64_t shortest = 192, multiplications = 1 << 26;
  return m.dtype == DType::float32 && context.mode == Mode::training &&
         std::min({m.batch, m.inputs, m.outputs}) >= shortest && m.batch * m.inputs * m.outputs >= multiplications;
}

/// The three products of a training as Strassen takes them, with plain weights.
class StrassenProducts {
 public:
  StrassenProducts(const Runtime& runtime, const DenseMatrices& m, const OperationContext& context,
                   Strassen::Steps steps)
      : m_(m),
        steps_(steps),
        threads_(runtime.threads),
        runs_(strassen_pays(m, context) && Strassen::suit_processor()) {}

  // Empty where it does not pay, and on a processor without its instructions.

  [[nodiscard]] std::optional<Strassen> forward() const {
    return product(m_.batch, m_.inputs, m_.outputs, {m_.inputs, 1}, {m_.inputs, 1});
  }
  [[nodiscard]] std::optional<Strassen> backward_weights() const {
    return product(m_.outputs, m_.batch, m_.inputs, {1, m_.outputs}, {1, m_.inputs});
  }
  [[nodiscard]] std::optional<Strassen> backward_data() const {
    return product(m_.batch, m_.outputs, m_.inputs, {m_.outputs, 1}, {1, m_.inputs});
  }

 private:
  [[nodiscard]] std::optional<Strassen> product(std::int64_t rows, std::int64_t depth, std::int64_t columns,
                                                Strassen::Strides a, Strassen::Strides b) const {
    if (!runs_) return std::nullopt;
    return Strassen(rows, depth, columns, a, b, steps_, threads_);
  }

  const DenseMatrices& m_;
  Strassen::Steps steps_;
  int threads_;
  bool runs_;
};

/// For timing, on memory of its own.
std::function<void()> rehearsal_of(const Strassen& product) {
  struct Memory {
    Buffer a, b, c, scratch;
  };
  const auto matrix = [](std::int64_t rows, std::int64_t columns) {
    return Buffer::host(static_cast<std::size_t>(rows * columns) * sizeof(float));
  };
  const auto floats = [](const Buffer& buffer) { return reinterpret_cast<float*>(buffer.data()); };
  return rehearsal(
      [&product, matrix] {
        return std::make_shared<Memory>(
            Memory{matrix(product.rows(), product.depth()), matrix(product.depth(), product.columns()),
                   matrix(product.rows(), product.columns()), Buffer::host(product.scratch_bytes())});
      },
      [&product, floats](const Memory& memory) {
        product.run(floats(memory.a), floats(memory.b), nullptr, floats(memory.c), memory.scratch.data());
      });
}

/// Weights in rows: the best implementation in each direction.
std::unique_ptr<DenseProducts> plain_products(const Runtime& runtime, const DenseMatrices& m,
                                              const OperationContext& context) {
  auto result = std::make_unique<LibraryProducts>(m, runtime.threads, m.plain_weight(), "plain weights");
  const auto choose = [&](const DenseMatrices& matrices, const char* name, auto&& make) {
    const InnerProduct inner(runtime, matrices, matrices.plain_weight());
    const MatrixProduct matrix(runtime, matrices);
    const StrassenProducts strassen(runtime, matrices, context, Strassen::Steps::single),
        paired(runtime, matrices, context, Strassen::Steps::paired);
    std::vector<Option> options;
    options.push_back({"inner product", if_possible([&] { return make(inner); })});
    options.push_back({"matrix product", if_possible([&] { return make(matrix); })});
    const std::array<std::pair<const char*, std::optional<Strassen>>, 2> products{
        {{"Strassen", make(strassen)}, {"Strassen by pairs", make(paired)}}};
    std::vector<Candidate> ours;
    for (const auto& [product_name, product] : products)
      if (strassen_pays(matrices, context)) ours.push_back({product_name, product ? rehearsal_of(*product) : nullptr});
    const std::string question =
        std::string("dense ") + name + " " + matrices.text() + (ours.empty() ? "" : ", or Strassen by pairs");
    Option chosen = pick(context.picker, question, std::move(options), ours);
    result->names += std::string(", ") + name + " " + chosen.name;
    Direction direction{std::move(chosen.computation), std::nullopt};
    for (const auto& [product_name, product] : products)
      if (chosen.name == product_name) direction.strassen = product;
    return direction;
  };
  result->forwards = choose(m, "forward", [](const auto& product) { return product.forward(); });
  if (result->forwards.strassen) {
    const InnerProduct inner(runtime, m, m.plain_weight());
    const MatrixProduct matrix(runtime, m);
    result->evaluates.computation = if_possible([&] { return inner.forward(); });
    if (!result->evaluates.computation) result->evaluates.computation = matrix.forward();
  }
  if (context.mode == Mode::training) {
    const auto make = [](const auto& product) { return product.backward_weights(); };
    result->backwards_weights = choose(result->parts.part(), "backward weights", make);
    if (result->parts.has_rest()) result->rest_of_weights = choose(result->parts.rest(), "backward weights", make);
  }
  if (context.mode == Mode::training && context.input_gradient)
    result->backwards_data = choose(m, "backward data", [](const auto& product) { return product.backward_data(); });
  return result;
}

/// Whether it trains on samples themselves.
bool is_first_layer(const OperationContext& context) {
  return context.mode == Mode::training && !context.input_gradient;
}

/// All directions that will be needed, on memory of its own, for timing.
class Rehearsal {
 public:
  Rehearsal(const DenseMatrices& m, const OperationContext& context,
            std::span<const std::unique_ptr<DenseProducts>> all)
      : context_(context) {
    std::size_t weights = 0, scratch = 0;
    for (const auto& products : all) {
      if (!products) continue;
      weights = std::max(weights, products->weight().bytes());
      scratch = std::max(scratch, products->scratch_bytes());
    }
    ArenaPlan arena;
    w_ = arena.reserve(weights);
    dw_ = arena.reserve(context.mode == Mode::training ? weights : 0);
    b_ = arena.reserve(m.bias ? static_cast<std::size_t>(m.outputs) * size_of(m.dtype) : 0);
    has_bias_ = m.bias;
    x_ = arena.reserve(m.x.get_size());
    dx_ = arena.reserve(context.input_gradient ? m.x.get_size() : 0);
    y_ = arena.reserve(m.y.get_size());
    scratch_ = arena.reserve(scratch);
    memory_ = Buffer::host(arena.bytes());
    fill_input(m);
  }
  void operator()(DenseProducts& products) const {
    std::byte* scratch = memory_.data() + scratch_;
    products.forward(at(x_), at(w_), has_bias_ ? at(b_) : nullptr, at(y_), scratch, context_.mode);
    if (context_.mode != Mode::training) return;
    products.backward_weights(at(x_), at(y_), at(dw_), scratch);
    if (context_.input_gradient) products.backward_data(at(y_), at(w_), at(dx_), scratch);
  }

 private:
  /// With numbers that are not 0, of which a first layer gets every second: samples often are mostly 0.
  void fill_input(const DenseMatrices& m) const {
    const std::int64_t step = is_first_layer(context_) ? 2 : 1;
    with_layer_number(m.dtype, [&]<class T>(std::type_identity<T>) {
      T* const x = static_cast<T*>(at(x_));
      for (std::int64_t i = 0; i < m.batch * m.inputs; ++i)
        x[i] = as_number<T>((i * 2654435761 >> 15) % step == 0 ? 1.0F : 0.0F);
    });
  }
  [[nodiscard]] void* at(std::size_t offset) const { return memory_.data() + offset; }

  const OperationContext& context_;
  std::size_t w_, dw_, b_, x_, dx_, y_, scratch_;
  bool has_bias_;
  Buffer memory_;
};

}  // namespace

std::unique_ptr<DenseProducts> choose_products(const Runtime& runtime, const DenseMatrices& m,
                                               const OperationContext& context) {
  if (context.shared_parameters) return plain_products(runtime, m, context);
  std::array<std::unique_ptr<DenseProducts>, 3> all{
      plain_products(runtime, m, context), blocked_products(runtime, m, context),
      m.dtype == DType::float32 && Panels::suit_processor() ? std::make_unique<PanelProducts>(m, runtime.threads)
                                                            : nullptr};
  std::optional<Rehearsal> rehearsal;  // with memory that is only taken where something is timed
  const auto rehearse = [&](DenseProducts& products) {
    if (!rehearsal) rehearsal.emplace(m, context, all);
    (*rehearsal)(products);
  };
  const auto candidate = [&](const char* name, DenseProducts* products) {
    return Candidate{name, products == nullptr ? std::function<void()>() : [&, products] { rehearse(*products); }};
  };
  const std::array candidates{candidate("plain", all[0].get()), candidate("blocked", all[1].get()),
                              candidate("panels", all[2].get())};
  std::string question = "dense layout " + m.text();
  if (context.mode == Mode::evaluation)
    question += ", evaluation";
  else if (is_first_layer(context))
    question += ", no input gradient, half of the inputs 0";
  if (strassen_pays(m, context)) question += ", or Strassen by pairs";
  return std::move(all[context.picker.pick(question, candidates)]);
}

}  // namespace ronda::onednn
