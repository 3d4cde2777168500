package dev.symplan.ir.hlo;

import com.google.common.collect.ImmutableList;
import java.util.Optional;
import java.util.regex.Pattern;

/**
 * The parameters and the result of a module's entry computation, as the first line gives them. The
 * instructions themselves may not say yet in which memory these are.
 *
 * @param parameters their shapes, in order; empty if the line does not have them
 */
record EntryLayout(ImmutableList<HloShape> parameters, Optional<HloShape> result) {
  private static final EntryLayout NONE = new EntryLayout(ImmutableList.of(), Optional.empty());
  private static final Pattern COMMENT = Pattern.compile("/\\*[^*]*\\*/");
  private static final String ARROW = "->";

  /** {@return the layout; nothing of one that does not fit the entry computation} */
  static EntryLayout of(HloModule module) {
    var text = module.attributes().text("entry_computation_layout").map(String::strip).orElse("");
    // Only memory spaces are of interest.
    int arrow = text.indexOf(ARROW);
    if (!text.contains("S(") || arrow < 1 || !text.startsWith("{") || !text.endsWith("}")) {
      return NONE;
    }
    try {
      var plain = COMMENT.matcher(text).replaceAll("");
      int at = plain.indexOf(ARROW);
      var parameters = ShapeReader.read(plain.substring(1, at));
      var result = ShapeReader.read(plain.substring(at + ARROW.length(), plain.length() - 1));
      return parameters instanceof HloShape.Tuple(ImmutableList<HloShape> parts)
              && fits(parts, result, module.entry())
          ? new EntryLayout(parts, Optional.of(result))
          : NONE;
    } catch (ShapeReader.WrongShape e) {
      return NONE;
    }
  }

  private static boolean fits(
      ImmutableList<HloShape> parameters, HloShape result, HloComputation entry) {
    var own = entry.parameters();
    if (own.size() != parameters.size() || !isAlike(result, entry.root().shape())) {
      return false;
    }
    for (int i = 0; i < parameters.size(); i++) {
      if (!isAlike(parameters.get(i), own.get(i).shape())) {
        return false;
      }
    }
    return true;
  }

  /** {@return whether two shapes differ in their memory at most} */
  private static boolean isAlike(HloShape one, HloShape other) {
    var arrays = one.arrays().map(HloShape.Array::tensor).toList();
    return arrays.equals(other.arrays().map(HloShape.Array::tensor).toList());
  }

  /** {@return the shape of a parameter} */
  Optional<HloShape> parameter(int number) {
    return number < parameters.size() ? Optional.of(parameters.get(number)) : Optional.empty();
  }
}
