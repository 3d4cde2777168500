package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.TensorRef;
import dev.symplan.ir.DType;
import dev.symplan.planner.Stream;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * Builds a kernel that takes rows, one after the other, through values: of each element of a row,
 * or one for all, which a fold over the elements leaves.
 *
 * <p>Some threads share a row, and its elements among them. They go through it once for each fold
 * that needs the one before, and write only the last time, so that results may lie where operands
 * do. What a later pass needs again is kept in registers where the row is short enough, else
 * computed again.
 */
final class RowKernel {

  /** As many elements of a row as a thread keeps. */
  private static final int KEPT = 16;

  private static final int MOST_THREADS = 1024;
  private static final int WARP = 32;

  /** Threads of a block that takes several rows. */
  private static final int BLOCK = 128;

  /** Beyond this, blocks take several rows each. */
  private static final int MAX_BLOCKS = 1 << 16;

  /**
   * What is kept of elements that went by.
   *
   * @param types of what is kept, {@code a0} and perhaps {@code a1}
   * @param starts what they are before any element
   * @param combine a statement that takes in {@code b0}, {@code b1}: an element, or what others
   *     kept of theirs
   */
  record Fold(ImmutableList<String> types, ImmutableList<String> starts, String combine) {
    static Fold of(String type, String start, String combine) {
      return new Fold(ImmutableList.of(type), ImmutableList.of(start), combine);
    }
  }

  /**
   * Where a tensor's elements are.
   *
   * @param address in memory; empty for what a block has to itself
   * @param shared what a block has to itself is called
   * @param rows elements from one index to the next, for each dimension of rows
   * @param inner for each dimension within a row
   */
  record Place(
      Optional<Address> address,
      String shared,
      DType dtype,
      ImmutableLongArray rows,
      ImmutableLongArray inner) {

    static Place of(int rank, TensorRef ref, ImmutableLongArray rows, ImmutableLongArray inner) {
      return new Place(Optional.of(Address.of(rank, ref)), "", ref.type().dtype(), rows, inner);
    }
  }

  private sealed interface Node {
    /** Whether each element has its own. */
    boolean full();
  }

  private record Loaded(Place place, boolean full) implements Node {}

  private record Computed(String type, String text, ImmutableList<Integer> inputs, boolean full)
      implements Node {}

  private record Folded(
      Fold fold, ImmutableList<String> terms, ImmutableList<Integer> inputs, boolean overRow)
      implements Node {
    @Override
    public boolean full() {
      return false;
    }
  }

  private record Scanned(Fold fold, String term, ImmutableList<Integer> inputs, boolean full)
      implements Node {}

  private record Store(int node, Place place) {}

  private record Base(
      Optional<Address> address, String shared, String type, ImmutableLongArray rows) {}

  private final ImmutableLongArray rowSizes;
  private final ImmutableLongArray innerSizes;
  private final long rows;
  private final long elements;
  private final List<Node> nodes = new ArrayList<>();
  private final Map<Place, Integer> loads = new HashMap<>();
  private final List<Store> stores = new ArrayList<>();
  private final Map<Base, Integer> bases = new LinkedHashMap<>();
  private boolean inOrder;
  private boolean across;

  /**
   * @param rowSizes the indices of rows
   * @param innerSizes the indices of a row's elements
   */
  RowKernel(ImmutableLongArray rowSizes, ImmutableLongArray innerSizes) {
    this.rowSizes = rowSizes;
    this.innerSizes = innerSizes;
    this.rows = rowSizes.stream().reduce(1, Math::multiplyExact);
    this.elements = innerSizes.stream().reduce(1, Math::multiplyExact);
  }

  /** {@return what messages and expressions call a value} */
  static String name(int node) {
    return "v" + node;
  }

  /**
   * Has neighbouring threads take neighbouring rows, rather than elements: for rows whose elements
   * are further apart in memory than rows are.
   */
  void goAcross() {
    across = rows >= WARP && elements > 1;
  }

  /** {@return the number of elements of a row} */
  long elements() {
    return elements;
  }

  boolean isFull(int node) {
    return nodes.get(node).full();
  }

