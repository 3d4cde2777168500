package dev.symplan.cli.common;

import dev.symplan.ir.joint.Buckets;
import java.util.List;
import java.util.Optional;
import java.util.regex.Pattern;
import picocli.CommandLine.TypeConversionException;

/**
 * A value of {@code --dim}: one size, or those from a first to a last one ({@code 1..4096}).
 *
 * @param first at least 1 in a range of several
 */
public record SizeRange(long first, long last) {
  private static final Pattern RANGE = Pattern.compile("([0-9]{1,15})\\.\\.([0-9]{1,15})");

  static SizeRange of(String text) {
    var range = RANGE.matcher(text);
    if (!range.matches()) {
      long only = OptionValues.whole(text, Long::valueOf);
      return new SizeRange(only, only);
    }
    var found = new SizeRange(Long.parseLong(range.group(1)), Long.parseLong(range.group(2)));
    if (found.first < 1 || found.first >= found.last) {
      throw new TypeConversionException(
          "'%s' is not a range of positive sizes such as 1..4096".formatted(text));
    }
    return found;
  }

  /** {@return the size; empty if there are several} */
  Optional<Long> only() {
    return first == last ? Optional.of(first) : Optional.empty();
  }

  /** {@return the sizes to plan for, so that each size of the range has one that is not smaller} */
  List<Long> buckets() {
    return Buckets.powersOfTwo(first, last);
  }

  @Override
  public String toString() {
    return only().map(String::valueOf).orElse(first + ".." + last);
  }
}
