package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.cuda.RowNode.Computed;
import dev.symplan.codegen.cuda.RowNode.Fold;
import dev.symplan.codegen.cuda.RowNode.Folded;
import dev.symplan.codegen.cuda.RowNode.Index;
import dev.symplan.codegen.cuda.RowNode.Loaded;
import dev.symplan.codegen.cuda.RowNode.Location;
import dev.symplan.codegen.cuda.RowNode.Offset;
import dev.symplan.codegen.cuda.RowNode.Scanned;
import dev.symplan.codegen.cuda.RowNode.Store;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/** Writes a {@link RowKernel}'s text, once all its values are known. */
final class RowWriter {

  /** As many elements of a row as a thread keeps. */
  private static final int KEPT = 16;

  private final RowKernel kernel;
  private final ImmutableList<RowNode> nodes;
  private final ImmutableList<Store> stores;
  private final RowThreads threads;
  private final int width;
  private final long perThread;
  private final boolean keeps;
  private final RowPasses passes;
  private final RowLocations locations;
  private final StringBuilder body = new StringBuilder();

  RowWriter(RowKernel kernel, List<RowNode> nodes, List<Store> stores, RowThreads threads) {
    this.kernel = kernel;
    this.nodes = ImmutableList.copyOf(nodes);
    this.stores = ImmutableList.copyOf(stores);
    this.threads = threads;
    this.width = threads.vectors().width();
    this.perThread = threads.perThread(kernel.elements());
    this.keeps = perThread <= KEPT;
    this.passes = new RowPasses(nodes, stores, keeps);
    this.locations = new RowLocations(kernel.rowSizes(), kernel.innerSizes());
  }

  /**
   * {@return the whole kernel}
   *
   * @param memory its arguments, which this adds to
   */
  String kernel(MemoryArguments memory) {
    var statements = rows(memory);
    int together = threads.together();
    return CTypes.PRELUDE
        + threads.vectors().type()
        + memory.struct()
        + """

        extern "C" __global__ void __launch_bounds__(%s) symplan_kernel(const __grid_constant__ Args args) {
          [[maybe_unused]] const unsigned lane = %s;
          for (long long first = (long long)blockIdx.x * %s; first < %s; first += (long long)gridDim.x * %s) {
        """
            .formatted(threads.block(), threads.lane(), together, kernel.rows(), together)
        + statements
        + "  }\n}\n";
  }

  /** {@return statements for the rows from {@code first} on that a block takes together} */
  String rows(MemoryArguments memory) {
    write();
    var start = start(memory);
    long rows = kernel.rows();
    int together = threads.together();
    return (together == 1
            ? "    const long long row = first;\n"
            : rows % together == 0
                ? "    const long long row = first + %s;\n".formatted(threads.row())
                : """
                    const bool live = first + %1$s < %2$s;
                    // All threads go along, as those of a warp work together.
                    const long long row = live ? first + %1$s : %2$s - 1;
                """
                    .formatted(threads.row(), rows))
        + start
        + body;
  }

  /**
   * {@return statements for some rows, as {@link RowKernel#fragment} says}
   *
   * @param blockThreads the threads of a block
   */
  String fragment(long rowsTogether, int blockThreads, MemoryArguments memory) {
    write();
    return """
        for (long long own = threadIdx.x; own < %s; own += %s) {
          [[maybe_unused]] const unsigned lane = 0;
          const long long row = outer * %s + own;
    """
            .formatted(rowsTogether, blockThreads, rowsTogether)
        + start(memory)
        + body
        + "    }\n";
  }

  /** Finds the row, and where it is in memory. */
  private String start(MemoryArguments memory) {
    var start = new StringBuilder();
    var sizes = kernel.rowSizes();
    if (sizes.length() > 0) {
      start.append("    %s left = row;\n".formatted(Indices.number(kernel.rows())));
    }
    start.append(Indices.of("    ", "[[maybe_unused]] const long long r", "left", sizes));
    start.append(locations.pointers(memory));
    for (int n : passes.kept()) {
      start.append("    %s k%s[%s];\n".formatted(nodes.get(n).type(), n, Math.max(1, perThread)));
    }
    return start.toString();
  }

  private void write() {
    passes.singles(0).forEach(this::single);
    for (int pass = 0; pass < passes.count(); pass++) {
      pass(pass);
      passes.singles(pass + 1).forEach(this::single);
    }
    storeSingles();
  }

  private void line(int depth, String line) {
    body.append("  ".repeat(depth)).append(line).append('\n');
  }

  /** A value that is one for the whole row. */
  private void single(int n) {
    switch (nodes.get(n)) {
      case Loaded _, Index _, Computed _ -> line(2, declaration(n));
      case Folded(var fold, var terms, var _, boolean overRow) -> {
        if (!overRow) {
          start(n, fold);
          take(n, fold, terms, "0").forEach(line -> line(2, line));
        }
      }
      case Scanned(var fold, var term, var _, var _) -> {
        start(n, fold);
        take(n, fold, List.of(term), "0").forEach(line -> line(2, line));
      }
    }
  }

