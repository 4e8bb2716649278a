#include "chrome/object_list.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace pipewright::trace {
namespace {

constexpr std::size_t block_size = 64;

/// Bit i is set if byte i of the block is this character.
struct Letters {
  std::uint64_t quotes = 0, backslashes = 0, line_ends = 0;
  std::uint64_t opening = 0, closing = 0;  // brackets of both kinds

  static Letters of(const char* block);
};

#ifdef __SSE2__

Letters Letters::of(const char* block) {
  Letters letters;
  for (unsigned at = 0; at < block_size; at += 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + at));
    // '[' and '{', ']' and '}' differ in this bit.
    const __m128i bracket = _mm_or_si128(bytes, _mm_set1_epi8(0x20));
    const auto where = [&](__m128i in, char letter) {
      const int mask = _mm_movemask_epi8(_mm_cmpeq_epi8(in, _mm_set1_epi8(letter)));
      return static_cast<std::uint64_t>(mask) << at;
    };
    letters.quotes |= where(bytes, '"');
    letters.backslashes |= where(bytes, '\\');
    letters.line_ends |= where(bytes, '\n');
    letters.opening |= where(bracket, '{');
    letters.closing |= where(bracket, '}');
  }
  return letters;
}

#else

constexpr std::uint64_t in_each_byte(std::uint64_t byte) { return byte * 0x0101010101010101; }

/// Sets bit i if byte i of the word is 0.
std::uint64_t zero_bytes(std::uint64_t word) {
  constexpr std::uint64_t low = in_each_byte(0x7f);
  const std::uint64_t high_where_zero = ~(((word & low) + low) | word | low);
  return ((high_where_zero >> 7U) * 0x0102040810204080) >> 56U;
}

Letters Letters::of(const char* block) {
  Letters letters;
  for (unsigned at = 0; at < block_size; at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, block + at, sizeof word);
    const std::uint64_t bracket = word | in_each_byte(0x20);
    letters.quotes |= zero_bytes(word ^ in_each_byte('"')) << at;
    letters.backslashes |= zero_bytes(word ^ in_each_byte('\\')) << at;
    letters.line_ends |= zero_bytes(word ^ in_each_byte('\n')) << at;
    letters.opening |= zero_bytes(bracket ^ in_each_byte('{')) << at;
    letters.closing |= zero_bytes(bracket ^ in_each_byte('}')) << at;
  }
  return letters;
}

#endif

/// Sets bit i if byte i is escaped: it follows a backslash that is not itself escaped. `carry` is
/// the first bit.
std::uint64_t behind_backslashes(std::uint64_t backslashes, std::uint64_t& carry) {
  std::uint64_t escaped = carry;
  carry = 0;
  for (backslashes &= ~escaped; backslashes != 0;) {
    const std::uint64_t lowest = backslashes & (0 - backslashes);
    if (lowest >> 63U != 0)
      carry = 1;
    escaped |= lowest << 1U;
    backslashes &= ~(lowest | lowest << 1U);
  }
  return escaped;
}

/// Sets bit i to the parity of the bits up to i.
std::uint64_t parity_up_to(std::uint64_t bits) {
  for (unsigned shift = 1; shift < 64; shift *= 2)
    bits ^= bits << shift;
  return bits;
}

}  // namespace

const std::vector<ObjectList::Place>& ObjectList::next() {
  found_.clear();
  faults_.clear();
  while (true) {
    drop_read();
    scan(window_.size());
    if (!found_.empty())
      return found_;
    drop_read();
    if (closed_)
      return found_;
    if (window_.is_full())
      give_up("it is larger than 64 MB");
    else if (!window_.more())
      break;
  }
  // The last bytes do not fill a block; the padding of the window completes it.
  if (const std::size_t size = window_.size(); scanned_ < size) {
    std::memset(window_.data() + size, ' ', TextWindow::padding);
    scan(size + block_size - 1);
    scanned_ = std::min(scanned_, size);
  }
  if (found_.empty())
    drop_read();
  return found_;
}

/// Drops everything that was scanned, except for an object that has begun.
void ObjectList::drop_read() {
  const std::size_t read = depth_ > 0 ? begin_ : scanned_;
  window_.drop(read);
  scanned_ -= read;
  begin_ = 0;
}

void ObjectList::scan(std::size_t end) {
  while (scanned_ + block_size <= end && !closed_)
    scanned_ = lost_ ? find_object(scanned_, end) : scan_block(scanned_);
}

/// Returns where to continue.
std::size_t ObjectList::scan_block(std::size_t at) {
  const Letters letters = Letters::of(window_.data() + at);
  const std::uint64_t escaped =
      (letters.backslashes | escaped_) == 0 ? 0 : behind_backslashes(letters.backslashes, escaped_);
  const std::uint64_t in_text = parity_up_to(letters.quotes & ~escaped) ^ in_text_;
  const std::uint64_t brackets = (letters.opening | letters.closing) & ~in_text;
  // JSON texts cannot contain line breaks.
  if (const std::uint64_t broken = letters.line_ends & in_text; broken != 0) [[unlikely]] {
    const auto line_end = static_cast<std::size_t>(std::countr_zero(broken));
    const std::uint64_t before = brackets & ((std::uint64_t{1} << line_end) - 1);
    if (const auto closed = take_brackets(before, letters.opening, at))
      return *closed;
    if (depth_ == 0)
      begin_ = at + line_end;
    give_up("a text in it is not terminated");
    return at + line_end + 1;
  }
  in_text_ = 0 - (in_text >> 63U);
  return take_brackets(brackets, letters.opening, at).value_or(at + block_size);
}

/// Returns the position after the bracket that closes the list.
std::optional<std::size_t> ObjectList::take_brackets(std::uint64_t brackets, std::uint64_t opening,
                                                     std::size_t at) {
  for (; brackets != 0; brackets &= brackets - 1) {
    const auto place = at + static_cast<std::size_t>(std::countr_zero(brackets));
    if ((opening & brackets & (0 - brackets)) != 0) {
      if (depth_++ == 0)
        begin_ = place;
    } else if (depth_ > 0) {
      if (--depth_ == 0)
        found_.push_back({begin_, place + 1});
    } else if (window_.data()[place] == ']') {
      closed_ = true;
      return place + 1;
    }
  }
  return {};
}

void ObjectList::give_up(const char* why) {
  faults_.push_back({window_.offset() + begin_, why});
  lost_ = true;
  line_is_blank_ = true;
  depth_ = 0;
  in_text_ = 0;
  escaped_ = 0;
}

/// Returns where to continue: after the first brace that begins a line, or at the end.
std::size_t ObjectList::find_object(std::size_t at, std::size_t end) {
  for (; at < end; ++at) {
    const char letter = window_.data()[at];
    if (letter == '{' && line_is_blank_) {
      lost_ = false;
      depth_ = 1;
      begin_ = at;
      return at + 1;
    }
    line_is_blank_ = letter == '\n' || (line_is_blank_ && (letter == ' ' || letter == '\t'));
  }
  return end;
}

std::optional<std::uint64_t> ObjectList::unfinished() const {
  if (depth_ == 0)
    return {};
  return window_.offset() + begin_;
}

}  // namespace pipewright::trace
