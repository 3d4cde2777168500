package dev.symplan.planner.pass.analysis;

import com.google.common.collect.ImmutableList;
import com.google.common.math.LongMath;
import dev.symplan.ir.Parallel;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.OpResult;
import dev.symplan.ir.op.OpTrait;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * The storage that each value is a view of, and where in it the value begins.
 *
 * <p>A storage is the memory that one op writes, or that one input brings: the unit that gets
 * memory.
 */
public final class Aliases {

  /**
   * Memory that one op or input defines.
   *
   * @param def the op that writes it first; -1 for an input
   * @param value the value that it is defined as
   * @param bytes from its first to its last byte
   */
  public record Storage(int id, int def, Value value, long bytes) {
    public boolean isInput() {
      return def < 0;
    }
  }

  private final Graph graph;
  private final int[] storageOf;
  private final long[] offsetOf;

  /** By value, how much of its storage it takes. */
  private final long[] bytesOf;

  private final boolean[] fromStorage;
  private final boolean[] isView;
  private final boolean[] runs;
  private int setupEnd = -1;
  private final List<Storage> storages = new ArrayList<>();
  private final Families families;

  private Aliases(Graph graph) {
    this.graph = graph;
    this.storageOf = new int[graph.valueCount()];
    this.offsetOf = new long[graph.valueCount()];
    this.bytesOf = new long[graph.valueCount()];
    this.fromStorage = new boolean[graph.valueCount()];
    this.isView = new boolean[graph.ops().size()];
    this.runs = new boolean[graph.ops().size()];
    Arrays.fill(storageOf, -1);
    this.families = new Families(this::id);
  }

  public static Aliases of(Graph graph) {
    var aliases = new Aliases(graph);
    graph.inputs().forEach(aliases::measure);
    Parallel.forEach(
        graph.ops().size(),
        (from, to) ->
            graph.ops().subList(from, to).forEach(op -> op.results().forEach(aliases::measure)));
    graph.inputs().forEach(input -> aliases.define(input, -1));
    for (int i = 0; i < graph.ops().size(); i++) {
      aliases.visit(graph.ops().get(i), i);
    }
    return aliases;
  }

  private void measure(Value value) {
    if (value.type() instanceof TensorType tensor) {
      bytesOf[value.id()] = tensor.storageBytes();
    }
  }

  private void define(Value value, int def) {
    if (value.isTensor()) {
      storageOf[value.id()] = storages.size();
      storages.add(new Storage(storages.size(), def, value, bytesOf[value.id()]));
    }
  }

  private void visit(Op op, int index) {
    var inferred = op.infer();
    boolean onlyViews = !op.def().has(OpTrait.SIDE_EFFECT) && !op.def().schema().mutates();
    for (int i = 0; i < op.results().size(); i++) {
      var value = op.results().get(i);
      if (!value.isTensor()) {
        continue;
      }
      var view = inferred.get(i).view();
      if (view.isPresent()) {
        share(op, value, view.get());
      } else {
        define(value, index);
        onlyViews = false;
      }
    }
    isView[index] = onlyViews && !op.results().isEmpty();
    runs[index] = !isView[index] && !op.def().has(OpTrait.WAIT);
    setupEnd = op.def().has(OpTrait.SETUP_END) ? index : setupEnd;
    families.visit(op, index, storages.size());
  }

  private void share(Op op, Value value, OpResult.View view) {
    int base = storageOf[view.of().id()];
    long offset =
        LongMath.saturatedAdd(
            view.fromStorage() ? 0 : offsetOf[view.of().id()],
            LongMath.saturatedMultiply(view.offset(), view.of().tensor().dtype().bytes()));
    long bytes = bytesOf[value.id()];
    if (bytes == 0) {
      // An empty slice may begin after the end of what has no elements.
      offset = Math.clamp(offset, 0, storages.get(base).bytes());
    }
    if (offset < 0 || offset > storages.get(base).bytes() - bytes) {
      throw new CompileException(
          Diagnostic.error(
              DiagnosticCode.TYPE_MISMATCH,
              op.span(),
              "%s extends beyond the memory of '%s'"
                  .formatted(op.def().name(), storages.get(base).value().name()),
              "the memory has %s; the view takes %s, starting at byte %s"
                  .formatted(Units.count(storages.get(base).bytes(), "byte"), bytes, offset)));
    }
    storageOf[value.id()] = base;
    offsetOf[value.id()] = offset;
    fromStorage[value.id()] = view.fromStorage();
  }

  /** {@return the op that ends the setup; -1 if the graph has none} */
  int setupEnd() {
    return setupEnd;
  }

  public Graph graph() {
    return graph;
  }

  public ImmutableList<Storage> storages() {
    return ImmutableList.copyOf(storages);
  }

  public int count() {
    return storages.size();
  }

  public Storage storage(int id) {
    return storages.get(id);
  }

  /** {@return the storage of a tensor} */
  public Storage of(Value value) {
    return storages.get(storageOf[value.id()]);
  }

  /** {@return whether a tensor is what its storage is defined as} */
  public boolean defines(Value value) {
    return of(value).value().id() == value.id();
  }

  /** {@return the storage's number, or -1 for what has none} */
  public int id(Value value) {
    return storageOf[value.id()];
  }

  /** {@return which storages tensors may be in besides their own} */
  public Families families() {
    return families;
  }

  /** {@return the number that all storages share in which the value may be; -1 if it has none} */
  public int family(Value value) {
    return families.of(id(value));
  }

  /** {@return where the value begins in its storage, in bytes} */
  public long offset(Value value) {
    return offsetOf[value.id()];
  }

  /** {@return whether the op that gives the value counts its offset from the storage's start} */
  public boolean countsFromStorage(Value value) {
    return fromStorage[value.id()];
  }

  /** {@return whether the value is all of its storage} */
  public boolean isWhole(Value value) {
    return offset(value) == 0 && bytesOf[value.id()] == of(value).bytes();
  }

  /** {@return whether an op does nothing at run time: its results are views} */
  public boolean isView(int op) {
    return isView[op];
  }

  /** {@return whether an op does something at run time: it is neither a view nor a wait} */
  public boolean runs(int op) {
    return runs[op];
  }
}
