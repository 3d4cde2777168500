package dev.symplan.planner.pack;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Random;

/** Makes problems of many buffers, in the shapes that allocators meet. */
enum LargeProblem {
  /** Forward and backward of layers: saved tensors live until the gradient of their layer. */
  TRAINING {
    @Override
    void add(Adder out, int buffers, Random random) {
      int layers = Math.max(1, buffers / (PER_LAYER + GRADIENTS));
      long width = 1;
      int steps = layers * PER_LAYER;
      for (int layer = 0; layer < layers; layer++) {
        if (layer % 8 == 0) {
          width = 4096L * (1 + random.nextInt(64));
        }
        int begin = layer * PER_LAYER;
        for (int op = 0; op < PER_LAYER; op++) {
          long size = width * (1 + random.nextInt(7));
          boolean saved = random.nextInt(3) == 0;
          int backward = 2 * steps - begin - op;
          int end = begin + op + (saved ? backward - begin - op : 2 + random.nextInt(5));
          out.add(begin + op, end, size + random.nextInt(2) * width / 3, 512);
        }
        int backward = 2 * steps - begin - PER_LAYER;
        for (int g = 0; g < GRADIENTS; g++) {
          boolean ofWeight = g % 6 == 0;
          int start = backward + g * PER_LAYER / GRADIENTS;
          int end = start + (ofWeight ? 1 + random.nextInt(4 * PER_LAYER) : 2 + random.nextInt(4));
          out.add(start, end, width * (1 + random.nextInt(9)), 512);
        }
      }
    }
  },
  /** Lifetimes and sizes of all magnitudes, unaligned. */
  HEAVY_TAILED {
    @Override
    void add(Adder out, int buffers, Random random) {
      for (int i = 0; i < buffers; i++) {
        int start = random.nextInt(buffers);
        int width = (int) Math.min(buffers, 1 / (1e-4 + random.nextDouble()) * 3);
        out.add(start, start + 1 + width, (long) Math.exp(16 * random.nextDouble()) + 1, 1);
      }
    }
  },
  /** Lifetimes and sizes of one magnitude each. */
  UNIFORM {
    @Override
    void add(Adder out, int buffers, Random random) {
      for (int i = 0; i < buffers; i++) {
        int start = random.nextInt(buffers);
        out.add(start, start + 1 + random.nextInt(200), 1 + random.nextInt(1000), 1);
      }
    }
  },
  /** A scratchpad: bursts of tiles of a few size classes, and tables that outlive them. */
  TILES {
    @Override
    void add(Adder out, int buffers, Random random) {
      int now = 0;
      for (int i = 0; i < buffers; ) {
        long tile = 1024L << random.nextInt(6);
        int burst = 2 + random.nextInt(30);
        for (int k = 0; k < burst && i < buffers; k++, i++) {
          int start = now + k / 2;
          boolean table = random.nextInt(8) == 0;
          int end = start + (table ? 20 + random.nextInt(400) : 2 + random.nextInt(6));
          out.add(start, end, table ? 64 * (1 + random.nextInt(300)) : tile, 64);
        }
        now += burst / 2;
      }
    }
  },
  /** Scopes within scopes: what begins later mostly ends earlier. */
  NESTED {
    @Override
    void add(Adder out, int buffers, Random random) {
      var open = new ArrayDeque<Integer>();
      int now = 0;
      for (int i = 0; i < buffers || !open.isEmpty(); now++) {
        if (i < buffers && (open.size() < 3 || random.nextInt(100) < 51)) {
          open.push(now);
          i++;
        } else {
          int end = now + (random.nextInt(4) == 0 ? random.nextInt(60) : 0);
          out.add(open.pop(), 1 + end, 256L * (1 + random.nextInt(500)), 256);
        }
      }
    }
  },
  /** Branches that run side by side and meet, as mixtures of experts and inception blocks do. */
  BRANCHES {
    @Override
    void add(Adder out, int buffers, Random random) {
      int now = 0;
      for (int i = 0; i < buffers; ) {
        int branches = 2 + random.nextInt(12);
        int length = 2 + random.nextInt(10);
        int join = now + branches * length;
        for (int b = 0; b < branches && i < buffers; b++) {
          long size = 1000L * (1 + random.nextInt(400));
          for (int k = 0; k < length && i < buffers; k++, i++) {
            int start = now + b * length + k;
            boolean last = k == length - 1;
            out.add(start, last ? join + 1 : start + 2, size + random.nextInt(5000), 128);
          }
        }
        if (random.nextInt(3) == 0) {
          out.add(now, join + random.nextInt(40 * length), 1000L * random.nextInt(900) + 1, 128);
        }
        now = join;
      }
    }
  },
  /** A full rectangle cut up, with some slack: its height is known to suffice. */
  CUT {
    @Override
    void add(Adder out, int buffers, Random random) {
      var cut = new CutRectangle(Math.min(buffers, 4000), 1, 0.3, 0.3).problem(random);
      for (int i = 0; i < cut.count(); i++) {
        var item = cut.item(i);
        out.add(item.start(), item.end(), item.size(), 1);
      }
    }
  };

  private static final int PER_LAYER = 14;
  private static final int GRADIENTS = 18;

  /** Takes a buffer. */
  @FunctionalInterface
  interface Adder {
    void add(int start, int end, long size, long alignment);
  }

  abstract void add(Adder out, int buffers, Random random);

  /** {@return about as many buffers, the same for the same seed} */
  PackingProblem problem(int buffers, long seed) {
    var items = new ArrayList<Item>();
    add(
        (start, end, size, alignment) -> items.add(new Item(start, end, size, alignment)),
        buffers,
        new Random(seed));
    return PackingProblem.of(items);
  }
}
