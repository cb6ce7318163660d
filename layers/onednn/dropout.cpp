#include <ronda/core/multiversion.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/layers/dropout_mask.hpp>
#include <ronda/layers/onednn/images.hpp>
#include <ronda/layers/onednn/operations.hpp>

#include <algorithm>
#include <array>
#include <string_view>

namespace ronda::onednn {
namespace {

constexpr std::size_t draws_at_once = 16;
constexpr std::int64_t each_draw = DropoutMask::channels_of_draw;

/// What decides about an element each.
using Bits = std::array<std::uint16_t, draws_at_once * DropoutMask::channels_of_draw>;

/// Which elements are kept, and what they are multiplied with. Bits are compared as a float: the compiler makes vector
/// instructions of choices only where what is compared and what is chosen have one type.
struct Kept {
  float largest_dropped, factor;
  [[nodiscard, gnu::always_inline]] float of(float bits) const { return bits <= largest_dropped ? 0.0F : factor; }
};

/// The first `count` elements. y may be x.
template <LayerNumber T>
[[gnu::always_inline]] inline void multiply_loop(const T* x, T* y, const Bits& bits, std::int64_t count,
                                                 const Kept& kept) {
  by_lanes(count, [&](std::int64_t lane, auto width) RONDA_INLINE {
    float values[16];
    const std::uint16_t* here = bits.data() + lane;
    each_lane(width, [&](std::int64_t l) RONDA_INLINE { values[l] = static_cast<float>(here[l]); });
    each_lane(width, [&](std::int64_t l) RONDA_INLINE { values[l] = as_float(x[lane + l]) * kept.of(values[l]); });
    each_lane(width, [&](std::int64_t l) RONDA_INLINE { y[lane + l] = as_number<T>(values[l]); });
  });
}
RONDA_MULTIVERSION void multiply(const float* x, float* y, const Bits& bits, std::int64_t count, const Kept& kept) {
  multiply_loop(x, y, bits, count, kept);
}
RONDA_MULTIVERSION void multiply(const BFloat16* x, BFloat16* y, const Bits& bits, std::int64_t count,
                                 const Kept& kept) {
  multiply_loop(x, y, bits, count, kept);
}

/// The halves of the words, low ones first.
Bits bits_of(const RngKey& key, const std::array<std::uint64_t, draws_at_once>& counters) {
  std::array<std::uint32_t, 4 * draws_at_once> words;
  key.bits(counters, words);
  Bits bits;
  for (std::size_t i = 0; i < words.size(); ++i) {
    bits[2 * i] = static_cast<std::uint16_t>(words[i]);
    bits[2 * i + 1] = static_cast<std::uint16_t>(words[i] >> 16);
  }
  return bits;
}

/// Draws in both directions, and keeps nothing in between.
template <LayerNumber T>
class Dropping final : public Operation {
 public:
  Dropping(const Runtime& runtime, const TensorDesc& input, const Images& images, const DropoutSpec& spec,
           std::string_view name)
      : threads_(runtime.threads),
        images_(images),
        mask_(spec, name, input.shape),
        kept_{static_cast<float>(mask_.largest_dropped()), mask_.factor()} {
    plan_ = plan_of_function(input, false, "our loops");
    plan_.backward_reads_output = false;
  }
  void bind(const OperationMemory& memory) override { memory_ = memory; }
  void forward(Inputs inputs, const Pass& pass) override {
    const auto* x = inputs.front().pointer<const T>();
    auto* y = memory_.output.pointer<T>();
    if (pass.mode == Mode::training)
      drop(x, y, pass);
    else if (x != y)
      std::copy_n(x, images_.image_size() * static_cast<std::int64_t>(images_.count()), y);
  }
  void backward(Inputs, const Tensor& output_gradient, const Pass& pass) override {
    if (memory_.input_gradient().empty()) return;
    drop(output_gradient.pointer<const T>(), memory_.input_gradient().pointer<T>(), pass);
  }

 private:
  void drop(const T* x, T* y, const Pass& pass) const {
    const RngKey key = mask_.key(pass);
    parallel_for(threads_, images_.count(), [&](Range images) {
      for (auto image = static_cast<std::int64_t>(images.begin); image < static_cast<std::int64_t>(images.end); ++image)
        drop_image(image, x + image * images_.image_size(), y + image * images_.image_size(), key, pass);
    });
  }

  /// Position by position.
  void drop_image(std::int64_t image, const T* x, T* y, const RngKey& key, const Pass& pass) const {
    const std::int64_t draws = (images_.lanes + each_draw - 1) / each_draw, count = images_.positions() * draws;
    const std::int64_t first_lane = image % images_.groups * images_.lanes;
    const std::uint64_t begin =
        mask_.draw(pass, image / images_.groups, 0) + static_cast<std::uint64_t>(first_lane / each_draw);
    std::int64_t position = 0, draw = 0;
    for (std::int64_t done = 0; done < count; done += draws_at_once) {
      std::array<std::uint64_t, draws_at_once> counters{};
      std::array<std::int64_t, draws_at_once> offsets{}, widths{};
      const std::size_t left = std::min(draws_at_once, static_cast<std::size_t>(count - done));
      for (std::size_t i = 0; i < left; ++i) {
        counters[i] = begin + static_cast<std::uint64_t>(position * mask_.draws_of_position() + draw);
        offsets[i] = position * images_.lanes + each_draw * draw;
        widths[i] = std::min(each_draw, images_.lanes - each_draw * draw);
        if (++draw == draws) draw = 0, ++position;
      }
      const Bits bits = bits_of(key, counters);
      if (images_.lanes % each_draw == 0) {  // so they lie together
        multiply(x + offsets[0], y + offsets[0], bits, each_draw * static_cast<std::int64_t>(left), kept_);
        continue;
      }
      for (std::size_t i = 0; i < left; ++i)
        for (std::int64_t l = 0; l < widths[i]; ++l) {
          const std::int64_t place = each_draw * static_cast<std::int64_t>(i) + first_lane % each_draw + l;
          y[offsets[i] + l] =
              as_number<T>(as_float(x[offsets[i] + l]) * kept_.of(bits[static_cast<std::size_t>(place)]));
        }
    }
  }

  int threads_;
  Images images_;
  DropoutMask mask_;
  Kept kept_;
  OperationMemory memory_;
};

}  // namespace

std::unique_ptr<Operation> make_dropout(const Runtime& runtime, const TensorDesc& input, const DropoutSpec& spec,
                                        const OperationContext& context) {
  const auto images = images_of(input);
  if (!images) return nullptr;  // then the plain loops'
  return with_layer_number(input.dtype, [&]<class T>(std::type_identity<T>) -> std::unique_ptr<Operation> {
    return std::make_unique<Dropping<T>>(runtime, input, *images, spec, context.name);
  });
}

}  // namespace ronda::onednn
