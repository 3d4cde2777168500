package dev.symplan.ir.hlo;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.primitives.ImmutableLongArray;
import java.util.Optional;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * The attributes after an instruction, or after a module's name: {@code dimensions={0},
 * to_apply=%add}. Values are kept as written.
 *
 * @param values the text of each value, by key; empty for a key alone
 */
public record HloAttributes(ImmutableMap<String, String> values) {
  static final HloAttributes NONE = new HloAttributes(ImmutableMap.of());

  private static final int MAX_DIGITS = 18;
  private static final Pattern NAME = Pattern.compile("%?([A-Za-z_][A-Za-z0-9_.\\-]*)");

  /** {@return the text of a value} */
  public Optional<String> text(String key) {
    return Optional.ofNullable(values.get(key));
  }

  public boolean has(String key) {
    return values.containsKey(key);
  }

  /** {@return whether the value is {@code true}} */
  public boolean flag(String key) {
    return "true".equals(values.get(key));
  }

  /** {@return the integers in a value, in order; empty if it is not there} */
  public ImmutableLongArray integers(String key) {
    @Nullable String text = values.get(key);
    return text == null ? ImmutableLongArray.of() : integersIn(text);
  }

  /**
   * {@return the integers in a text, in order} Other characters only part them. A number beyond all
   * sizes becomes the largest one, which everything refuses.
   */
  static ImmutableLongArray integersIn(String text) {
    var found = ImmutableLongArray.builder();
    int at = 0;
    while (at < text.length()) {
      int start = at++;
      if (!isDigit(text, start) && !(text.charAt(start) == '-' && isDigit(text, at))) {
        continue;
      }
      while (isDigit(text, at)) {
        at++;
      }
      boolean fits = at - start <= MAX_DIGITS;
      found.add(fits ? Long.parseLong(text, start, at, 10) : Long.MAX_VALUE);
    }
    return found.build();
  }

  private static boolean isDigit(String text, int at) {
    return at < text.length() && text.charAt(at) >= '0' && text.charAt(at) <= '9';
  }

  /** {@return the only integer of a value} */
  public Optional<Long> integer(String key) {
    var found = integers(key);
    return found.length() == 1 ? Optional.of(found.get(0)) : Optional.empty();
  }

  /** {@return the names of computations in a value, without their signs} */
  public ImmutableList<String> names(String key) {
    return text(key).stream()
        .flatMap(text -> NAME.matcher(text).results())
        .map(result -> result.group(1))
        .collect(ImmutableList.toImmutableList());
  }

  /** {@return a string without its quotes, as {@code custom_call_target="foo"}} */
  public String string(String key) {
    return unquoted(values.getOrDefault(key, ""));
  }

  /** {@return the value of one key of {@code metadata={…}}} */
  public Optional<String> metadata(String key) {
    @Nullable String text = values.get("metadata");
    if (text == null) {
      return Optional.empty();
    }
    int at = text.indexOf(key + "=");
    if (at <= 0 || Character.isLetterOrDigit(text.charAt(at - 1)) || text.charAt(at - 1) == '_') {
      return Optional.empty();
    }
    int start = at + key.length() + 1;
    int end = start;
    if (end < text.length() && text.charAt(end) == '"') {
      end++;
      while (end < text.length() && text.charAt(end) != '"') {
        end += text.charAt(end) == '\\' ? 2 : 1;
      }
      return Optional.of(text.substring(start + 1, Math.min(end, text.length())));
    }
    while (end < text.length() && " ,}".indexOf(text.charAt(end)) < 0) {
      end++;
    }
    return Optional.of(text.substring(start, end));
  }

  static String unquoted(String text) {
    boolean quoted = text.length() > 1 && (text.charAt(0) == '"' || text.charAt(0) == '\'');
    return quoted ? text.substring(1, text.length() - 1) : text;
  }
}
