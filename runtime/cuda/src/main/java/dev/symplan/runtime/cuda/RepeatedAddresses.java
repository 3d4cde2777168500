package dev.symplan.runtime.cuda;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Supplier;

/**
 * A cache of objects for sets of addresses. An object takes longer to make than a run without it,
 * so it is made only for addresses that occur again. The least recently used one is dropped when
 * there are many.
 *
 * @param <T> the objects
 */
final class RepeatedAddresses<T> {

  /** The maximum number of objects. */
  static final int MAX_MADE = 8;

  /** The maximum number of sets of addresses to remember. */
  static final int MAX_SEEN = 64;

  /** Without a value where addresses were there once. */
  private final Map<ImmutableLongArray, Optional<T>> seen = new LinkedHashMap<>(16, 0.75f, true);

  private final List<T> dropped = new ArrayList<>();

  /** {@return the object made for the addresses; empty if they are there for the first time} */
  Optional<T> get(ImmutableLongArray addresses, Supplier<T> make) {
    var found = seen.get(addresses);
    if (found == null) {
      seen.put(addresses, Optional.empty());
      dropEldest(MAX_SEEN, false);
      return Optional.empty();
    }
    if (found.isEmpty()) {
      found = Optional.of(make.get());
      seen.put(addresses, found);
      dropEldest(MAX_MADE, true);
    }
    return found;
  }

  private void dropEldest(int most, boolean made) {
    var counted =
        seen.entrySet().stream().filter(entry -> !made || entry.getValue().isPresent()).toList();
    if (counted.size() > most) {
      var eldest = counted.getFirst();
      eldest.getValue().ifPresent(dropped::add);
      seen.remove(eldest.getKey());
    }
  }

  /** {@return whether something was made that is not needed any more} */
  boolean hasDropped() {
    return !dropped.isEmpty();
  }

  /** {@return the objects that are not needed any more, each once} */
  ImmutableList<T> dropped() {
    var all = ImmutableList.copyOf(dropped);
    dropped.clear();
    return all;
  }

  /** {@return all that was made and is not dropped} */
  ImmutableList<T> all() {
    return seen.values().stream()
        .flatMap(Optional::stream)
        .collect(ImmutableList.toImmutableList());
  }
}
