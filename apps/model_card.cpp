#include "model_card.hpp"

namespace ronda::apps {

void describe_model(CommandLine& command_line, const ModelCard& more) {
  std::string& text = command_line.training.metadata[model_card_key];
  ModelCard card =
      text.empty() ? ModelCard{{"application", command_line.training.application}} : ModelCard::parse(text);
  card.update(more);
  text = card.dump(-1, ' ', false, ModelCard::error_handler_t::replace);  // names of folders may be no text
}

}  // namespace ronda::apps
