package dev.symplan.planner.report;

import com.google.common.collect.ImmutableList;
import java.util.Collection;

/**
 * One view of a plan, for the ranks that run one graph.
 *
 * @param ranks these ranks
 * @param heading a line above the rest; empty for none
 * @param columns the heads of the titles and details of its rows; empty for rows that need none
 * @param rows one for each thing that the view shows
 * @param lines text that people read after the rows; of {@link View#GRAPH} and {@link View#CODE}
 *     instead of them
 */
public record Section(
    View view,
    ImmutableList<Integer> ranks,
    String heading,
    ImmutableList<String> columns,
    ImmutableList<Row> rows,
    ImmutableList<String> lines) {

  /** {@return the section with more rows after the others} */
  Section with(Collection<Row> more) {
    return new Section(
        view,
        ranks,
        heading,
        columns,
        ImmutableList.<Row>builder().addAll(rows).addAll(more).build(),
        lines);
  }
}
