package dev.symplan.planner.pack;

/** Packs items into one arena: greedy methods first, then search where they leave a gap. */
final class Solver {
  private final Items items;
  private final PackOptions options;
  private long[] offsets;
  private long height = Long.MAX_VALUE;
  private long lowerBound;

  Solver(Items items, PackOptions options) {
    this.items = items;
    this.options = options;
    offsets = new long[items.count];
    lowerBound = items.maxLive();
  }

  void solve() {
    if (items.count == 0) {
      height = 0;
      return;
    }
    greedy();
  }

  private void greedy() {
    var skyline = new Skyline(items);
    var trial = new long[items.count];
    for (var order : new Orders(items, items.live).all()) {
      long reached = skyline.pack(order.get(), height - 1, trial);
      if (reached >= 0) {
        height = reached;
        var previous = offsets;
        offsets = trial;
        trial = previous;
      }
      if (height <= options.target(lowerBound)) {
        return;
      }
    }
  }

  long[] offsets() {
    return offsets;
  }

  long height() {
    return height;
  }

  long lowerBound() {
    return lowerBound;
  }
}