  private String declaration(int n) {
    var node = nodes.get(n);
    var value =
        switch (node) {
          case Loaded(var location, var _, var offset) -> read(location, offset);
          case Index(int dim, boolean inner) ->
              inner ? (kernel.innerSizes().length() > 1 ? "j" + dim : "c") : "r" + dim;
          case Computed(var _, var text, var _, var _) -> text;
          case Folded _, Scanned _ -> throw new IllegalStateException("is not one expression");
        };
    return "%s %s = %s;".formatted(node.type(), RowKernel.name(n), value);
  }

  private static String kept(int n, int i) {
    return i == 0 ? RowKernel.name(n) : RowKernel.name(n) + "_" + i;
  }

  private void start(int n, Fold fold) {
    for (int i = 0; i < fold.types().size(); i++) {
      line(2, "%s %s = %s;".formatted(fold.types().get(i), kept(n, i), fold.starts().get(i)));
    }
  }

  /**
   * {@return statements that take one more element into what is kept}
   *
   * @param element its number
   */
  private static List<String> take(int n, Fold fold, List<String> terms, String element) {
    var lines = new ArrayList<String>();
    lines.add("{");
    for (int i = 0; i < fold.types().size(); i++) {
      var type = fold.types().get(i);
      lines.add("  %s a%s = %s;".formatted(type, i, kept(n, i)));
      lines.add("  %s b%s = %s;".formatted(type, i, terms.get(i).replace("{c}", element)));
    }
    lines.add("  " + fold.combine());
    for (int i = 0; i < fold.types().size(); i++) {
      lines.add("  %s = a%s;".formatted(kept(n, i), i));
    }
    lines.add("}");
    return lines;
  }

  private void pass(int pass) {
    var folds = passes.folds(pass);
    folds.forEach(n -> start(n, ((Folded) nodes.get(n)).fold()));
    var inside = new Inside(pass);
    folds.forEach(inside::fold);
    if (passes.isLast(pass)) {
      inside.stores();
    }
    if (!inside.scans.isEmpty()) {
      line(2, "{");
      inside.scans.forEach(n -> start(n, ((Scanned) nodes.get(n)).fold()));
    }
    if (width == 1) {
      forElements("c");
      inside.elements(3);
    } else {
      forElements("at");
      inside.vectors();
    }
    line(2, "}");
    if (!inside.scans.isEmpty()) {
      line(2, "}");
    }
    folds.forEach(n -> unite(n, ((Folded) nodes.get(n)).fold()));
  }

  /** The type of an element's number. */
  private String number() {
    return kernel.elements() < 1L << 31 ? "unsigned" : "unsigned long long";
  }

  private void indices(int depth, String number) {
    var sizes = kernel.innerSizes();
    if (sizes.length() <= 1) {
      return;
    }
    line(depth, "%s rest = %s;".formatted(Indices.number(kernel.elements()), number));
    body.append(
        Indices.of("  ".repeat(depth), "[[maybe_unused]] const long long j", "rest", sizes));
  }

  /**
   * The head of a loop over what a thread takes of a row: elements, or vectors.
   *
   * @param number a variable, of the first element
   */
  private void forElements(String number) {
    long elements = kernel.elements();
    var times = width == 1 ? "" : " * " + width;
    if (!keeps) {
      line(
          2,
          "for (%1$s %2$s = lane%3$s; %2$s < %4$s; %2$s += %5$s) {"
              .formatted(number(), number, times, elements, threads.perRow() * width));
      return;
    }
    if (perThread > width) {
      line(2, "#pragma unroll");
    }
    line(2, "for (int k = 0; k < %s; k++) {".formatted(perThread / width));
    line(
        3,
        width == 1
            ? "const unsigned %s = lane + k * %s;".formatted(number, threads.perRow())
            : "const unsigned %s = (lane + k * %s)%s;".formatted(number, threads.perRow(), times));
    if (elements % ((long) threads.perRow() * width) != 0) {
      line(3, "if (%s >= %s) {".formatted(number, elements));
      line(4, "continue;");
      line(3, "}");
    }
  }

  /** The statements for each element in one pass. */
  private final class Inside {
    private final int pass;
    private final List<String> lines = new ArrayList<>();
    private final Set<Integer> declared = new HashSet<>();
    private final Set<Integer> scans = new LinkedHashSet<>();

    /** The statements before and after the elements of a vector. */
    private final List<String> reads = new ArrayList<>();

    private final List<String> writes = new ArrayList<>();
    private boolean byIndices;
    private boolean byVectorIndices;

    Inside(int pass) {
      this.pass = pass;
    }

