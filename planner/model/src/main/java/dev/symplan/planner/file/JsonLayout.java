package dev.symplan.planner.file;

import com.fasterxml.jackson.core.util.DefaultIndenter;
import com.fasterxml.jackson.core.util.DefaultPrettyPrinter;

/** The layout of JSON files, the same on every system. */
public final class JsonLayout {
  private JsonLayout() {}

  /** {@return a printer with a line for each field, of one generator} */
  public static DefaultPrettyPrinter printer() {
    var printer = new DefaultPrettyPrinter();
    printer.indentObjectsWith(new DefaultIndenter(" ", "\n"));
    return printer;
  }
}
