package dev.symplan.ir;

import com.google.common.collect.ImmutableList;
import java.util.function.UnaryOperator;

/** Lists that are frequent in large graphs. */
public final class ImmutableLists {
  private ImmutableLists() {}

  /** {@return the list with other elements; the same list where none is another} */
  public static <T> ImmutableList<T> map(ImmutableList<T> list, UnaryOperator<T> change) {
    for (int i = 0; i < list.size(); i++) {
      var changed = change.apply(list.get(i));
      if (changed != list.get(i)) {
        var others = ImmutableList.<T>builderWithExpectedSize(list.size());
        others.addAll(list.subList(0, i)).add(changed);
        list.subList(i + 1, list.size()).forEach(rest -> others.add(change.apply(rest)));
        return others.build();
      }
    }
    return list;
  }
}