    private void declare(int n) {
      var node = nodes.get(n);
      if (!node.full() || !declared.add(n)) {
        return;
      }
      if (passes.isKeptBefore(n, pass)) {
        lines.add("%s %s = %s;".formatted(node.type(), RowKernel.name(n), keptOf(n)));
        return;
      }
      node.inputs().forEach(this::declare);
      switch (node) {
        case Loaded(var location, var _, var _) when width > 1 -> lines.add(part(n, location));
        case Loaded(var location, var _, var _) -> {
          byIndices |= !locations.isFlat(location);
          lines.add(declaration(n));
        }
        case Index _ -> {
          byIndices = true;
          lines.add(declaration(n));
        }
        case Computed _ -> lines.add(declaration(n));
        case Scanned(var fold, var term, var _, var _) -> {
          scans.add(n);
          lines.addAll(take(n, fold, List.of(term), "c"));
        }
        case Folded _ -> throw new IllegalStateException("a fold is one for a row");
      }
      if (passes.kept().contains(n)) {
        lines.add("%s = %s;".formatted(keptOf(n), RowKernel.name(n)));
      }
    }

    void fold(int n) {
      var folded = (Folded) nodes.get(n);
      folded.inputs().forEach(this::declare);
      lines.addAll(take(n, folded.fold(), folded.terms(), "c"));
    }

    void stores() {
      var full = stores.stream().filter(store -> nodes.get(store.node()).full()).toList();
      full.forEach(store -> declare(store.node()));
      for (var store : full) {
        if (width > 1) {
          write(store);
        } else {
          byIndices |= !locations.isFlat(store.location());
          lines.add(written(store));
        }
      }
    }

    private String keptOf(int n) {
      return width == 1 ? "k%s[k]".formatted(n) : "k%s[k * %s + e]".formatted(n, width);
    }

    /** Reads a vector, or what its elements have in common. */
    private String part(int n, Location location) {
      boolean one = !locations.isFlat(location) && locations.isSpread(location);
      var stored = CTypes.stored(location.dtype());
      var element = locations.element(location, "at", "");
      byVectorIndices |= !locations.isFlat(location);
      reads.add(
          one
              ? "const %s m%s = %s;".formatted(stored, n, element)
              : Vectors.read(stored, "m" + n, element));
      return "%s %s = %s;"
          .formatted(
              nodes.get(n).type(),
              RowKernel.name(n),
              CTypes.widen(location.dtype(), "m%s%s".formatted(n, one ? "" : ".e[e]")));
    }

    private void write(Store store) {
      var location = store.location();
      var stored = CTypes.stored(location.dtype());
      var vector = "o" + writes.size();
      byVectorIndices |= !locations.isFlat(location);
      reads.add("Vector<%s> %s;".formatted(stored, vector));
      lines.add("%s.e[e] = %s;".formatted(vector, narrowed(store)));
      writes.add(
          whereLive() + Vectors.write(stored, vector, locations.element(location, "at", "")));
    }

    void elements(int depth) {
      if (byIndices) {
        indices(depth, "c");
      }
      lines.forEach(line -> line(depth, line));
    }

    void vectors() {
      if (byVectorIndices) {
        indices(3, "at");
      }
      reads.forEach(line -> line(3, line));
      line(3, "#pragma unroll");
      line(3, "for (int e = 0; e < %s; e++) {".formatted(width));
      line(4, "[[maybe_unused]] const %s c = at + e;".formatted(number()));
      elements(4);
      line(3, "}");
      writes.forEach(line -> line(3, line));
    }
  }

  /** Brings together what the threads of a row kept of their elements. */
  private void unite(int n, Fold fold) {
    if (threads.perRow() == 1) {
      return;
    }
    line(2, "{");
    for (int i = 0; i < fold.types().size(); i++) {
      line(3, "%s a%s = %s;".formatted(fold.types().get(i), i, kept(n, i)));
    }
    threads.unite(n, fold).forEach(line -> line(3, line));
    for (int i = 0; i < fold.types().size(); i++) {
      line(3, "%s = a%s;".formatted(kept(n, i), i));
    }
    line(2, "}");
  }

  private void storeSingles() {
    var singles = stores.stream().filter(store -> !nodes.get(store.node()).full()).toList();
    if (singles.isEmpty()) {
      return;
    }
    if (threads.perRow() > 1) {
      // Others may still read what lies there.
      line(2, "__syncthreads();");
      line(2, "if (lane == 0) {");
    }
    singles.forEach(store -> line(threads.perRow() > 1 ? 3 : 2, written(store)));
    if (threads.perRow() > 1) {
      line(2, "}");
    }
  }

  private String whereLive() {
    return kernel.rows() % threads.together() == 0 ? "" : "if (live) ";
  }

  private String narrowed(Store store) {
    var dtype = store.location().dtype();
    var name = RowKernel.name(store.node());
    // A value that was kept from an earlier pass is there without its inputs.
    return nodes.get(store.node()) instanceof Computed(var _, var text, var _, var _)
            && !passes.isKeptBefore(store.node(), passes.count() - 1)
        ? CTypes.narrow(dtype, name, text)
        : CTypes.narrow(dtype, name);
  }

  private String written(Store store) {
    return "%s%s = %s;"
        .formatted(whereLive(), locations.element(store.location(), "c", ""), narrowed(store));
  }

  private String read(Location location, Optional<Offset> offset) {
    var picked =
        offset
            .map(by -> " + %s * %s".formatted(RowKernel.name(by.index()), by.stride()))
            .orElse("");
    return CTypes.widen(location.dtype(), locations.element(location, "c", picked));
  }
}