  private int add(Node node) {
    nodes.add(node);
    return nodes.size() - 1;
  }

  /**
   * {@return a tensor's elements, as they are computed with}
   *
   * @param full whether it has one for each element of a row, be it the same
   */
  int load(Place place, boolean full) {
    return loads.computeIfAbsent(place, p -> add(new Loaded(p, full)));
  }

  /** {@return what an expression of the inputs' names gives} */
  int compute(String type, String text, List<Integer> inputs) {
    boolean full = inputs.stream().anyMatch(this::isFull);
    return add(new Computed(type, text, ImmutableList.copyOf(inputs), full));
  }

  /**
   * {@return what a fold keeps of a row; the second of what it keeps has {@code _1} at its name}
   *
   * @param terms what goes into it, expressions of the inputs' names and of {@code {c}}, the
   *     element's number
   * @param overRow whether there is a term for each element of the row, rather than one
   */
  int fold(Fold fold, List<String> terms, List<Integer> inputs, boolean overRow) {
    return add(
        new Folded(fold, ImmutableList.copyOf(terms), ImmutableList.copyOf(inputs), overRow));
  }

  /** {@return for each element what a fold keeps of those up to it} */
  int scan(Fold fold, String term, List<Integer> inputs) {
    boolean full = inputs.stream().anyMatch(this::isFull);
    inOrder |= full;
    return add(new Scanned(fold, term, ImmutableList.copyOf(inputs), full));
  }

  /** Writes a value into a tensor. */
  void store(int node, Place place) {
    stores.add(new Store(node, place));
  }

  private static List<Integer> inputs(Node node) {
    return switch (node) {
      case Loaded _ -> List.of();
      case Computed(var _, var _, var inputs, var _) -> inputs;
      case Folded(var _, var _, var inputs, var _) -> inputs;
      case Scanned(var _, var _, var inputs, var _) -> inputs;
    };
  }

  private static String type(Node node) {
    return switch (node) {
      case Loaded(var place, var _) -> CTypes.computed(place.dtype());
      case Computed(var type, var _, var _, var _) -> type;
      case Folded(var fold, var _, var _, var _) -> fold.types().getFirst();
      case Scanned(var fold, var _, var _, var _) -> fold.types().getFirst();
    };
  }

  DeviceStep.Launch build(Stream stream, String label) {
    int threads = threads();
    int together = 1;
    while (across ? together < WARP : threads * together < (rows > together ? BLOCK : WARP)) {
      together *= 2;
    }
    var memory = new LinkedHashMap<Address, Integer>();
    var text = new Writer(threads, together).text(memory);
    return new DeviceStep.Launch(
        stream,
        new Kernel(text),
        Math.toIntExact(Math.clamp(Math.ceilDiv(rows, together), 1, MAX_BLOCKS)),
        threads * together,
        memory.keySet().stream().map(Word.Memory::new).collect(ImmutableList.toImmutableList()),
        label);
  }

  /**
   * {@return statements that do, with all threads of a block, some of the rows: so many together,
   * of which {@code outer} is the number}
   *
   * @param memory the arguments of the kernel that they become a part of
   */
  String fragment(long together, int threads, Map<Address, Integer> memory) {
    return new Writer(1, 1).fragment(together, threads, memory);
  }

  /** How many share a row. */
  private int threads() {
    if (inOrder || elements <= 1) {
      return 1;
    }
    long wanted =
        !across && elements <= 8 * WARP ? Math.min(elements, WARP) : Math.ceilDiv(elements, 8);
    int power = 1;
    while (power < wanted && power < (across ? MOST_THREADS / WARP : MOST_THREADS)) {
      power *= 2;
    }
    return power;
  }

  /** Writes the text, once all values are known. */
  private final class Writer {
    private final int threads;
    private final int together;
    private final long perThread;
    private final boolean keeps;
    private final int[] available = new int[nodes.size()];
    private final Set<Integer> reachable = new HashSet<>();
    private final Set<Integer> kept = new LinkedHashSet<>();
    private final Map<Integer, Integer> computedIn = new HashMap<>();
    private final StringBuilder body = new StringBuilder();
    private int passes;

