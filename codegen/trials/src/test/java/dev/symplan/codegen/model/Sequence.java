package dev.symplan.codegen.model;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.planner.machine.VariantSpec;
import java.util.List;

/**
 * The work of every rank, over and over: local reads and writes of buffers that all ranks have, and
 * collectives on them.
 *
 * @param groups by name, the ranks of each part
 */
record Sequence(
    String title,
    int ranks,
    ImmutableMap<String, ImmutableList<ImmutableList<Integer>>> groups,
    ImmutableList<Step> steps) {

  /** The group of all ranks. */
  static final String ALL = "all";

  static final int ROUNDS = 2;

  sealed interface Step {}

  /** A local op writes the rank's own buffer. */
  record Write(String buffer) implements Step {}

  /** A local op reads the rank's own buffer, and must find what the step before wrote last. */
  record Read(String buffer) implements Step {}

  /** The layout of what a collective moves. */
  enum Layout {
    /** Each slice is one run of bytes. */
    RUNS,
    /** Each slice is two rows, with those of other slices between them. */
    ROWS,
    /** The operand is rows, with bytes between them that the collective does not move. */
    APART
  }

  /**
   * @param start whether the group meets before
   * @param end whether it meets after
   * @param epilogue local ops between what it moves and its end
   */
  record Collective(
      VariantSpec spec,
      String operand,
      String result,
      String group,
      boolean start,
      boolean end,
      Layout layout,
      ImmutableList<Step> epilogue)
      implements Step {

    Collective(VariantSpec spec, String operand, String result) {
      this(spec, operand, result, ALL, true, true, Layout.RUNS, ImmutableList.of());
    }

    Collective in(String other) {
      return new Collective(spec, operand, result, other, start, end, layout, epilogue);
    }

    Collective noStart() {
      return new Collective(spec, operand, result, group, false, end, layout, epilogue);
    }

    Collective noEnd() {
      return new Collective(spec, operand, result, group, start, false, layout, epilogue);
    }

    Collective with(Step... ops) {
      return new Collective(
          spec, operand, result, group, start, end, layout, ImmutableList.copyOf(ops));
    }

    Collective of(Layout other) {
      return new Collective(spec, operand, result, group, start, end, other, epilogue);
    }
  }

  static Sequence of(String title, int ranks, Step... steps) {
    var everybody = java.util.stream.IntStream.range(0, ranks).boxed().toList();
    return new Sequence(
        title,
        ranks,
        ImmutableMap.of(ALL, ImmutableList.of(ImmutableList.copyOf(everybody))),
        ImmutableList.copyOf(steps));
  }

  Sequence with(List<Step> other) {
    return new Sequence(title, ranks, groups, ImmutableList.copyOf(other));
  }
}
