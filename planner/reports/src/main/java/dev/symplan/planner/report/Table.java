package dev.symplan.planner.report;

import com.google.common.base.Strings;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;

/** Text in columns, each as wide as its widest cell. */
public final class Table {
  private final List<List<String>> rows = new ArrayList<>();

  /**
   * @param header the first row
   */
  public Table(String... header) {
    rows.add(List.of(header));
  }

  /** Adds a row below the others. */
  public void row(String... cells) {
    rows.add(List.of(cells));
  }

  /** {@return whether there is nothing but the header} */
  public boolean isEmpty() {
    return rows.size() == 1;
  }

  /** {@return the rows, each ended by a line feed; the last column is not padded} */
  public String render() {
    int columns = rows.stream().mapToInt(List::size).max().orElse(0);
    var widths = new int[columns];
    for (var row : rows) {
      for (int i = 0; i < row.size(); i++) {
        widths[i] = Math.max(widths[i], row.get(i).codePointCount(0, row.get(i).length()));
      }
    }
    return rows.stream().map(row -> line(row, widths)).collect(Collectors.joining());
  }

  private static String line(List<String> row, int[] widths) {
    var out = new StringBuilder();
    for (int i = 0; i < row.size(); i++) {
      out.append(i == row.size() - 1 ? row.get(i) : Strings.padEnd(row.get(i), widths[i] + 2, ' '));
    }
    return out.toString().stripTrailing() + "\n";
  }
}
