package dev.symplan.ir.op;

/** Reads PyTorch's schema language. */
public final class SchemaParser {
  private SchemaParser() {}

  /**
   * {@return the schema}
   *
   * @throws IllegalArgumentException when the text is malformed; the message shows where
   */
  public static OpSchema parse(String text) {
    throw new IllegalArgumentException("not written yet: " + text);
  }
}
