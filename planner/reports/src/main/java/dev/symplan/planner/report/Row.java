package dev.symplan.planner.report;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.primitives.ImmutableIntArray;
import java.util.Collection;
import java.util.List;

/**
 * One thing in a report: an arena, a buffer, a collective, a step.
 *
 * @param title its name
 * @param details the cells that people read, one for each further column of its section
 * @param facts the values that programs read, in a fixed order
 * @param rows the rows that belong to it: the verdicts on a collective, the parts of a fused step
 */
public record Row(
    String title,
    ImmutableList<String> details,
    ImmutableMap<String, Fact> facts,
    ImmutableList<Row> rows) {

  static Builder titled(String title) {
    return new Builder(title);
  }

  /** {@return a row of words alone} */
  static Row of(String title, String... details) {
    return titled(title).details(details).build();
  }

  /** {@return the text of a fact, empty if none exists} */
  public String text(String fact) {
    return facts.get(fact) instanceof Fact.Text(var value) ? value : "";
  }

  /** {@return the number of a fact, -1 if none exists} */
  public long whole(String fact) {
    return facts.get(fact) instanceof Fact.Whole(long value) ? value : -1;
  }

  /** {@return the number of a fact, 0 if none exists} */
  public double real(String fact) {
    return facts.get(fact) instanceof Fact.Real(double value) ? value : 0;
  }

  /** {@return whether a fact is there and true} */
  public boolean flag(String fact) {
    return facts.get(fact) instanceof Fact.Flag(boolean value) && value;
  }

  /** {@return the numbers of a fact, none if none exists} */
  public List<Integer> wholes(String fact) {
    return facts.get(fact) instanceof Fact.Wholes(var values) ? values.asList() : List.of();
  }

  /** {@return the texts of a fact, none if none exists} */
  public List<String> texts(String fact) {
    return facts.get(fact) instanceof Fact.Texts(var values) ? values : List.of();
  }

  /** Puts a row together. */
  static final class Builder {
    private final String title;
    private final ImmutableList.Builder<String> details = ImmutableList.builder();
    private final ImmutableMap.Builder<String, Fact> facts = ImmutableMap.builder();
    private final ImmutableList.Builder<Row> rows = ImmutableList.builder();

    private Builder(String title) {
      this.title = title;
    }

    Builder details(String... texts) {
      details.add(texts);
      return this;
    }

    Builder fact(String name, String value) {
      facts.put(name, new Fact.Text(value));
      return this;
    }

    Builder fact(String name, long value) {
      facts.put(name, new Fact.Whole(value));
      return this;
    }

    Builder fact(String name, double value) {
      facts.put(name, new Fact.Real(value));
      return this;
    }

    Builder fact(String name, boolean value) {
      facts.put(name, new Fact.Flag(value));
      return this;
    }

    Builder numbers(String name, Collection<Integer> values) {
      facts.put(name, new Fact.Wholes(ImmutableIntArray.copyOf(values)));
      return this;
    }

    Builder names(String name, Collection<String> values) {
      facts.put(name, new Fact.Texts(ImmutableList.copyOf(values)));
      return this;
    }

    Builder row(Row row) {
      rows.add(row);
      return this;
    }

    Builder rows(Collection<Row> all) {
      rows.addAll(all);
      return this;
    }

    public Row build() {
      return new Row(title, details.build(), facts.buildOrThrow(), rows.build());
    }
  }
}
