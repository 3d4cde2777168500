package dev.symplan.ir.op;

/**
 * An op's full name, as PyTorch writes it: {@code aten::add.Tensor}.
 *
 * @param overload empty for the default overload
 */
public record OpName(String namespace, String name, String overload) {

  /**
   * Reads {@code ns::name} or {@code ns::name.overload}; {@code .default} is the empty overload.
   *
   * @throws IllegalArgumentException when the text has another form
   */
  public static OpName parse(String text) {
    int colons = text.indexOf("::");
    if (colons <= 0 || colons + 2 == text.length()) {
      throw new IllegalArgumentException(
          "an op is named namespace::name or namespace::name.overload, not '" + text + "'");
    }
    int dot = text.indexOf('.', colons);
    var name = dot < 0 ? text.substring(colons + 2) : text.substring(colons + 2, dot);
    var overload = dot < 0 ? "" : text.substring(dot + 1);
    return new OpName(text.substring(0, colons), name, overload.equals("default") ? "" : overload);
  }

  /** {@return the name without its overload} */
  public String base() {
    return namespace + "::" + name;
  }

  @Override
  public String toString() {
    return overload.isEmpty() ? base() : base() + "." + overload;
  }
}
