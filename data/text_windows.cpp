#include <ronda/core/error.hpp>
#include <ronda/core/hash.hpp>
#include <ronda/core/random.hpp>
#include <ronda/data/detail/mapped_file.hpp>
#include <ronda/data/text_windows.hpp>

#include <algorithm>

namespace ronda {
namespace {

std::size_t checked(std::int64_t context) {
  constexpr std::int64_t most = std::int64_t{1} << 30;
  if (context < 1 || context > most)
    throw InputError("a window of a text has from 1 to " + std::to_string(most) + " bytes, found " +
                     std::to_string(context));
  return static_cast<std::size_t>(context);
}

bool is_gzipped(const Buffer& file) {
  constexpr std::array<std::byte, 2> magic{std::byte{0x1f}, std::byte{0x8b}};
  return file.bytes() >= magic.size() && std::equal(magic.begin(), magic.end(), file.data());
}

}  // namespace

TextWindows::TextWindows(const std::filesystem::path& path, std::int64_t context, const Options& options)
    : file_(path.string()),
      context_(checked(context)),
      vary_(options.vary),
      text_(map_file(path)),
      fields_{Field{"input", Shape{context}, DType::int32}, Field{"target", Shape{context}, DType::int32}} {
  if (is_gzipped(text_)) throw InputError(path.string() + " is gzipped; unpack it, for its bytes are read as they are");
  if (size() == 0)
    throw InputError(path.string() + ": expected at least the " + std::to_string(context_ + 1) +
                     " bytes of a window of " + std::to_string(context_) + ", found " + std::to_string(text_.bytes()));
}

void TextWindows::read(const SampleRequest& request, Batch& batch) const {
  const auto* text = reinterpret_cast<const std::uint8_t*>(text_.data());
  const std::size_t earlier =
      vary_ && request.epoch > 0
          ? RngKey(request.seed, Purpose::augmentation, "windows of a text").below(context_, request.epoch)
          : 0;
  const auto begin_of = [&](std::uint64_t sample) {
    const bool moves = sample > 0 && (request.pool == nullptr || request.pool->contains(sample - 1));
    return sample * context_ - (moves ? earlier : 0);
  };
  auto* input = batch.input().pointer<std::int32_t>();
  auto* target = batch.target().pointer<std::int32_t>();
  for (const std::uint64_t sample : request.samples) read_ahead({text_.data() + begin_of(sample), context_ + 1});
  for (const std::uint64_t sample : request.samples) {
    const std::uint8_t* window = text + begin_of(sample);
    input = std::copy_n(window, context_, input);
    target = std::copy_n(window + 1, context_, target);
  }
}

std::vector<StoredField> TextWindows::stored() const {
  if (vary_) return {};
  const std::span<const std::byte> text(text_.data(), text_.bytes());
  const std::size_t bytes = size() * context_;
  return {{text.first(bytes), Decode::label}, {text.subspan(1, bytes), Decode::label}};
}

std::uint64_t TextWindows::fingerprint() const { return Hash().add(text_.bytes()).add(Dataset::fingerprint()).value(); }

}  // namespace ronda
