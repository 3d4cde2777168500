package dev.symplan.ir.fx;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Arg;
import dev.symplan.ir.fx.Getitems.Item;
import dev.symplan.ir.op.OpDef;
import dev.symplan.ir.op.OpTypeException;
import dev.symplan.ir.op.SchemaResult;
import dev.symplan.ir.op.SchemaType;
import java.util.Collections;
import java.util.List;
import java.util.SortedMap;

/**
 * The way from the one name that FX gives to the results of an op, which are a flat list in a
 * graph.
 *
 * @param paths the indices that lead to each result; none for the only result of an op
 * @param list whether the name stands for a list of tensors, rather than for a tuple
 */
record ResultLayout(ImmutableList<ImmutableList<Integer>> paths, boolean list) {
  private static final ResultLayout NOTHING = new ResultLayout(ImmutableList.of(), false);
  private static final ResultLayout ONE =
      new ResultLayout(ImmutableList.of(ImmutableList.of()), false);

  /** More results than this between those that are read are a mistake in the text. */
  private static final int MAX_UNREAD = 1024;

  /**
   * {@return the layout}
   *
   * @param items the results that are taken out by index
   * @param annotated whether the op's own name has a type
   * @throws OpTypeException when a result is read that no op can have
   */
  static ResultLayout of(
      OpDef def,
      ImmutableList<Arg> args,
      SortedMap<ImmutableList<Integer>, Item> items,
      boolean annotated) {
    if (def.rule().isEmpty()) {
      if (items.isEmpty()) {
        return annotated ? ONE : NOTHING;
      }
      return new ResultLayout(read(items), false);
    }
    var declared = def.schema().results();
    if (declared.isEmpty()) {
      return NOTHING;
    }
    if (declared.size() == 1 && !isList(declared.getFirst())) {
      return ONE;
    }
    if (declared.stream().filter(ResultLayout::isList).count() > 1) {
      return new ResultLayout(pathsOfLists(def, args), false);
    }
    int count = declared.stream().anyMatch(ResultLayout::isList) ? count(def, args) : 0;
    return new ResultLayout(
        paths(declared, count), declared.size() == 1 && isList(declared.getFirst()));
  }

  /** Where an op gives several lists, {@code self_out} is as long as the list {@code self}. */
  private static ImmutableList<ImmutableList<Integer>> pathsOfLists(
      OpDef def, ImmutableList<Arg> args) {
    var paths = ImmutableList.<ImmutableList<Integer>>builder();
    var declared = def.schema().results();
    for (int i = 0; i < declared.size(); i++) {
      var param = declared.get(i).name().replaceFirst("_out$", "");
      if (!isList(declared.get(i))) {
        paths.add(ImmutableList.of(i));
      } else if (def.schema().hasParam(param)
          && args.get(def.schema().indexOf(param)) instanceof Arg.Seq list) {
        for (int j = 0; j < list.items().size(); j++) {
          paths.add(ImmutableList.of(i, j));
        }
      }
    }
    return paths.build();
  }

  private static boolean isList(SchemaResult result) {
    return result.type() instanceof SchemaType.ListOf;
  }

  private static int count(OpDef def, ImmutableList<Arg> args) {
    try {
      return def.infer(args).map(List::size).orElse(0);
    } catch (OpTypeException | IllegalArgumentException | ArithmeticException e) {
      // The builder asks again, and says what is wrong.
      return 0;
    }
  }

  private static ImmutableList<ImmutableList<Integer>> paths(
      List<SchemaResult> declared, int count) {
    var paths = ImmutableList.<ImmutableList<Integer>>builder();
    int inList = count - (declared.size() - 1);
    for (int i = 0; i < declared.size(); i++) {
      if (!isList(declared.get(i))) {
        paths.add(ImmutableList.of(i));
      } else {
        for (int j = 0; j < inList; j++) {
          paths.add(declared.size() == 1 ? ImmutableList.of(j) : ImmutableList.of(i, j));
        }
      }
    }
    return paths.build();
  }

  /** The results of an unknown op: those that are read, and those that must lie between. */
  private static ImmutableList<ImmutableList<Integer>> read(
      SortedMap<ImmutableList<Integer>, Item> items) {
    var paths = ImmutableList.<ImmutableList<Integer>>builder();
    List<Integer> before = Collections.emptyList();
    int unread = 0;
    for (var path : items.keySet()) {
      int common = 0;
      while (common < Math.min(before.size(), path.size() - 1)
          && before.get(common).equals(path.get(common))) {
        common++;
      }
      for (int depth = common; depth < path.size(); depth++) {
        int from = depth == common && common < before.size() ? before.get(common) + 1 : 0;
        var outer = path.subList(0, depth);
        unread += Math.max(0, path.get(depth) - from);
        if (unread > MAX_UNREAD) {
          throw new OpTypeException(
              "result %s is read, but not the %s before it".formatted(path.get(depth), unread));
        }
        for (int i = from; i < path.get(depth); i++) {
          paths.add(ImmutableList.<Integer>builder().addAll(outer).add(i).build());
        }
      }
      paths.add(path);
      before = path;
    }
    return paths.build();
  }
}
