package dev.symplan.planner.pack;

import java.util.List;

/**
 * A way to pack greedily.
 *
 * @param order which of the {@link Orders}
 * @param layerBits sizes of layers, see {@link LayeredSkyline}
 */
record Greedy(int order, int layerBits) {

  /** The method that is tried before all others. */
  static final Greedy FIRST = new Greedy(0, LayeredSkyline.ONE_LAYER);

  /**
   * The methods that are tried after it; quick ones, and the best on graphs of models, come first.
   */
  static final List<Greedy> OTHERS =
      List.of(
          new Greedy(1, LayeredSkyline.ONE_LAYER),
          new Greedy(1, 5),
          new Greedy(0, 5),
          new Greedy(2, 6),
          new Greedy(2, LayeredSkyline.ONE_LAYER),
          new Greedy(1, 3),
          new Greedy(0, 2),
          new Greedy(2, 8),
          new Greedy(0, 8),
          new Greedy(1, 8),
          new Greedy(2, 1),
          new Greedy(0, 1),
          new Greedy(1, 1),
          new Greedy(3, LayeredSkyline.ONE_LAYER),
          new Greedy(4, LayeredSkyline.ONE_LAYER),
          new Greedy(5, LayeredSkyline.ONE_LAYER),
          new Greedy(5, 1),
          new Greedy(3, 5),
          new Greedy(5, 5),
          new Greedy(4, 5),
          new Greedy(3, 2),
          new Greedy(4, 2),
          new Greedy(5, 2));

  boolean isLayered() {
    return layerBits != LayeredSkyline.ONE_LAYER;
  }
}
