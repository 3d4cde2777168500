package dev.symplan.codegen.cuda;

import dev.symplan.codegen.Transfer.Rows;

/**
 * The layout of the bytes that a kernel reads, and of those that it writes, if it counts them one
 * by one.
 *
 * @param source of all addresses that are read
 * @param target of all addresses that are written
 */
record RowsCode(Rows source, Rows target) {
  static final RowsCode ONE = new RowsCode(Rows.ONE, Rows.ONE);

  RowsCode {
    if (source.skipped() != 0 || target.skipped() != 0) {
      throw new IllegalArgumentException(source + " and " + target + " do not begin with a row");
    }
  }

  /** {@return the functions of a byte's number that say how far from the first one it lies} */
  String text() {
    return "\n" + text("source", source) + text("target", target);
  }

  private static String text(String name, Rows rows) {
    var offset = new StringBuilder("byte");
    if (!rows.equals(Rows.ONE)) {
      offset.setLength(0);
      for (int i = rows.loops().size() - 1; i >= 0; i--) {
        var loop = rows.loops().get(i);
        offset.append("byte / %sull".formatted(loop.bytes()));
        offset.append(i + 1 < rows.loops().size() ? " %% %sull".formatted(rows.rounds(i)) : "");
        offset.append(" * %sull + ".formatted(loop.pitch()));
      }
      offset.append("byte %% %sull".formatted(rows.bytes()));
    }
    return "__device__ __forceinline__ long long %s(unsigned long long byte) {\n  return %s;\n}\n"
        .formatted(name, offset);
  }

  /** {@return whether the rows at each end are equally far apart} */
  boolean areEven() {
    return source.loops().size() == 1 && target.loops().size() == 1;
  }

  /** {@return whether rows begin at multiples of so many bytes, and end there} */
  boolean divideInto(int bytes) {
    return divideInto(bytes, bytes);
  }

  /** {@return the same of those that are read, and of those that are written} */
  boolean divideInto(int read, int written) {
    return dividesInto(source, read) && dividesInto(target, written);
  }

  private static boolean dividesInto(Rows rows, int bytes) {
    return rows.equals(Rows.ONE)
        || (rows.bytes() % bytes == 0
            && rows.loops().stream().allMatch(loop -> loop.pitch() % bytes == 0));
  }
}
