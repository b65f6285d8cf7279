// Numbers and names in text that programs print or write.
#pragma once

#include <string>
#include <string_view>

namespace tessera {

// With so many digits after the '.', in every locale.
std::string Fixed(double value, int decimals);
// The shortest text that stands for `value`, in every locale: "2", "1.5".
std::string Shortest(double value);

// A JSON string, with its quotes. It is shown as in messages (OneLine), so that it is UTF-8 and
// holds no control characters whatever the bytes.
std::string JsonString(std::string_view text);

}  // namespace tessera
