// The text of an error as parts: plain texts, and the settings that it names.
#include "support/catch.hpp"

#include <ronda/core/error.hpp>
#include <ronda/core/message.hpp>

#include <string>
#include <variant>
#include <vector>

using namespace ronda;

namespace {

/// `<batch_size>`, `<strategy|sharded>`; `secret` has no name.
std::string in_angles(const Setting& setting) {
  if (setting.field == "secret") return "";
  return "<" + setting.field + (setting.value ? "|" + *setting.value : "") + ">";
}

}  // namespace

TEST_CASE("a message's text names settings as C++ does") {
  CHECK(setting("one_copy").text() == ".one_copy");
  CHECK(setting("strategy", "sharded").text() == ".strategy = sharded");
  CHECK(setting("batch_size", 64).text() == ".batch_size = 64");
  CHECK(setting("steps", 18446744073709551615U).text() == ".steps = 18446744073709551615");
  CHECK(setting("sparse", false).text() == ".sparse = false");
  CHECK(setting("init", "").text() == ".init = ");
  CHECK(("take " + setting("one_copy") + ", or " + std::string("leave") + " it").text() ==
        "take .one_copy, or leave it");
}

TEST_CASE("a message keeps its settings apart from its texts") {
  const Message message = "a (" + setting("a") + ", " + std::string("b") + ")" + setting("c", 1) + setting("d");
  const std::vector<Message::Part> parts{"a (", Setting{"a"}, ", b)", Setting{"c", "1"}, Setting{"d"}};
  CHECK(message.parts() == parts);
  CHECK(message.text_with(in_angles) == "a (<a>, b)<c|1><d>");
  CHECK(Message().empty());
  CHECK(Message("").empty());
  CHECK((Message("") + "a" + "" + "b").parts() == std::vector<Message::Part>{"ab"});
}

TEST_CASE("a setting without a name of the program's own is shown as in C++") {
  CHECK((setting("secret", 3) + " and " + setting("a")).text_with(in_angles) == ".secret = 3 and <a>");
  CHECK((setting("a") + "!").text_with(nullptr) == ".a!");
}

TEST_CASE("a text that looks like a setting is a text") {
  for (const char* text : {".5", "a.b", "file.txt", " .batch_size = 3", "(.one_copy)", "a. b"}) {
    CHECK(Message(text).text_with(in_angles) == text);
    CHECK(Message(text).parts() == std::vector<Message::Part>{text});
  }
  CHECK(setting("init", ".init = 4").text_with(in_angles) == "<init|.init = 4>");
}

TEST_CASE("messages are parts of messages") {
  const Message remedy = "take " + setting("strategy", "mirrored");
  Message message = "it is sparse; " + remedy;
  message += ", or " + remedy;
  CHECK(message.text() == "it is sparse; take .strategy = mirrored, or take .strategy = mirrored");
  CHECK(message.text_with(in_angles) == "it is sparse; take <strategy|mirrored>, or take <strategy|mirrored>");
  message += message;
  CHECK(message.parts().size() == 8);
}

TEST_CASE("a packed message is the same message elsewhere") {
  for (const Message& message :
       {Message(), Message("plain: 3:t5"), setting("a"), setting("a", ""), setting("a") + setting("b", "v1:x"),
        "t1:x" + setting("strategy", "sharded") + std::string("\0\n\xff", 3)})
    CHECK(Message::unpacked(message.packed()) == message);
  const std::string packed = ("a" + setting("b", 1)).packed();
  CHECK_THROWS_AS(Message::unpacked(packed.substr(1)), LogicError);
  CHECK_THROWS_AS(Message::unpacked(packed.substr(0, packed.size() - 1)), LogicError);
  for (const char* bad :
       {"t", "t:", "t5", "t5:abc", "x1:a", "v1:a", "t1:av1:b", "f1:av1:bv1:c", "t-1:a", "t18446744073709551615:a"})
    CHECK_THROWS_AS(Message::unpacked(bad), LogicError);
}

TEST_CASE("an error has its message, and what() is the message's text") {
  const InputError error("take " + setting("threads", 2));
  CHECK(std::string(error.what()) == "take .threads = 2");
  CHECK(error.message().text_with(in_angles) == "take <threads|2>");
  const Error copy = error;
  CHECK(copy.message() == error.message());
  CHECK(message_of(error) == error.message());
  CHECK(message_of(std::runtime_error("plain")) == Message("plain"));
}
