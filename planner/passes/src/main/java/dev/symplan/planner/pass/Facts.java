package dev.symplan.planner.pass;

import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSet;
import com.google.common.collect.Maps;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** The findings of the passes so far: at most one value of each {@link Fact}. Immutable. */
public final class Facts {
  public static final Facts NONE = new Facts(ImmutableMap.of());

  private final ImmutableMap<Fact<?>, Object> values;

  private Facts(ImmutableMap<Fact<?>, Object> values) {
    this.values = values;
  }

  /** {@return the value of a fact that not every state has} */
  public <T> Optional<T> find(Fact<T> fact) {
    return values.containsKey(fact) ? Optional.of(get(fact)) : Optional.empty();
  }

  /**
   * {@return the value of a fact}
   *
   * @throws IllegalStateException when no pass has given it yet
   */
  @SuppressWarnings("unchecked")
  public <T> T get(Fact<T> fact) {
    @Nullable Object value = values.get(fact);
    if (value == null) {
      throw new IllegalStateException("no pass has given the " + fact);
    }
    return (T) value;
  }

  /** {@return these facts, and one more or another value of one} */
  public <T> Facts with(Fact<T> fact, T value) {
    return new Facts(
        ImmutableMap.<Fact<?>, Object>builderWithExpectedSize(values.size() + 1)
            .putAll(values)
            .put(fact, value)
            .buildKeepingLast());
  }

  /** {@return the facts that stay true of other graphs} */
  Facts lasting() {
    return new Facts(ImmutableMap.copyOf(Maps.filterKeys(values, Fact::isLasting)));
  }

  public ImmutableSet<Fact<?>> known() {
    return values.keySet();
  }
}