    Writer(int threads, int together) {
      this.threads = threads;
      this.together = together;
      this.perThread = Math.ceilDiv(elements, threads);
      this.keeps = perThread <= KEPT;
      schedule();
    }

    private void schedule() {
      for (int n = 0; n < nodes.size(); n++) {
        var node = nodes.get(n);
        available[n] = inputs(node).stream().mapToInt(i -> available[i]).max().orElse(0);
        if (node instanceof Folded(var _, var _, var _, boolean overRow) && overRow) {
          available[n]++;
        }
      }
      stores.forEach(store -> reach(store.node()));
      for (int n : reachable) {
        var node = nodes.get(n);
        if (node instanceof Folded(var _, var _, var _, boolean overRow) && overRow) {
          passes = Math.max(passes, available[n]);
        }
      }
      for (var store : stores) {
        if (isFull(store.node())) {
          passes = Math.max(passes, available[store.node()] + 1);
        }
      }
      for (int pass = 0; pass < passes; pass++) {
        var seen = new HashSet<Integer>();
        for (int root : roots(pass)) {
          keep(root, pass, seen);
        }
      }
    }

    private void reach(int node) {
      if (reachable.add(node)) {
        inputs(nodes.get(node)).forEach(this::reach);
      }
    }

    /** The values of each element that a pass is for. */
    private List<Integer> roots(int pass) {
      var roots = new ArrayList<Integer>();
      folds(pass).forEach(fold -> roots.addAll(inputs(nodes.get(fold))));
      if (pass == passes - 1) {
        stores.forEach(store -> roots.add(store.node()));
      }
      return roots.stream().filter(RowKernel.this::isFull).distinct().toList();
    }

    private List<Integer> folds(int pass) {
      return IntStream.range(0, nodes.size())
          .filter(reachable::contains)
          .filter(n -> available[n] == pass + 1)
          .filter(n -> nodes.get(n) instanceof Folded folded && folded.overRow())
          .boxed()
          .toList();
    }

    private void keep(int node, int pass, Set<Integer> seen) {
      if (!isFull(node) || !seen.add(node)) {
        return;
      }
      if (keeps && computedIn.containsKey(node)) {
        kept.add(node);
        return;
      }
      computedIn.put(node, pass);
      inputs(nodes.get(node)).forEach(input -> keep(input, pass, seen));
    }

    String text(Map<Address, Integer> memory) {
      write();
      return frame(memory);
    }

    String fragment(long together, int threads, Map<Address, Integer> memory) {
      write();
      return """
          for (long long own = threadIdx.x; own < %d; own += %d) {
            [[maybe_unused]] const unsigned lane = 0;
            const long long row = outer * %d + own;
      """
              .formatted(together, threads, together)
          + start(memory)
          + body
          + "    }\n";
    }

    private void write() {
      for (int pass = 0; pass <= passes; pass++) {
        for (int n = 0; n < nodes.size(); n++) {
          if (reachable.contains(n) && !isFull(n) && available[n] == pass) {
            single(n);
          }
        }
        if (pass < passes) {
          pass(pass);
        }
      }
      storeSingles();
    }

    private void line(int depth, String line) {
      body.append("  ".repeat(depth)).append(line).append('\n');
    }

    /** A value that is one for the whole row. */
    private void single(int n) {
      switch (nodes.get(n)) {
        case Loaded(var place, var _) ->
            line(2, "%s %s = %s;".formatted(type(nodes.get(n)), name(n), read(place)));
        case Computed(var type, var text, var _, var _) ->
            line(2, "%s %s = %s;".formatted(type, name(n), text));
        case Folded(var fold, var terms, var _, boolean overRow) -> {
          if (!overRow) {
            start(n, fold);
            line(2, "{");
            take(3, n, fold, terms);
            line(2, "}");
          }
        }
        case Scanned(var fold, var term, var _, var _) -> {
          start(n, fold);
          line(2, "{");
          take(3, n, fold, List.of(term));
          line(2, "}");
        }
      }
    }

    private String kept(int n, int i) {
      return i == 0 ? name(n) : name(n) + "_" + i;
    }

