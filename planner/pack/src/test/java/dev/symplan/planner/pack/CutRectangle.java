package dev.symplan.planner.pack;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;

/**
 * Packing problems that are hard but have a solution, like minimalloc's: a rectangle of time ×
 * capacity, cut at random into buffers.
 *
 * @param grid all times are multiples of it
 * @param shortened how many of the buffers live a little shorter than they could
 * @param lowered how many are a little smaller
 */
record CutRectangle(int buffers, int grid, double shortened, double lowered) {
  static final int CAPACITY = 1024;
  private static final int TIME = 1024;

  private record Piece(int start, int end, int bottom, int top) {
    long area() {
      return (long) (end - start) * (top - bottom);
    }
  }

  PackingProblem problem(Random random) {
    var pieces = cut(random);
    Collections.shuffle(pieces, random);
    var problem = PackingProblem.builder();
    for (var piece : pieces) {
      int start = piece.start();
      int end = piece.end();
      int size = piece.top() - piece.bottom();
      if (end - start > 8 && random.nextDouble() < shortened) {
        end -= 1 + random.nextInt((end - start) / 6);
      }
      if (size > 8 && random.nextDouble() < lowered) {
        size -= 1 + random.nextInt(size / 8);
      }
      problem.add(start, end, size, 1);
    }
    return problem.build();
  }

  private List<Piece> cut(Random random) {
    var pieces = new ArrayList<Piece>();
    pieces.add(new Piece(0, TIME, 0, CAPACITY));
    while (pieces.size() < buffers) {
      var piece = pieces.remove(large(pieces, random));
      int time = piece.start() + 1 + random.nextInt(piece.end() - piece.start());
      time -= time % grid;
      int height = piece.bottom() + 1 + random.nextInt(piece.top() - piece.bottom());
      boolean inTime = random.nextBoolean();
      if (inTime && time > piece.start() && time < piece.end()) {
        pieces.add(new Piece(piece.start(), time, piece.bottom(), piece.top()));
        pieces.add(new Piece(time, piece.end(), piece.bottom(), piece.top()));
      } else if (!inTime && height < piece.top()) {
        pieces.add(new Piece(piece.start(), piece.end(), piece.bottom(), height));
        pieces.add(new Piece(piece.start(), piece.end(), height, piece.top()));
      } else {
        pieces.add(piece);
      }
    }
    return pieces;
  }

  /** {@return a piece, a large one more likely} */
  private static int large(List<Piece> pieces, Random random) {
    int chosen = 0;
    double most = -1;
    for (int i = 0; i < pieces.size(); i++) {
      double lot = pieces.get(i).area() * (0.2 + random.nextDouble());
      if (lot > most) {
        chosen = i;
        most = lot;
      }
    }
    return chosen;
  }
}
