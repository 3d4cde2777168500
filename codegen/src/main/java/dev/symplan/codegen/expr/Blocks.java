package dev.symplan.codegen.expr;

import dev.symplan.codegen.expr.Primitive.Comparison;
import dev.symplan.codegen.expr.Primitive.Fold;
import dev.symplan.codegen.expr.Primitive.Scan;
import dev.symplan.ir.DType;

/**
 * Primitives of many elements at once.
 *
 * <p>The loops of what takes no time by itself are inside a switch, so that each has one operation.
 *
 * @param <A> the array that keeps the elements
 */
public sealed interface Blocks<A> permits FloatBlocks, IntegerBlocks {

  /** {@return the primitives of a type that is computed in: in f64 or in 64-bit integers} */
  static Blocks<?> of(DType computedIn) {
    return computedIn.isFloat() ? new FloatBlocks(computedIn) : new IntegerBlocks();
  }

  A allocate(int size);

  /** Makes all elements a number. */
  void fill(A values, Expr number);

  /** Makes {@code n} elements, from one on, what one of others is. */
  void spread(A from, int at, A to, int first, int n);

  /**
   * Computes {@code out[i]} of {@code a[i]}, {@code b[i]} and {@code c[i]}, as many of them as the
   * primitive takes, for {@code n} elements.
   *
   * @throws ArithmeticException when an integer is divided by 0
   * @throws IllegalArgumentException when it is not of such elements
   * @throws NoSuchClassException when a target is not one of the classes
   */
  void apply(Primitive primitive, A a, A b, A c, A out, int n);

  /** Chooses {@code x[i]} where {@code a[i]} compares so with {@code b[i]}, else {@code y[i]}. */
  void select(Comparison compare, A a, A b, A x, A y, A out, int n);

  /** Makes an element what a fold of no elements gives. */
  void start(Fold fold, A kept, int at);

  /**
   * Takes elements into a fold.
   *
   * @param from the first one
   * @param at where what the fold gives is kept
   * @param other where else it may keep something
   * @param position of the first element in its row
   */
  void fold(Fold fold, A in, int from, int n, A kept, int at, int other, long position);

  /**
   * Combines each element with all before it.
   *
   * @param from the first one
   * @param at where {@code out} has what those before it gave, and then what all gave
   */
  void scan(Scan scan, A in, int from, int n, A out, int at);

  /** {@return the value of a primitive of numbers, as it is computed in a type} */
  static Expr fold(Expr.Apply apply, DType type) {
    return type.isFloat()
        ? new Expr.Float(one(new FloatBlocks(type), apply)[0])
        : new Expr.Int(one(new IntegerBlocks(), apply)[0]);
  }

  private static <A> A one(Blocks<A> blocks, Expr.Apply apply) {
    var args = apply.args();
    var out = blocks.allocate(1);
    blocks.apply(
        apply.primitive(),
        number(blocks, args.getFirst()),
        number(blocks, args.get(args.size() > 1 ? 1 : 0)),
        number(blocks, args.getLast()),
        out,
        1);
    return out;
  }

  private static <A> A number(Blocks<A> blocks, Expr number) {
    var values = blocks.allocate(1);
    blocks.fill(values, number);
    return values;
  }

  /**
   * {@return a target, which must be a class}
   *
   * @throws NoSuchClassException when it is not
   */
  static long targetClass(long target, long classes) {
    if (target < 0 || target >= classes) {
      throw new NoSuchClassException(target, classes);
    }
    return target;
  }
}