    private void start(int n, Fold fold) {
      for (int i = 0; i < fold.types().size(); i++) {
        line(2, "%s %s = %s;".formatted(fold.types().get(i), kept(n, i), fold.starts().get(i)));
      }
    }

    /** Takes one more element into what is kept. */
    private void take(int depth, int n, Fold fold, List<String> terms) {
      for (int i = 0; i < fold.types().size(); i++) {
        var type = fold.types().get(i);
        line(depth, "%s a%d = %s;".formatted(type, i, kept(n, i)));
        line(depth, "%s b%d = %s;".formatted(type, i, terms.get(i).replace("{c}", "0")));
      }
      line(depth, fold.combine());
      for (int i = 0; i < fold.types().size(); i++) {
        line(depth, "%s = a%d;".formatted(kept(n, i), i));
      }
    }

    private void pass(int pass) {
      var folds = folds(pass);
      folds.forEach(n -> start(n, ((Folded) nodes.get(n)).fold()));
      var inside = new Inside(pass);
      for (int n : folds) {
        inside.fold(n);
      }
      if (pass == passes - 1) {
        inside.stores();
      }
      if (!inside.scans.isEmpty()) {
        line(2, "{");
        inside.scans.forEach(n -> start(n, ((Scanned) nodes.get(n)).fold()));
      }
      int depth = 3;
      if (keeps) {
        if (perThread > 1) {
          line(2, "#pragma unroll");
        }
        line(2, "for (int k = 0; k < %d; k++) {".formatted(perThread));
        line(3, "const unsigned c = lane + k * %d;".formatted(threads));
        if (elements % threads != 0) {
          line(3, "if (c >= %d) {".formatted(elements));
          line(4, "continue;");
          line(3, "}");
        }
      } else {
        line(
            2,
            "for (%s c = lane; c < %d; c += %d) {"
                .formatted(
                    elements < 1L << 31 ? "unsigned" : "unsigned long long", elements, threads));
      }
      if (inside.byIndices && innerSizes.length() > 1) {
        line(depth, "%s rest = c;".formatted(elements < 1L << 31 ? "unsigned" : "long long"));
        for (int dim = innerSizes.length() - 1; dim >= 0; dim--) {
          line(
              depth,
              "[[maybe_unused]] const long long j%d = rest %% %d;"
                  .formatted(dim, innerSizes.get(dim)));
          line(depth, "rest /= %d;".formatted(innerSizes.get(dim)));
        }
      }
      body.append(inside.text);
      line(2, "}");
      if (!inside.scans.isEmpty()) {
        line(2, "}");
      }
      folds.forEach(n -> unite(n, ((Folded) nodes.get(n)).fold()));
    }

    /** What is done for each element in one pass. */
    private final class Inside {
      private final int pass;
      private final StringBuilder text = new StringBuilder();
      private final Set<Integer> declared = new HashSet<>();
      private final Set<Integer> scans = new LinkedHashSet<>();
      private boolean byIndices;

      Inside(int pass) {
        this.pass = pass;
      }

      private void line(String line) {
        text.append("      ").append(line).append('\n');
      }

      private void declare(int n) {
        if (!isFull(n) || !declared.add(n)) {
          return;
        }
        var node = nodes.get(n);
        if (kept.contains(n) && pass > computedIn.getOrDefault(n, pass)) {
          line("%s %s = k%d[k];".formatted(type(node), name(n), n));
          return;
        }
        inputs(node).forEach(this::declare);
        switch (node) {
          case Loaded(var place, var _) -> {
            byIndices |= !isFlat(place);
            line("%s %s = %s;".formatted(type(node), name(n), read(place)));
          }
          case Computed(var type, var expression, var _, var _) ->
              line("%s %s = %s;".formatted(type, name(n), expression));
          case Scanned(var fold, var term, var _, var _) -> {
            scans.add(n);
            line("{");
            take(n, fold, List.of(term));
            line("}");
          }
          case Folded _ -> throw new IllegalStateException("a fold is one for a row");
        }
        if (kept.contains(n)) {
          line("k%d[k] = %s;".formatted(n, name(n)));
        }
      }

