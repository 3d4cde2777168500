package dev.symplan.cli;

import com.google.common.base.Splitter;
import java.nio.charset.StandardCharsets;

/**
 * The comparison of some ranks' outputs with the expected ones.
 *
 * @param rows lines for people
 * @param outputs how many were compared
 * @param wrong how many of these differ by more than the tolerance
 * @param unspecified how many could not be compared, because no op writes them
 */
record Compared(String rows, int outputs, int wrong, int unspecified) {
  static final Compared NOTHING = new Compared("", 0, 0, 0);

  Compared plus(Compared other) {
    return new Compared(
        rows + other.rows,
        outputs + other.outputs,
        wrong + other.wrong,
        unspecified + other.unspecified);
  }

  /** {@return it for another process} */
  byte[] toBytes() {
    return "%s %s %s\n%s"
        .formatted(outputs, wrong, unspecified, rows)
        .getBytes(StandardCharsets.UTF_8);
  }

  static Compared of(byte[] bytes) {
    var text = new String(bytes, StandardCharsets.UTF_8);
    int end = text.indexOf('\n');
    var numbers =
        Splitter.on(' ').splitToStream(text.substring(0, end)).mapToInt(Integer::parseInt);
    var counts = numbers.toArray();
    return new Compared(text.substring(end + 1), counts[0], counts[1], counts[2]);
  }
}
