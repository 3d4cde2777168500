package dev.symplan.ir.aten;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.op.OpDef;
import dev.symplan.ir.op.OpName;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.function.Function;

/**
 * An op that computes what another op does, from the arguments of that op.
 *
 * @param from for each parameter of {@code def}, which of those arguments it is given; -1 if it
 *     keeps its default
 */
public record Form(OpDef def, ImmutableIntArray from) {
  private static final String IN_PLACE = "_";

  /** {@return the form that makes a new result, of an op that writes it over {@code self}} */
  public static Optional<Form> functional(OpDef inPlace) {
    var name = inPlace.name();
    if (!name.name().endsWith(IN_PLACE)
        || inPlace.collective().isPresent()
        || !inPlace.schema().mutates()
        || !inPlace.schema().hasParam("self")) {
      return Optional.empty();
    }
    var base = name.name().substring(0, name.name().length() - IN_PLACE.length());
    return BuiltinOps.registry()
        .find(new OpName(name.namespace(), base, name.overload()))
        .map(def -> byName(inPlace, def, false));
  }

  /**
   * {@return a form whose parameters go by name}
   *
   * @param orPlace whether parameters of other names go by place, or else keep their defaults
   */
  static Form byName(OpDef given, OpDef def, boolean orPlace) {
    var from = new int[def.schema().params().size()];
    Arrays.fill(from, -1);
    for (int i = 0; i < given.schema().params().size(); i++) {
      var name = given.schema().params().get(i).name();
      if (def.schema().hasParam(name)) {
        from[def.schema().indexOf(name)] = i;
      } else if (orPlace) {
        from[i] = i;
      }
    }
    return new Form(def, ImmutableIntArray.copyOf(from));
  }

  /**
   * {@return the arguments of the form}
   *
   * @param given those of the other op
   * @param constant makes one of a default value
   */
  public <T> ImmutableList<T> args(List<T> given, Function<Arg, T> constant) {
    var args = ImmutableList.<T>builder();
    for (int i = 0; i < from.length(); i++) {
      args.add(
          from.get(i) >= 0
              ? given.get(from.get(i))
              : constant.apply(def.schema().params().get(i).defaultValue().orElse(Arg.None.NONE)));
    }
    return args.build();
  }
}