      private void take(int n, Fold fold, List<String> terms) {
        for (int i = 0; i < fold.types().size(); i++) {
          var type = fold.types().get(i);
          line("  %s a%d = %s;".formatted(type, i, kept(n, i)));
          line("  %s b%d = %s;".formatted(type, i, terms.get(i).replace("{c}", "c")));
        }
        line("  " + fold.combine());
        for (int i = 0; i < fold.types().size(); i++) {
          line("  %s = a%d;".formatted(kept(n, i), i));
        }
      }

      void fold(int n) {
        var folded = (Folded) nodes.get(n);
        folded.inputs().forEach(this::declare);
        line("{");
        take(n, folded.fold(), folded.terms());
        line("}");
      }

      void stores() {
        var full = stores.stream().filter(store -> isFull(store.node())).toList();
        full.forEach(store -> declare(store.node()));
        for (var store : full) {
          byIndices |= !isFlat(store.place());
          line(written(store));
        }
      }
    }

    /** Brings together what the threads of a row kept of their elements. */
    private void unite(int n, Fold fold) {
      if (threads == 1) {
        return;
      }
      int count = fold.types().size();
      line(2, "{");
      for (int i = 0; i < count; i++) {
        line(3, "%s a%d = %s;".formatted(fold.types().get(i), i, kept(n, i)));
      }
      if (across) {
        share(
            n,
            fold,
            threads * WARP,
            "threadIdx.x",
            "threadIdx.x % 32",
            "w * 32 + threadIdx.x % 32",
            threads);
        for (int i = 0; i < count; i++) {
          line(3, "%s = a%d;".formatted(kept(n, i), i));
        }
        line(2, "}");
        return;
      }
      line(3, "for (int d = %d; d > 0; d /= 2) {".formatted(Math.min(threads, WARP) / 2));
      for (int i = 0; i < count; i++) {
        line(
            4,
            "%s b%d = __shfl_xor_sync(0xffffffffu, a%d, d);".formatted(fold.types().get(i), i, i));
      }
      line(4, fold.combine());
      line(3, "}");
      if (threads > WARP) {
        int warps = threads / WARP;
        // Each row of a block has places of its own.
        var own = together == 1 ? "" : "threadIdx.x / %d * %d + ".formatted(threads, warps);
        share(n, fold, together * warps, "threadIdx.x / 32", own + "0", own + "w", warps);
      }
      for (int i = 0; i < count; i++) {
        line(3, "%s = a%d;".formatted(kept(n, i), i));
      }
      line(2, "}");
    }

    /**
     * Has threads leave what they kept for others, who take it in order.
     *
     * @param place where a thread leaves its own
     * @param first where the first is that a thread takes
     * @param next where the others are, by {@code w}
     */
    private void share(
        int n, Fold fold, int places, String place, String first, String next, int parts) {
      int count = fold.types().size();
      for (int i = 0; i < count; i++) {
        line(3, "__shared__ %s shared%d_%d[%d];".formatted(fold.types().get(i), n, i, places));
      }
      if (!across) {
        line(3, "if (lane % 32 == 0) {");
      }
      for (int i = 0; i < count; i++) {
        line(across ? 3 : 4, "shared%d_%d[%s] = a%d;".formatted(n, i, place, i));
      }
      if (!across) {
        line(3, "}");
      }
      line(3, "__syncthreads();");
      for (int i = 0; i < count; i++) {
        line(3, "a%d = shared%d_%d[%s];".formatted(i, n, i, first));
      }
      line(3, "for (int w = 1; w < %d; w++) {".formatted(parts));
      for (int i = 0; i < count; i++) {
        line(4, "%s b%d = shared%d_%d[%s];".formatted(fold.types().get(i), i, n, i, next));
      }
      line(4, fold.combine());
      line(3, "}");
      line(3, "__syncthreads();");
    }

    private void storeSingles() {
      var singles = stores.stream().filter(store -> !isFull(store.node())).toList();
      if (singles.isEmpty()) {
        return;
      }
      if (threads > 1) {
        // Others may still read what lies there.
        line(2, "__syncthreads();");
        line(2, "if (lane == 0) {");
      }
      singles.forEach(store -> line(threads > 1 ? 3 : 2, written(store)));
      if (threads > 1) {
        line(2, "}");
      }
    }

