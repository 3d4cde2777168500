package dev.symplan.planner.pass;

/**
 * The key of one value of {@link Facts}: something that a pass finds out about a graph or a
 * program. Each pass declares the facts that it gives.
 *
 * @param <T> an immutable type
 */
public final class Fact<T> {
  private final String name;
  private final boolean lasting;

  private Fact(String name, boolean lasting) {
    this.name = name;
    this.lasting = lasting;
  }

  /** {@return a fact about the ops of graphs, which is dropped when a pass changes the graphs} */
  public static <T> Fact<T> ofGraphs(String name) {
    return new Fact<>(name, false);
  }

  /** {@return a fact that stays true when a later pass changes the graphs} */
  public static <T> Fact<T> lasting(String name) {
    return new Fact<>(name, true);
  }

  boolean isLasting() {
    return lasting;
  }

  @Override
  public String toString() {
    return name;
  }
}