    private String written(Store store) {
      var dtype = store.place().dtype();
      return "%s%s = %s;"
          .formatted(
              rows % together == 0 ? "" : "if (live) ",
              element(store.place()),
              CTypes.narrow(dtype, name(store.node())));
    }

    private String read(Place place) {
      return CTypes.widen(place.dtype(), element(place));
    }

    private String element(Place place) {
      var base =
          new Base(place.address(), place.shared(), CTypes.stored(place.dtype()), place.rows());
      int pointer = bases.computeIfAbsent(base, _ -> bases.size());
      return "p%d[%s]".formatted(pointer, offset(place));
    }

    private boolean isFlat(Place place) {
      long stride = 1;
      for (int dim = innerSizes.length() - 1; dim >= 0; dim--) {
        if (place.inner().get(dim) != stride) {
          return false;
        }
        stride *= innerSizes.get(dim);
      }
      return true;
    }

    private String offset(Place place) {
      if (place.inner().isEmpty() || place.inner().stream().allMatch(stride -> stride == 0)) {
        return "0";
      }
      if (isFlat(place)) {
        return "c";
      }
      return terms(place.inner(), innerSizes.length() > 1 ? "j%d" : "c");
    }

    private static String terms(ImmutableLongArray strides, String index) {
      var terms =
          IntStream.range(0, strides.length())
              .filter(dim -> strides.get(dim) != 0)
              .mapToObj(dim -> "(long long)" + index.formatted(dim) + " * " + strides.get(dim))
              .collect(Collectors.joining(" + "));
      return terms.isEmpty() ? "0" : terms;
    }

    /** Finds the row, and where it is in memory. */
    private String start(Map<Address, Integer> memory) {
      var start = new StringBuilder();
      if (rowSizes.length() > 0) {
        start.append("    %s left = row;\n".formatted(rows < 1L << 31 ? "unsigned" : "long long"));
      }
      for (int dim = rowSizes.length() - 1; dim >= 0; dim--) {
        start.append(
            "    [[maybe_unused]] const long long r%d = left %% %d;\n    left /= %d;\n"
                .formatted(dim, rowSizes.get(dim), rowSizes.get(dim)));
      }
      bases.forEach(
          (base, number) -> {
            var from =
                base.address()
                    .map(
                        address ->
                            "args.memory[%d]"
                                .formatted(memory.computeIfAbsent(address, _ -> memory.size())))
                    .orElse(base.shared());
            start.append(
                "    %s* p%d = (%s*)%s + %s;\n"
                    .formatted(base.type(), number, base.type(), from, terms(base.rows(), "r%d")));
          });
      for (int n : kept) {
        start.append("    %s k%d[%d];\n".formatted(type(nodes.get(n)), n, Math.max(1, perThread)));
      }
      return start.toString();
    }

    private String frame(Map<Address, Integer> memory) {
      var start = start(memory);
      var lane = across ? "threadIdx.x / 32" : "threadIdx.x % " + threads;
      var own = across ? "threadIdx.x % 32" : "threadIdx.x / " + threads;
      return CTypes.PRELUDE
          + """

          struct Args {
            char* memory[%d];
          };

          extern "C" __global__ void __launch_bounds__(%d) symplan_kernel(const __grid_constant__ Args args) {
            [[maybe_unused]] const unsigned lane = %s;
            for (long long first = (long long)blockIdx.x * %d; first < %d; first += (long long)gridDim.x * %d) {
          """
              .formatted(
                  Math.max(1, memory.size()), threads * together, lane, together, rows, together)
          + (together == 1
              ? "    const long long row = first;\n"
              : rows % together == 0
                  ? "    const long long row = first + %s;\n".formatted(own)
                  : """
                      const bool live = first + %1$s < %2$d;
                      // All threads go along, as those of a warp work together.
                      const long long row = live ? first + %1$s : %2$d - 1;
                  """
                      .formatted(own, rows))
          + start
          + body
          + "  }\n}\n";
    }
  }
}
